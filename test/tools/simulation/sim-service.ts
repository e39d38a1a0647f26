import assert from "node:assert/strict";
import {
  type Plugin,
  type PluginEntry,
  phaseInfo,
  serviceKind,
  type TaskContext,
} from "../../../src/core/kinds/plugin.ts";
import type { Fate } from "./sim-kube.ts";

export const SERVICE_KIND = "SimServiceJob";
export const SERVICE_POOL = "sim:slots";
/** How many tasks may run at the service at a time. */
export const SERVICE_SLOTS = 2;

/** Each history provides its own plugin. */
export const serviceEntry: PluginEntry = {
  id: "sim-service",
  kinds: [
    serviceKind({
      name: SERVICE_KIND,
      description: "Runs at a simulated service.",
      kindSpec: { ends: { type: "array" }, runMs: { type: "integer" }, givesBack: { type: "boolean" } },
    }),
  ],
  load: () => assert.fail("every history has a plugin of its own"),
};

/** The outcomes of a job's first attempts at the service. Later attempts have the last outcome. */
export const TASK_ENDS = ["succeeds", "fails", "failsAgain", "isLost", "isRubbish", "needsCleanup"] as const;
export type TaskEnd = (typeof TASK_ENDS)[number];

type Task = { readonly jobUid: string; readonly endsMs: number; state: "running" | "ended" | "deleted" };
type Call = { readonly verb: "put" | "delete"; readonly name: string; readonly jobUid: string; readonly runMs: number };

export type SimServicePorts = {
  readonly nowMs: () => number;
  readonly fateOf: () => Fate;
  readonly random: () => number;
  /** Lets the deadlines of all calls that are under way pass. */
  readonly cutOff: () => void;
};

/**
 * A foreign service, and the plugin that calls it. Calls are lost, lose their answer, are done twice or come
 * late, and some are never answered. The service remembers a task's name forever: a task is started once, and a deleted
 * task is not started by a late call.
 */
export class SimService {
  readonly plugin: Plugin;
  readonly #ports: SimServicePorts;
  readonly #tasks = new Map<string, Task>();
  /** The calls of its plugin, by task name. */
  readonly #called = new Map<string, string[]>();
  #late: Call[] = [];

  constructor(ports: SimServicePorts) {
    this.#ports = ports;
    this.plugin = {
      id: serviceEntry.id,
      handle: (context) => this.#noted("handle", context, () => this.#handle(context)),
      abort: (context) => this.#noted("abort", context, () => this.#call("delete", context)),
      finalize: (context) => this.#noted("finalize", context, () => this.#finalize(context)),
    };
  }

  /** Delivers the late calls. */
  deliver(): void {
    const late = this.#late;
    this.#late = [];
    for (const call of late) this.#apply(call);
  }

