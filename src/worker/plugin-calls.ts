/**
 * Runs jobs without pods by calling their plugins. It serves users who run work at a service outside Kubernetes, and
 * operators whose process must survive a plugin that hangs or fails.
 */

import type { BucketLease } from "../core/job/bucket.ts";
import { interruptibleFailuresOf, staysInterruptible } from "../core/job/interruptible.ts";
import type { Job } from "../core/job/job.ts";
import { TASK_NAME_LENGTHS, taskName } from "../core/job/names.ts";
import { isSetAside } from "../core/job/set-aside.ts";
import type { Plugin, PluginProperties, ResourceManager, TaskContext } from "../core/kinds/plugin.ts";
import {
  type EventsRecorder,
  eventsOfCall,
  NO_PLATFORM,
  NO_STORE,
  OBJECT_BYTES_MAX,
} from "../core/kinds/plugin-services.ts";
import { type Registry, servedName } from "../core/kinds/registry.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import { type ReconcileConfig, reasonOf } from "../core/reconcile/decision-draft.ts";
import { afterCall, type CallOutcome, type DueCall, dueCall } from "../core/reconcile/plugins/plugin-outcome.ts";
import { reconcile } from "../core/reconcile/reconcile.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { linkedController } from "../runtime/linked-controller.ts";
import { BLOCKS_FROM_MS } from "../runtime/slow-down.ts";
import { thrownText } from "../runtime/thrown-text.ts";
import type { PluginHost, WorkerPorts } from "./ports.ts";
import type { SlowPlugins } from "./slow-plugins.ts";
import { timedSection } from "./timed-section.ts";
import { type PluginEvents, TokenShortage } from "./token-shortage.ts";

const CALL_MS_MAX = 30_000;
/**
 * How many steps of a worker may wait for plugins at a time, and how many for one plugin. So a plugin that hangs delays
 * neither gangs nor other plugins.
 */
const CALLS_MAX = 24;
const CALLS_PER_PLUGIN_MAX = 8;

/**
 * Decides the next step of a job without pods. The call that is due is recorded first. Only then is the plugin called,
 * and the outcome is the next record. Null: too many calls run now, or this worker stops.
 */
export async function decidePluginJob(
  { clock }: Pick<WorkerPorts, "clock">,
  { config, calls }: { readonly config: ReconcileConfig; readonly calls: PluginCalls },
  { job, lease }: { readonly job: Job; readonly lease: BucketLease },
  signal: AbortSignal,
): Promise<Decision | null> {
  const first = reconcile(job, [], clock.nowMs(), config);
  if (first.record !== null || first.forget) return first;
  const call = dueCall(job, clock.nowMs());
  // The plugin of a job that is set aside is called only to end its task.
  if (call === null || (isSetAside(job) && call.stage === "handle")) return first;
  const startedMs = clock.monotonicMs();
  const outcome = await calls.call({ job, lease, call }, signal);
  if (outcome === null) return null;
  const decision = afterCall(job, call, outcome, { nowMs: clock.nowMs(), config });
  // A call that returned an invalid value has failed too.
  const hasFailed = decision.record?.events.some(({ reason }) => reason === reasonOf(job, "PluginFailed")) ?? false;
  const isCutOff = outcome.kind === "failed" && outcome.isCutOff === true;
  const tookMs = clock.monotonicMs() - startedMs;
  const word = isCutOff ? "cut_off" : hasFailed ? "failed" : "answered";
  calls.events.pluginCalled({ kind: servedName(config.kinds, job), call: call.stage, outcome: word, tookMs });
  return decision;
}

const NOT_REPORTED: PluginEvents = {
  pluginCalled: () => undefined,
  pluginAsked: () => undefined,
  pluginsWait: () => undefined,
};

