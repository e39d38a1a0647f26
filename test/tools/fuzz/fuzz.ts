/** One run: starts a service, sends it the calls of a seed in groups, and reports everything that must not be. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Bank } from "./bank.ts";
import { clear, clientOf, leftOf, probe, restore, startClusters } from "./baseline.ts";
import { Caller } from "./caller.ts";
import { type ControlLoop, startControlLoop } from "./control.ts";
import { Departed } from "./departed.ts";
import { digester } from "./digest.ts";
import { Findings } from "./findings.ts";
import { alone, type GroupDeps, misused, together } from "./groups.ts";
import { growth } from "./growth.ts";
import { HttpCaller } from "./http-caller.ts";
import type { Footprint } from "./monitor.ts";
import { planCall } from "./plan.ts";
import { type Group, schedule } from "./schedule.ts";
import { stallsOver, stoodStill } from "./stalls.ts";
import { Subject, type SubjectOptions } from "./subject.ts";
import { shortName } from "./surface.ts";
import { isTimed } from "./verdict.ts";

export type FuzzOptions = SubjectOptions & {
  readonly calls: number;
  /** The run ends after the group in which this time is over. Omitted: it sends all calls. */
  readonly secondsMax?: number;
  readonly seed: number;
  readonly methods: readonly DescMethod[];
  /** True: calls go over HTTP, where they can. Omitted: over gRPC. */
  readonly http?: boolean;
  readonly print: (line: string) => void;
};

export type FuzzReport = {
  readonly calls: number;
  readonly seconds: number;
  /** One line for each kind of finding. */
  readonly findings: readonly string[];
  /** Times in which the service's event loop did not run for longer than it may. */
  readonly stalls: readonly string[];
  /** How often each RPC was answered with each status. */
  readonly counts: ReadonlyMap<string, number>;
};

/** A checkpoint removes everything and counts what is left. */
const GROUPS_BETWEEN_CHECKPOINTS = 80;
const CONNECTIONS = 4;
/** More would repeat what the first ones tell. */
const FINDINGS_MAX = 20;
/** The most connections of the service's pool, and those for notifications. */
const DATABASE_CONNECTIONS_MAX = 12;

export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  await using parts = new AsyncDisposableStack();
  const control = startControlLoop();
  parts.defer(async () => void (await control.stop()));
  const kubeconfigs = await startClusters(parts);
  const subject = parts.use(await Subject.start(options));
  const { address, url } = subject;
  const caller = options.http ? new HttpCaller(address, CONNECTIONS, url) : new Caller(address, CONNECTIONS);
  parts.defer(() => caller.close());
  const client = clientOf(subject, parts);
  const run = new Run(options, { subject, caller, control });
  await restore(client, kubeconfigs);
  const deps = await run.deps();
  // The start of the service is not part of any promise.
  await Promise.all([subject.stalls(), control.take()]);
  const startMs = performance.now();
  for (const [at, group] of schedule(options.calls).entries()) {
    await sendGroup(deps, group, run);
    // Calls repeat names that they have seen in answers, so that each probe has a name of its own.
    await run.afterGroup(group, () => probe(client, `probe-${at}`));
    const isLate = performance.now() - startMs > (options.secondsMax ?? Number.POSITIVE_INFINITY) * 1000;
    if (run.isOver || isLate) break;
    if (at % GROUPS_BETWEEN_CHECKPOINTS !== GROUPS_BETWEEN_CHECKPOINTS - 1) continue;
    await run.checkpoint(() => clear(client, subject));
    await restore(client, kubeconfigs);
  }
  const seconds = (performance.now() - startMs) / 1000;
  if (!subject.hasEnded) {
    await run.checkpoint(() => clear(client, subject));
    caller.close();
    const status = await subject.stop();
    if (status !== 0) run.findings.note(`the service ended with status ${status}: ${subject.output}`);
  }
  return { ...run.result, seconds };
}

