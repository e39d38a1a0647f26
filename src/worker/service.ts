import type { Job } from "../core/job/job.ts";
import { taskName } from "../core/job/names.ts";
import type { Plugin, PluginProperties, ResourceManager, TaskContext } from "../core/kinds/plugin.ts";
import { servedName } from "../core/kinds/registry.ts";
import { afterCall, type CallOutcome, type DueCall, dueCall } from "../core/reconcile/after-call.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import { type ReconcileConfig, reasonOf } from "../core/reconcile/draft.ts";
import { reconcile } from "../core/reconcile/reconcile.ts";
import { thrownText } from "../runtime/thrown-text.ts";
import { Lacking, type PluginEvents } from "./lacking.ts";
import type { BucketLease, PluginHost, WorkerPorts } from "./ports.ts";

const CALL_MS_MAX = 30_000;
/** Of a worker's steps, so many wait for plugins at most, and so many for one of them: a plugin that hangs keeps neither pods nor others waiting. */
const CALLS_MAX = 24;
const CALLS_PER_PLUGIN_MAX = 8;
/** What keeps all others waiting for so long is told of. */
const BLOCKED_MS = 500;
const NAME_LENGTH_MAX = 50;

/**
 * Decides the next step of a job without pods. What its record says is due is recorded first; only then is its plugin called, and what that came
 * to is the next record. Null where there is no room for the call now, or this worker stops.
 */
export async function decideService(
  { clock }: Pick<WorkerPorts, "clock">,
  { config, calls }: { readonly config: ReconcileConfig; readonly calls: PluginCalls },
  { job, lease }: { readonly job: Job; readonly lease: BucketLease },
  signal: AbortSignal,
): Promise<Decision | null> {
  const first = reconcile(job, [], clock.nowMs(), config);
  if (first.record !== null || first.forget) return first;
  const call = dueCall(job, clock.nowMs());
  if (call === null) return first;
  const startedMs = clock.monotonicMs();
  const outcome = await calls.call({ job, lease, call }, signal);
  if (outcome === null) return null;
  const decision = afterCall(job, call, outcome, { nowMs: clock.nowMs(), config });
  // Also what returned rubbish.
  const hasFailed = decision.record?.events.some(({ reason }) => reason === reasonOf(job, "PluginFailed")) ?? false;
  const isCutOff = outcome.kind === "failed" && outcome.isCutOff === true;
  const tookMs = clock.monotonicMs() - startedMs;
  const word = isCutOff ? "cut_off" : hasFailed ? "failed" : "answered";
  calls.events.pluginCalled({ kind: servedName(job), call: call.stage, outcome: word, tookMs });
  return decision;
}

const NOBODY_ASKS: PluginEvents = {
  pluginCalled: () => undefined,
  pluginAsked: () => undefined,
  pluginsWait: () => undefined,
};

export type CallOptions = {
  /** A call is cut off after so long; 30 s if absent. */
  readonly callMsMax?: number | undefined;
  readonly events?: PluginEvents | undefined;
  /** Told of a plugin that kept this process from everything else. */
  readonly onError: (error: unknown, what: string) => void;
};

/** A call that is due, of a job of a bucket that this worker holds. */
type Task = { readonly job: Job; readonly lease: BucketLease; readonly call: DueCall };

const CUT_OFF = Symbol("cut off");

/** Makes calls of plugins, which may do anything: each ends by its deadline, and whatever it comes to is an outcome. */
export class PluginCalls {
  readonly #ports: Pick<WorkerPorts, "clock" | "plugins">;
  readonly #options: CallOptions;
  readonly #callMsMax: number;
  readonly #lacking: Lacking;
  readonly events: PluginEvents;
  readonly #running = new Map<string, number>();
  /** Tokens that are being asked for in calls that may be over: the next call of the job waits for the answers. */
  readonly #asking = new Map<string, Set<Promise<unknown>>>();

  constructor(ports: Pick<WorkerPorts, "clock" | "plugins">, options: CallOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#callMsMax = options.callMsMax ?? CALL_MS_MAX;
    this.events = options.events ?? NOBODY_ASKS;
    this.#lacking = new Lacking(this.events.pluginsWait);
  }

  /** Jobs of these buckets are others' now. */
  forget(buckets: ReadonlySet<number>): void {
    this.#lacking.clearBuckets(buckets);
  }