type CallOptions = {
  readonly kinds: Registry;
  /** The longest time of a call, after which it is cut off. Omitted: 30 s. */
  readonly callMsMax?: number | undefined;
  readonly events?: PluginEvents | undefined;
  readonly slow: SlowPlugins;
  /** Called with an error about a plugin that blocked the event loop. */
  readonly onError: (error: unknown, what: string) => void;
};

/** A plugin call that is due for a job of a bucket that this worker holds. */
type PluginTask = { readonly job: Job; readonly lease: BucketLease; readonly call: DueCall };

const CUT_OFF = Symbol("cut off");

/**
 * Calls plugins, whose code may do anything. Each call ends by its deadline, and every way that it ends is an outcome.
 */
export class PluginCalls {
  readonly #ports: Pick<WorkerPorts, "clock" | "plugins" | "runSection">;
  readonly #options: CallOptions;
  readonly #callMsMax: number;
  readonly #shortage: TokenShortage;
  readonly events: PluginEvents;
  readonly #running = new Map<string, number>();
  /** Requests for tokens that are under way, also of calls that have ended. The job's next call waits for them. */
  readonly #asking = new Map<string, Set<Promise<unknown>>>();

  constructor(ports: Pick<WorkerPorts, "clock" | "plugins" | "runSection">, options: CallOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#callMsMax = options.callMsMax ?? CALL_MS_MAX;
    this.events = options.events ?? NOT_REPORTED;
    this.#shortage = new TokenShortage(this.events.pluginsWait);
  }

  /** Forgets jobs of these buckets, which other workers hold now. */
  forget(buckets: ReadonlySet<number>): void {
    this.#shortage.clearBuckets(buckets);
  }