  /** Checks the laws that hold at all times. */
  check(): void {
    const running = [...this.#tasks].filter(([name]) => this.#stateOf(name) === "running");
    assert.ok(
      running.length <= SERVICE_SLOTS,
      `${running.length} tasks run at the service, which has ${SERVICE_SLOTS} slots`,
    );
    const jobs = running.map(([, { jobUid }]) => jobUid);
    assert.equal(new Set(jobs).size, jobs.length, `a job runs twice at the service: ${running.map(([name]) => name)}`);
  }

  /** Checks the laws that hold once everything has come to rest. */
  checkTheEnd(): void {
    for (const name of this.#tasks.keys())
      assert.notEqual(this.#stateOf(name), "running", `${name} still runs at the service`);
    for (const [name, calls] of this.#called) {
      assert.equal(calls.at(-1), "finalize answered", `${name} was left to itself: ${calls.join(", ")}`);
    }
  }

  async #noted<T>(verb: string, { taskName }: TaskContext, run: () => Promise<T>): Promise<T> {
    const calls = this.#called.get(taskName) ?? [];
    this.#called.set(taskName, calls);
    calls.push(verb);
    const answer = await run();
    calls.push(`${verb} answered`);
    return answer;
  }

  async #handle(context: TaskContext) {
    const { resources, state, taskName, job } = context;
    const step = state.value?.["step"];
    const at = (next: string) => ({ state: { version: 1, value: { step: next } } });
    if (step === undefined) {
      const { status } = await resources.allocate({ pool: SERVICE_POOL });
      if (status !== "GRANTED")
        return { info: phaseInfo.waitingForResources({ reason: status }), recheckAfterMs: 1_000 };
      return { info: phaseInfo.queued(), ...at("start"), recheckAfterMs: 0 };
    }
    if (step === "start") {
      await this.#call("put", context);
      return { info: phaseInfo.initializing(), ...at("poll"), recheckAfterMs: 500 };
    }
    if ((await this.#ask(taskName)) === "running") return { info: phaseInfo.running(), recheckAfterMs: 1_000 };
    const ends = job.kindSpec["ends"] as readonly TaskEnd[];
    return transitionOf(ends[Math.min(context.attempt, ends.length) - 1] ?? "succeeds");
  }

  /** Some tasks release their token, others leave that to the end of their job. */
  async #finalize({ resources, job }: TaskContext): Promise<void> {
    await this.#fault();
    if (job.kindSpec["givesBack"] === true) await resources.release({ pool: SERVICE_POOL });
  }

  async #ask(name: string): Promise<"running" | "ended"> {
    await this.#fault();
    return this.#stateOf(name) === "running" ? "running" : "ended";
  }

  async #call(verb: Call["verb"], { taskName: name, job }: TaskContext): Promise<void> {
    const call = { verb, name, jobUid: job.uid, runMs: Number(job.kindSpec["runMs"]) };
    const fate = this.#ports.fateOf();
    if (fate === "late") this.#late.push(call);
    if (fate === "lost" || fate === "late") throw new Error("the service cannot be reached");
    this.#apply(call);
    if (fate === "doubled") this.#apply(call);
    if (fate === "answerLost") await this.#noAnswer();
  }

  async #fault(): Promise<void> {
    const fate = this.#ports.fateOf();
    if (fate === "lost" || fate === "late") throw new Error("the service cannot be reached");
    if (fate === "answerLost") await this.#noAnswer();
  }

  /** Fails with an error, or does not answer until the deadline. */
  async #noAnswer(): Promise<void> {
    if (this.#ports.random() < 0.7) throw new Error("the service hung up");
    this.#ports.cutOff();
    await new Promise(() => undefined);
  }

  #apply({ verb, name, jobUid, runMs }: Call): void {
    const known = this.#tasks.get(name);
    const endsMs = this.#ports.nowMs() + runMs;
    if (verb === "delete") this.#tasks.set(name, { jobUid, endsMs, state: "deleted" });
    else if (known === undefined) this.#tasks.set(name, { jobUid, endsMs, state: "running" });
    this.check();
  }

  #stateOf(name: string): Task["state"] | undefined {
    const task = this.#tasks.get(name);
    if (task?.state === "running" && this.#ports.nowMs() >= task.endsMs) task.state = "ended";
    return task?.state;
  }
}

function transitionOf(end: TaskEnd) {
  const failure = { code: "TaskFailed", reason: "so it was to be" };
  switch (end) {
    case "succeeds":
      return { info: phaseInfo.success() };
    case "fails":
      return { info: phaseInfo.permanentFailure(failure) };
    case "failsAgain":
      return { info: phaseInfo.retryableFailure(failure) };
    case "needsCleanup":
      return { info: phaseInfo.retryableFailure({ ...failure, cleanup: true }) };
    case "isLost":
      return { info: phaseInfo.retryableFailure({ ...failure, kind: "SYSTEM" }) };
    case "isRubbish":
      return { info: { ...phaseInfo.running(), phase: "FINE" as never } };
  }
}
