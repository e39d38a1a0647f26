/** One run: sends grown requests to a service, and compares what each costs with what it may cost. */
import { availableParallelism, loadavg } from "node:os";
import type { DescMethod } from "@bufbuild/protobuf";
import { DEMO_CLUSTERS } from "../../../../src/adapters/simcluster/demo-clusters.ts";
import { type SimCluster, startSimCluster } from "../../../../src/adapters/simcluster/sim-cluster.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";
import { clear, clientOf, restore } from "../baseline.ts";
import { type Answer, Caller, framed } from "../caller.ts";
import { encode } from "../plan.ts";
import { Subject, type SubjectOptions } from "../subject.ts";
import { methodNamed, pathOf, shortName } from "../surface.ts";
import { codeOf } from "../verdict.ts";
import {
  type Cost,
  cpuProblem,
  growthProblem,
  latencyProblem,
  least,
  memoryProblem,
  percentile,
  shown,
} from "./judge.ts";
import { answerSize, type CostBounds, type CostInput, planInput } from "./plan.ts";
import { SecondCaller } from "./second-caller.ts";
import { Slowdown } from "./slowdown.ts";
import { StepMeter } from "./steps.ts";
import { kindOf, Suspects } from "./suspects.ts";

export type CostOptions = SubjectOptions &
  CostBounds & {
    readonly inputs: number;
    readonly seed: number;
    readonly methods: readonly DescMethod[];
    /** The first input's number. Omitted: 0. */
    readonly from?: number;
    readonly print: (line: string) => void;
  };

export type CostReport = {
  readonly inputs: number;
  readonly steps: number;
  readonly seconds: number;
  readonly findings: readonly string[];
  /** How many problems did not show again. */
  readonly gone: number;
  /** How often each RPC was answered with each status. */
  readonly counts: ReadonlyMap<string, number>;
};

/** How often what costs too much is sent again. A machine that was busy with other things is not so each time. */
const REPEATS_MAX = 10;
/** How often the smallest call of a kind is sent to learn what it costs. */
const BASE_CALLS = 9;
/** What grown calls have made is removed after so many of them. */
const INPUTS_BETWEEN_CLEARS = 500;
/** A window of a second caller's latencies. */
const INPUTS_OF_WINDOW = 100;
const WINDOW_REPEATS = 3;
/** The jobs of one input of so many are also run, if they are accepted. */
const INPUTS_BETWEEN_STEPS = 2;
/** Streams and waits have no end of their own. */
const STREAM_MS = 100;
/** A cost that is not above that of the smallest call by so much is not compared with that of half the size. */
const GROWTH_SEEN_MS = 25;
/** How far the heap may be above what lives before its garbage is looked at. */
const HEAP_SLACK_BYTES = 64 * 2 ** 20;
/** More would repeat what the first ones tell. */
const FINDINGS_MAX = 200;
const LOAD_PER_PROCESSOR_MAX = 2;
const REFUSED = methodNamed("QueueService.GetQueue");

export async function fuzzCost(options: CostOptions): Promise<CostReport> {
  await using parts = new AsyncDisposableStack();
  const clusters = await startClusters(parts);
  const subject = parts.use(await Subject.start(options));
  const caller = new Caller(subject.address, 1);
  parts.defer(() => caller.close());
  const second = new SecondCaller(subject.address);
  parts.defer(() => second.stop());
  const client = clientOf(subject, parts);
  const kubeconfigs = new Map(clusters.map((cluster) => [cluster.name, cluster.kubeconfig()]));
  await restore(client, kubeconfigs);
  const run = new CostRun(options, { subject, caller, second, clusters });
  const startMs = performance.now();
  const from = options.from ?? 0;
  for (let number = from; number < from + options.inputs && !run.isOver; number += 1) {
    await run.judge(planInput(options, number));
    if (number % INPUTS_OF_WINDOW === INPUTS_OF_WINDOW - 1) {
      await run.judgeLatency(number);
      await run.replay();
      options.print(`${run.inputs} inputs and ${run.steps} jobs, ${run.findings.length} found, ${run.doubts}`);
    }
    if (number % INPUTS_BETWEEN_CLEARS !== INPUTS_BETWEEN_CLEARS - 1 || run.isOver) continue;
    await clear(client, subject);
    await restore(client, kubeconfigs);
  }
  while (run.hasSuspects && !run.isOver) await run.replay();
  const seconds = (performance.now() - startMs) / 1000;
  const { inputs, steps, findings, gone, counts } = run;
  return { inputs, steps, seconds, findings, gone, counts };
}

async function startClusters(parts: AsyncDisposableStack): Promise<readonly SimCluster[]> {
  return Promise.all(
    DEMO_CLUSTERS.map(async ({ name, nodes }) => {
      const cluster = await startSimCluster({ name, nodes, directory: null, clock: systemClock() });
      parts.defer(() => cluster.close());
      return cluster;
    }),
  );
}

