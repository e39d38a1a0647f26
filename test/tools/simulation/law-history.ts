import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { isDraining, type Job } from "../../../src/core/job/job.ts";
import { pick, seededRandom } from "../../support/random.ts";
import { broken, type HistoryOptions } from "./history.ts";
import { kill } from "./kill.ts";
import { FAULTY_TICKS, type LawWorld, lawWorld } from "./law-worlds.ts";
import { LedgerLaws } from "./ledger-laws.ts";
import { viewLedger } from "./ledger-view.ts";
import { PreemptionLaws } from "./preemption-laws.ts";
import { requireStill } from "./rest.ts";
import { requireSoon } from "./share-laws.ts";
import type { Fate } from "./sim-kube.ts";
import { World } from "./world.ts";

/** Without faults a world whose jobs never end is at rest after so many ticks at most. */
const REST_TICKS_MAX = 60;
const REST_TICK_MS = 2_000;

type Run = {
  readonly db: Db;
  readonly world: World;
  readonly random: () => number;
  readonly trace: string[];
  readonly of: LawWorld;
  readonly ledger: LedgerLaws;
};

/** What a history met, so that tests can tell that its law was not held by nothing. */
export type LawMet = Readonly<Record<"preempted" | "reserved" | "ticks", number>>;

/**
 * Runs one history of a world that is made for one law, which depends on the seed alone: first with faults, then
 * without, until the law can be judged. Throws with the events if the law is broken.
 */
export async function runLawHistory(db: Db, seed: number, options: HistoryOptions): Promise<LawMet> {
  const random = seededRandom(seed);
  const faults = { share: random() * 0.3 };
  const fateOf = (): Fate =>
    random() < faults.share ? pick(random, ["lost", "answerLost", "doubled", "late"]) : "arrives";
  const of = lawWorld(random, seed);
  const laws = new PreemptionLaws(db, (uids) => world.store.explain.gangsNow(uids));
  const { queues, clusters } = of;
  const world: World = await World.create({
    ...{ db, random, fateOf, queues, clusters, classes: [], processes: options.processes },
    watch: (store) => laws.watch(store),
    watchWorker: (store) => laws.watchWorker(store),
  });
  const run: Run = { db, world, random, trace: [], of, ledger: new LedgerLaws(db) };
  try {
    for (let tick = 0; tick < FAULTY_TICKS; tick += 1) await faultyTick(run, tick, options.kills);
    faults.share = 0;
    await world.becomeWhole();
    const ticks =
      of.ends.kind === "atRest" ? await judgeAtRest(run, of.ends.judge) : await judgeUntilAdmitted(run, of.ends);
    assert.deepEqual(world.errors, [], "no loop has thrown");
    const { preempted, reserved } = laws.met;
    return { preempted, reserved, ticks };
  } catch (error) {
    throw broken({ seed, options, trace: run.trace, law: of.law }, error);
  } finally {
    await world.close();
  }
}

async function faultyTick(run: Run, tick: number, kills: number): Promise<void> {
  const { world, random, trace, ledger } = run;
  const passes = pick(random, [20, 500, 2_000, 8_000]);
  trace.push(`tick ${tick}: ${passes} ms pass`);
  world.pass(passes);
  await submit(run, tick);
  if (random() < 0.2) world.deliver((late) => late.sort(() => random() - 0.5));
  for (const process of world.workers)
    for (const view of process.views) if (random() < 0.6) world.refresh(process, view);
  for (const { member } of world.processes()) if (random() < 0.8) await member.look();
  for (const cluster of world.clusters) if (random() < 0.5) await world.observeCapacity(cluster);
  for (const { planner } of world.planners) if (random() < 0.6) await planner.runOnce();
  await ledger.look("planner", true);
  if (random() < 0.3) await world.reap(1_000);
  for (const { worker } of world.workers) if (random() < 0.8) await worker.runOnce();
  if (random() < kills) await kill(run);
  await ledger.look("workers", true);
}

async function calmTick({ world, ledger }: Run, passes: number): Promise<void> {
  world.pass(passes);
  world.deliver((late) => late);
  for (const { member } of world.processes()) await member.look();
  for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
  for (const cluster of world.clusters) await world.observeCapacity(cluster);
  for (const { planner } of world.planners) await planner.runOnce();
  await ledger.look("planner without faults", true);
  for (const { worker } of world.workers) await worker.runOnce();
  await ledger.look("workers without faults", true);
}

async function submit({ world, of }: Run, tick: number): Promise<void> {
  for (const job of of.arrivals(tick)) await world.submit(job);
}

async function judgeAtRest(run: Run, judge: (view: Awaited<ReturnType<typeof viewLedger>>) => void): Promise<number> {
  const { db, world, ledger } = run;
  for (let tick = 0; tick < REST_TICKS_MAX; tick += 1) {
    await calmTick(run, REST_TICK_MS);
    await world.reap(REST_TICK_MS);
    if ((await world.jobs()).some((job) => isMoving(job, world.clock.atMs))) continue;
    await requireStill(db, world, () => ledger.look("planner at rest", true));
    if ((await world.jobs()).some((job) => isMoving(job, world.clock.atMs))) continue;
    judge(await viewLedger(db));
    return tick;
  }
  const moving = (await world.jobs()).filter((job) => isMoving(job, world.clock.atMs));
  return assert.fail(
    `no rest after ${REST_TICKS_MAX} ticks: ${moving.map(({ name, status }) => `${name} ${status.phase}`)}`,
  );
}

/** True for a job that starts, leaves, waits for others that leave, or backs off. */
function isMoving(job: Job, nowMs: number): boolean {
  const { phase, eviction, nomination, backoff } = job.status;
  if (phase !== "WAITING") return phase !== "RUNNING" || eviction !== undefined;
  return (
    isDraining(job) ||
    (nomination !== undefined && nomination.reservation === undefined) ||
    (backoff?.notBeforeMs ?? 0) > nowMs
  );
}

async function judgeUntilAdmitted(run: Run, { job: name, boundMs, tickMs }: OnceAdmitted): Promise<number> {
  const { world, trace } = run;
  const sinceMs = world.clock.atMs;
  for (let tick = FAULTY_TICKS; ; tick += 1) {
    await submit(run, tick);
    await calmTick(run, tickMs);
    if (tick % 4 === 0) await world.reap(4 * tickMs);
    const job = (await world.jobs()).find((one) => one.name === name);
    assert.ok(job, `${name} was submitted`);
    const isAdmitted = job.admissions.length > 0;
    trace.push(`tick ${tick}: ${name} ${JSON.stringify(job.status.waiting)} ${job.status.nomination?.sinceMs}`);
    requireSoon(isAdmitted ? null : sinceMs, world.clock.atMs, boundMs);
    if (isAdmitted) return tick - FAULTY_TICKS;
  }
}

type OnceAdmitted = Extract<LawWorld["ends"], { readonly kind: "onceAdmitted" }>;