async function sendGroup(deps: GroupDeps, group: Group, run: Run): Promise<void> {
  let number = group.from;
  const next = () => run.plan(number++, group);
  if (group.kind === "alone") await alone(deps, next, group.calls);
  else if (group.kind === "misuse") await misused(deps, next, group.calls);
  else await together(deps, next, group.calls);
}

class Run {
  readonly findings: Findings;
  readonly #options: FuzzOptions;
  readonly #parts: { readonly subject: Subject; readonly caller: Caller; readonly control: ControlLoop };
  readonly #bank = new Bank();
  readonly #counts = new Map<string, number>();
  readonly #stalls: string[] = [];
  #calls = 0;
  /** The footprint of the service at the first checkpoint. */
  #footprint: Footprint | null = null;

  constructor(options: FuzzOptions, parts: { subject: Subject; caller: Caller; control: ControlLoop }) {
    this.#options = options;
    this.#parts = parts;
    this.findings = new Findings({ ...options, caller: parts.caller });
  }

  async deps(): Promise<GroupDeps> {
    const departed = new Departed();
    return {
      caller: this.#parts.caller,
      bank: this.#bank,
      seed: this.#options.seed,
      departed,
      digest: await digester(this.#parts.subject, departed),
      count: (call, code) => {
        this.#calls += 1;
        const key = `${shortName(call.method)} ${code}`;
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      },
      report: (finding) => this.findings.report(finding),
    };
  }

  get isOver(): boolean {
    return this.#parts.subject.hasEnded || this.findings.all.length >= FINDINGS_MAX;
  }

  get result(): Omit<FuzzReport, "seconds"> {
    return { calls: this.#calls, findings: this.findings.all, stalls: this.#stalls, counts: this.#counts };
  }

  plan(number: number, group: Group) {
    const call = planCall({ ...this.#options, bank: this.#bank }, number, group.styles);
    this.findings.sent(call);
    return call;
  }

  async afterGroup({ kind, from, calls }: Group, probe: () => Promise<void>): Promise<void> {
    const { subject, control } = this.#parts;
    const name = `the group ${kind} of calls ${from} to ${from + calls - 1}`;
    if (subject.hasEnded) {
      this.findings.note(`in ${name}, the service ended: ${subject.output}`);
      return;
    }
    const notes: string[] = [];
    await probe().catch((error: unknown) => notes.push(`after ${name}, a well-formed call failed: ${error}`));
    for (const line of subject.newErrors()) notes.push(`in ${name}, the service logged ${line}`);
    const [own, machine] = await Promise.all([subject.stalls(), control.take()]);
    const isNoisy = stoodStill(machine);
    if (isNoisy) {
      this.findings.dropTimed();
      this.#options.print(`in ${name}, the machine stood still, so that no time-out of it counts`);
    }
    for (const note of notes) if (!isNoisy || !isTimed(note)) this.findings.note(note);
    await this.findings.describe();
    for (const line of stallsOver(own, machine)) this.#stalled(`in ${name}, ${line}`);
  }

  /** Removes everything, and counts what is left and what has grown. */
  async checkpoint(clearAll: () => Promise<void>): Promise<void> {
    const { subject } = this.#parts;
    const note = (problem: string) => this.findings.note(problem);
    await clearAll().catch((error: unknown) => note(`what the calls made could not be removed: ${error}`));
    const left = await leftOf(subject);
    if (left !== "") note(`after everything was removed, there are ${left}`);
    const now = await subject.footprint();
    this.#footprint ??= now;
    for (const grown of growth(this.#footprint, now)) note(grown);
    const connections = await subject.connections();
    if (connections !== null && connections > DATABASE_CONNECTIONS_MAX) note(`${connections} database connections`);
    const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
    const sockets = now.handles["TCPSocketWrap"] ?? 0;
    const used = [`heap ${mib(now.heapBytes)}`, `resident ${mib(now.rssBytes)}`, `sockets ${sockets}`];
    if (connections !== null) used.push(`database connections ${connections}`);
    this.#options.print(`${this.#calls} calls: ${used.join(", ")}`);
  }

  #stalled(line: string): void {
    this.#stalls.push(line);
    this.#options.print(line);
  }
}