type Parts = {
  readonly subject: Subject;
  readonly caller: Caller;
  readonly second: SecondCaller;
  readonly clusters: readonly SimCluster[];
};

class CostRun {
  readonly findings: string[] = [];
  inputs = 0;
  steps = 0;
  readonly counts = new Map<string, number>();
  readonly #options: CostOptions;
  readonly #parts: Parts;
  readonly #steps: StepMeter;
  readonly #kinds = new Set<string>();
  readonly #suspects = new Suspects();
  readonly #slowdown: Slowdown;
  readonly #bases = new Map<string, Cost>();
  #window: CostInput[] = [];
  /** What was found about the input that is measured. */
  #found: string[] = [];
  /** Costs are divided by it. */
  #factor = 1;
  /** The memory that lives without any call. */
  #floor: Cost = { cpuMs: 0, memoryBytes: 0 };

  constructor(options: CostOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
    this.#slowdown = new Slowdown(() => parts.subject.yardstickMs());
    this.#steps = new StepMeter({ ...parts, slowdown: this.#slowdown });
  }

  get isOver(): boolean {
    return this.#parts.subject.hasEnded || this.findings.length >= FINDINGS_MAX;
  }

  get hasSuspects(): boolean {
    return this.#suspects.waiting > 0;
  }

  get gone(): number {
    return this.#suspects.gone;
  }

  get doubts(): string {
    return `${this.#suspects.waiting} to replay, ${this.gone} did not repeat`;
  }