  /** What the plugin of that kind says of itself; null where it cannot be loaded within the time of a call. */
  async propertiesOf(kind: string, signal: AbortSignal): Promise<PluginProperties | null> {
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, signal]);
    const load = async () => (await this.#ports.plugins?.pluginOf(kind, stop))?.properties ?? {};
    const late = this.#ports.clock.sleep(this.#callMsMax, stop).then(() => null);
    const properties = await Promise.race([load().catch(() => null), late]);
    over.abort();
    return properties;
  }

  /** Null where there is no room for it now, or the signal was aborted meanwhile. */
  async call(task: Task, signal: AbortSignal): Promise<CallOutcome | null> {
    const { kind } = task.job.spec;
    const running = this.#running.get(kind) ?? 0;
    const all = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    if (running >= CALLS_PER_PLUGIN_MAX || all >= CALLS_MAX) return null;
    this.#running.set(kind, running + 1);
    try {
      return await this.#cutOff(task, signal);
    } finally {
      const left = (this.#running.get(kind) ?? 1) - 1;
      if (left > 0) this.#running.set(kind, left);
      else this.#running.delete(kind);
    }
  }

  async #cutOff(task: Task, signal: AbortSignal): Promise<CallOutcome | null> {
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, signal]);
    const progress = { isLoaded: false };
    const calling = this.#run(task, progress, stop).catch((error: unknown): CallOutcome => {
      return { kind: "failed", message: thrownText(error) };
    });
    const outcome = await Promise.race([
      calling,
      this.#ports.clock.sleep(this.#callMsMax, stop).then((): typeof CUT_OFF => CUT_OFF),
    ]);
    over.abort();
    if (signal.aborted) return null;
    if (outcome !== CUT_OFF) return outcome;
    const what = progress.isLoaded ? "it" : "the load of its plugin";
    return { kind: "failed", message: `${what} was cut off after ${this.#callMsMax / 1000} s`, isCutOff: true };
  }

  async #run(task: Task, progress: { isLoaded: boolean }, signal: AbortSignal): Promise<CallOutcome> {
    const { job } = task;
    const host = this.#ports.plugins;
    if (host === undefined) return { kind: "failed", message: "this process has no plugins" };
    await Promise.allSettled(this.#asking.get(job.uid) ?? []);
    const plugin = await host.pluginOf(job.spec.kind, signal);
    progress.isLoaded = true;
    if (signal.aborted) return { kind: "failed", message: "it was cut off" };
    const context = this.#context(task, { plugin, host, signal });
    this.#lacking.clear(job.uid);
    const value = await this.#begin(plugin, task, context);
    // The record of this call may give back what its attempt holds: nothing may come after it.
    await Promise.allSettled(this.#asking.get(job.uid) ?? []);
    return { kind: "returned", value };
  }

  /** Calls the plugin, and tells who it was if it came back late: until then nothing else ran in this process, nor could it be cut off. */
  #begin(plugin: Plugin, { job, call }: Task, context: TaskContext): Promise<unknown> {
    const { clock } = this.#ports;
    const startedMs = clock.monotonicMs();
    const calling = plugin[call.stage](context);
    const blockedMs = clock.monotonicMs() - startedMs;
    if (blockedMs >= BLOCKED_MS) {
      const what = `${call.stage} of job ${job.namespace}/${job.name}`;
      const error = new Error(
        `plugin ${plugin.id} kept the process from everything else for ${Math.round(blockedMs)} ms`,
      );
      this.#options.onError(error, what);
    }
    return calling;
  }

  #context(
    { job, lease, call }: Task,
    of: {
      readonly plugin: Plugin;
      readonly host: PluginHost;
      readonly signal: AbortSignal;
    },
  ): TaskContext {
    const { host, signal } = of;
    const { uid, namespace, name, project, labels, annotations, spec } = job;
    const { admission, attempt, state } = call.plugin;
    const lengthMax = of.plugin.properties?.generatedNameLengthMax ?? NAME_LENGTH_MAX;
    const task = taskName({ jobUid: uid, admission, attempt }, lengthMax);
    const { kind, kindSpec, priority } = spec;
    const { queue } = spec.runPolicy.schedulingPolicy;
    const holder = { lease, jobUid: uid, admission, taskName: task, project, namespace, priority };
    return {
      // Copies, as of the state: what a plugin changes of them changes nothing.
      job: {
        uid,
        namespace,
        name,
        project,
        kind,
        priority,
        queue,
        ...structuredClone({ labels, annotations, kindSpec }),
      },
      admission,
      attempt,
      taskName: task,
      state: structuredClone(state),
      nowMs: this.#ports.clock.nowMs(),
      signal,
      resources: this.#whileCalled(job, host.resources(holder), signal),
      secrets: host.secrets,
    };
  }

  /** Tokens for as long as the call lasts: what is asked for later might never be given back. */
  #whileCalled(job: Job, resources: ResourceManager, signal: AbortSignal): ResourceManager {
    const kind = servedName(job);
    const ask = <T>(run: () => Promise<T>): Promise<T> => {
      const asked = signal.aborted ? Promise.reject(new Error("the call is over")) : run();
      // Also where the plugin does not look at the answer.
      this.#await(job.uid, asked);
      return asked;
    };
    return {
      allocate: (of) =>
        ask(async () => {
          const { pool } = of;
          const answer = await resources.allocate(of).catch((error: unknown) => {
            this.events.pluginAsked({ kind, pool: String(pool), outcome: "failed" });
            throw error;
          });
          this.events.pluginAsked({ kind, pool, outcome: answer.status.toLowerCase() });
          if (answer.status !== "GRANTED") this.#lacking.add(job.uid, kind, pool);
          return answer;
        }),
      release: (of) => ask(() => resources.release(of)),
    };
  }

  #await(jobUid: string, asked: Promise<unknown>): void {
    const asking = this.#asking.get(jobUid) ?? new Set();
    this.#asking.set(jobUid, asking.add(asked));
    const answered = () => {
      asking.delete(asked);
      if (asking.size === 0 && this.#asking.get(jobUid) === asking) this.#asking.delete(jobUid);
    };
    void asked.then(answered, answered);
  }
}