  /** The properties of the plugin of that kind. Null: it cannot be loaded within the time of a call. */
  async propertiesOf(kind: string, signal: AbortSignal): Promise<PluginProperties | null> {
    using over = linkedController(signal);
    const load = async () => (await this.#ports.plugins?.pluginOf(kind, over.signal))?.properties ?? {};
    const late = this.#ports.clock.sleep(this.#callMsMax, over.signal).then(() => null);
    const properties = await Promise.race([load().catch(() => null), late]);
    over.abort();
    return properties;
  }

  /** Calls the plugin. Null: too many calls run now, or the signal was aborted meanwhile. */
  async call(task: PluginTask, signal: AbortSignal): Promise<CallOutcome | null> {
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

  async #cutOff(task: PluginTask, signal: AbortSignal): Promise<CallOutcome | null> {
    using over = linkedController(signal);
    const { recorder, events } = eventsOfCall();
    const progress = { isLoaded: false, recorder };
    const calling = this.#run(task, progress, over.signal).catch((error: unknown): CallOutcome => {
      return { kind: "failed", message: thrownText(error) };
    });
    const outcome = await Promise.race([
      calling,
      this.#ports.clock.sleep(this.#callMsMax, over.signal).then((): typeof CUT_OFF => CUT_OFF),
    ]);
    over.abort();
    if (signal.aborted) return null;
    if (outcome !== CUT_OFF) return { ...outcome, events: [...events] };
    const what = progress.isLoaded ? "it" : "the load of its plugin";
    const message = `${what} was cut off after ${this.#callMsMax / 1000} s`;
    return { kind: "failed", message, isCutOff: true, events: [...events] };
  }

  async #run(
    task: PluginTask,
    progress: { isLoaded: boolean; readonly recorder: EventsRecorder },
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const { job } = task;
    const host = this.#ports.plugins;
    if (host === undefined) return { kind: "failed", message: "this process has no plugins" };
    await Promise.allSettled(this.#asking.get(job.uid) ?? []);
    const plugin = await host.pluginOf(job.spec.kind, signal);
    progress.isLoaded = true;
    if (signal.aborted) return { kind: "failed", message: "it was cut off" };
    const context = this.#context(task, { plugin, host, signal, events: progress.recorder });
    this.#shortage.clear(job.uid);
    const value = await this.#begin(plugin, task, context);
    // The record of this call may release the tokens of its attempt: no request may arrive after it.
    await Promise.allSettled(this.#asking.get(job.uid) ?? []);
    return { kind: "returned", value };
  }

  /**
   * Calls the plugin, and reports it if the call returned late: until it returned nothing else ran in this process, and
   * it could not be cut off.
   */
  #begin(plugin: Plugin, { job, call }: PluginTask, context: TaskContext): Promise<unknown> {
    const { clock } = this.#ports;
    const startedMs = clock.monotonicMs();
    const section = { jobUid: job.uid, of: "plugin", name: plugin.id } as const;
    const calling = timedSection(this.#ports, this.#options, section, () => plugin[call.stage](context));
    const blockedMs = clock.monotonicMs() - startedMs;
    if (blockedMs >= BLOCKS_FROM_MS) {
      const what = `${call.stage} of job ${job.namespace}/${job.name}`;
      const error = new Error(`plugin ${plugin.id} blocked the event loop for ${Math.round(blockedMs)} ms`);
      this.#options.onError(error, what);
    }
    return calling;
  }

  #context(
    { job, lease, call }: PluginTask,
    of: {
      readonly plugin: Plugin;
      readonly host: PluginHost;
      readonly signal: AbortSignal;
      readonly events: EventsRecorder;
    },
  ): TaskContext {
    const { host, signal, events } = of;
    const { uid, namespace, name, project, labels, annotations, spec } = job;
    const { admission, attempt, state } = call.plugin;
    const { generatedNameLengthMin: min, generatedNameLengthMax: max } = { ...of.plugin.properties };
    const lengths = { min: min ?? TASK_NAME_LENGTHS.min, max: max ?? TASK_NAME_LENGTHS.max };
    const task = taskName({ jobUid: uid, admission, attempt }, lengths);
    const { kind, kindSpec, priority } = spec;
    const { runPolicy } = spec;
    const { queue } = runPolicy.schedulingPolicy;
    const holder = { lease, jobUid: uid, admission, taskName: task, project, namespace, priority };
    return {
      // Copies, like the state: a plugin that changes them changes nothing of ours.
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
      inputs: structuredClone(spec.inputs ?? {}),
      maxAttempts: { user: runPolicy.backoffLimit, system: runPolicy.systemBackoffLimit },
      interruptible: runPolicy.interruptible === true && staysInterruptible(runPolicy, job.status.attempts),
      interruptibleFailureThreshold: interruptibleFailuresOf(runPolicy),
      platform: host.platformOf?.(namespace) ?? NO_PLATFORM,
      store: host.storeOf?.(namespace, signal) ?? NO_STORE,
      bytesMax: OBJECT_BYTES_MAX,
      events,
      nowMs: this.#ports.clock.nowMs(),
      signal,
      resources: this.#whileCalled(job, host.resources(holder), signal),
      secrets: host.secrets,
    };
  }

  /** Lets a plugin request tokens only during the call: tokens that it requested later might never be released. */
  #whileCalled(job: Job, resources: ResourceManager, signal: AbortSignal): ResourceManager {
    const kind = servedName(this.#options.kinds, job);
    const ask = <T>(run: () => Promise<T>): Promise<T> => {
      const asked = signal.aborted ? Promise.reject(new Error("the call is over")) : run();
      // This waits for the answer even if the plugin does not.
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
          if (answer.status !== "GRANTED") this.#shortage.add(job.uid, kind, pool);
          return answer;
        }),
      release: (of) => ask(() => resources.release(of)),
    };
  }

  #await(jobUid: string, asked: Promise<unknown>): void {
    const asking = getOrCreate(this.#asking, jobUid, () => new Set());
    asking.add(asked);
    const answered = () => {
      asking.delete(asked);
      if (asking.size === 0 && this.#asking.get(jobUid) === asking) this.#asking.delete(jobUid);
    };
    void asked.then(answered, answered);
  }
}