  async judge(input: CostInput): Promise<void> {
    this.inputs += 1;
    this.#window.push(input);
    for (const problem of await this.#problemsOf(input)) this.#suspects.add({ input, problem });
  }

  /** Measures afresh what cost too much, and reports what has cost too much each time. */
  async replay(): Promise<void> {
    const sure = await this.#suspects.replay(async (input) => {
      if (this.isOver) return [];
      this.#bases.delete(shortName(input.method));
      return this.#problemsOf(input);
    });
    for (const { input, problem } of sure) this.#report(input, problem);
  }

  async #problemsOf(input: CostInput): Promise<readonly string[]> {
    this.#found = [];
    await this.#judge(input);
    return this.#found;
  }

  async #judge(input: CostInput): Promise<void> {
    // A first measurement is cheap: it is compared as it is.
    this.#factor = 1;
    const { second } = this.#parts;
    await second.while("refused", () => this.#refused(input.request.length));
    const { cost, answer } = await second.while("grown", () => this.#measured(input, input.request));
    if (this.#ended(input)) return;
    const code = codeOf(answer);
    this.#count(input, code);
    if (/^(INTERNAL|UNKNOWN|no status)/.test(code)) this.#report(input, `${code} ${answer.message}`);
    const size = Math.max(input.size, answerSize(input.method, answer.messages));
    await this.#judgeCost({ ...input, size }, cost);
    if (this.#ended(input)) return;
    const accepted = code === "OK" && shortName(input.method) === "JobService.CreateJob";
    if (accepted && input.number % INPUTS_BETWEEN_STEPS === 0) await this.#judgeSteps(input);
  }

  async #judgeCost(input: CostInput, first: Cost): Promise<void> {
    const bytes = input.size;
    let base = await this.#baseOf(input);
    // What a list or a watch costs grows with what earlier calls have made.
    if (cpuProblem(base, first, bytes) !== null) base = await this.#baseOf(input, true);
    const problem = await this.#lasting(first, (cost) => cpuProblem(base, cost, bytes), input, input.request);
    if (problem !== null) this.#found.push(problem);
    const memory = memoryProblem(this.#floor, first, bytes);
    if (memory !== null) await this.#judgeMemory(input);
    if (first.cpuMs - base.cpuMs > GROWTH_SEEN_MS) await this.#judgeGrowth(input, base);
  }

  async #judgeGrowth(input: CostInput, base: Cost): Promise<void> {
    const half = input.shrunk(0.5);
    if (half.length < input.request.length / 3 || this.#parts.subject.hasEnded) return;
    this.#factor = await this.#slowdown.now();
    const halfCosts: Cost[] = [];
    for (let time = 0; time < 2; time += 1) halfCosts.push((await this.#measured(input, half)).cost);
    const halfCost = least(halfCosts);
    const { cost } = await this.#measured(input, input.request);
    const problemOf = (whole: Cost) => growthProblem(base, halfCost, whole, input.size);
    const problem = await this.#lasting(cost, problemOf, input, input.request);
    if (problem !== null) this.#found.push(problem);
  }

  /** Collects garbage before and after: the heap holds also what earlier calls have left. */
  async #judgeMemory(input: CostInput): Promise<void> {
    const { subject } = this.#parts;
    await subject.meter(true);
    const { peakBytes } = await subject.meter(true);
    await this.#sent(input, input.request);
    if (subject.hasEnded) return;
    const after = await subject.meter();
    const floor = { cpuMs: 0, memoryBytes: peakBytes };
    const problem = memoryProblem(floor, { cpuMs: 0, memoryBytes: after.peakBytes }, input.size);
    if (problem !== null) this.#found.push(problem);
    // Caches grow to their bounds; what a leak adds is a finding of the other fuzz.
    this.#floor = { cpuMs: 0, memoryBytes: Math.max(this.#floor.memoryBytes, peakBytes + HEAP_SLACK_BYTES) };
  }

  /** The problem, if each of several measurements has it. Noise only adds. */
  async #lasting(
    first: Cost,
    problemOf: (cost: Cost) => string | null,
    input: CostInput,
    request: Buffer,
  ): Promise<string | null> {
    let problem = problemOf(first);
    for (let time = 0; time < REPEATS_MAX && problem !== null && !this.#parts.subject.hasEnded; time += 1) {
      this.#factor = await this.#slowdown.now();
      problem = problemOf((await this.#measured(input, request)).cost);
    }
    return problem;
  }

  async #judgeSteps(input: CostInput): Promise<void> {
    const found = await this.#steps.judge(input);
    this.steps += found.steps;
    if (found.problem !== null) this.#found.push(`worker: ${found.problem}`);
    this.#ended(input);
  }

  /** Compares the latencies of a window. What differs is sent again, because the machine may have been busy. */
  async judgeLatency(number: number): Promise<void> {
    const { second } = this.#parts;
    const window = this.#window;
    this.#window = [];
    const { refused, grown } = second.take();
    if (latencyProblem(refused, grown) === null || this.isOver || isBusy()) return;
    let problem: string | null = null;
    for (let time = 0; time < WINDOW_REPEATS; time += 1) {
      for (const input of window) {
        await second.while("refused", () => this.#refused(input.request.length));
        await second.while("grown", () => this.#sent(input, input.request));
        if (this.#ended(input)) return;
      }
      const again = second.take();
      problem = latencyProblem(again.refused, again.grown);
      if (problem === null) return;
    }
    this.#note(`inputs ${number + 1 - window.length} to ${number}: ${problem}`);
  }

  /** What the smallest call costs; for a batch, so many of them. */
  async #baseOf(input: CostInput, anew = false): Promise<Cost> {
    const key = shortName(input.method);
    let base = this.#bases.get(key);
    if (base === undefined || anew) {
      this.#factor = await this.#slowdown.now();
      const costs: number[] = [];
      for (let time = 0; time < BASE_CALLS; time += 1) {
        costs.push((await this.#measured(input, input.small)).cost.cpuMs);
      }
      base = { cpuMs: percentile(costs, 0.5), memoryBytes: 0 };
      this.#bases.set(key, base);
    }
    return { cpuMs: base.cpuMs * input.items, memoryBytes: 0 };
  }

  async #measured(input: CostInput, request: Buffer): Promise<{ cost: Cost; answer: Answer }> {
    const { subject } = this.#parts;
    try {
      const before = await subject.meter();
      const answer = await this.#sent(input, request);
      const after = await subject.meter();
      return { cost: { cpuMs: (after.cpuMs - before.cpuMs) / this.#factor, memoryBytes: after.peakBytes }, answer };
    } catch (error) {
      if (!subject.hasEnded) throw error;
      return { cost: { cpuMs: 0, memoryBytes: 0 }, answer: await this.#sent(input, request) };
    }
  }

  #sent({ method }: CostInput, request: Buffer): Promise<Answer> {
    const options = method.methodKind === "unary" ? {} : { messagesMax: 20, leaveAfterMs: STREAM_MS };
    return this.#parts.caller.call(pathOf(method), framed(request), options);
  }

  /** A call of this size that is refused as soon as it is read. */
  async #refused(bytes: number): Promise<void> {
    await this.#parts.caller.call(pathOf(REFUSED), framed(encode(REFUSED, { name: "a".repeat(bytes) })));
  }

  #count(input: CostInput, code: string): void {
    const key = `${shortName(input.method)} ${code.split(" (")[0]}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }

  #ended(input: CostInput): boolean {
    const { subject } = this.#parts;
    if (subject.hasEnded) this.#report(input, `the service ended: ${subject.output.slice(-400)}`);
    return subject.hasEnded;
  }

  #report(input: CostInput, problem: string): void {
    const { seed, print } = this.#options;
    const kind = kindOf({ input, problem });
    if (this.#kinds.has(kind)) return;
    this.#kinds.add(kind);
    const line = `${input.what} (${shown(input.request.length)}): ${problem}`;
    this.findings.push(line);
    print(line);
    print(`  npm run fuzz -- cost 1 --seed ${seed} --from ${input.number}`);
  }

  #note(problem: string): void {
    this.findings.push(problem);
    this.#options.print(problem);
  }
}

/** True if programs wait for a processor: calls are late whatever the service does. */
function isBusy(): boolean {
  const [load = 0] = loadavg();
  return load > LOAD_PER_PROCESSOR_MAX * availableParallelism();
}
