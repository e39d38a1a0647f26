/**
 * Histories in which every clock steps: those of the machines of all processes, and that of the database. Machines
 * sleep too. No limit of time may be over early by more than decisions follow a step.
 */
import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { isDraining, type Job } from "../../../src/core/job/job.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { pick, seededRandom } from "../../support/random.ts";
import { ClockLaws, type ClockMet } from "./clock-laws.ts";
import type { HistoryOptions } from "./history.ts";
import { kill } from "./kill.ts";
import type { Fate } from "./sim-kube.ts";
import { GPU, World } from "./world.ts";

const TICKS = 16;
const REST_TICKS_MAX = 60;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Run = {
  readonly world: World;
  readonly random: () => number;
  readonly trace: string[];
  readonly laws: ClockLaws;
};

/** Runs one history, which depends on the seed alone. Throws with the events if a law is broken. */
export async function runClockHistory(db: Db, seed: number, options: HistoryOptions): Promise<ClockMet> {
  const random = seededRandom(seed);
  const faults = { share: random() * 0.2 };
  const fateOf = (): Fate =>
    random() < faults.share ? pick(random, ["lost", "answerLost", "doubled", "late"]) : "arrives";
  const world = await World.create({
    ...{ db, random, fateOf, classes: [], processes: options.processes, ownClocks: true },
    clusters: [{ name: "east", flavor: "h100", nodes: 2, gpus: 4 }],
    queues: [{ name: "default", strategy: "BEST_EFFORT_FIFO", quotas: QUOTAS }],
  });
  const run: Run = { world, random, trace: [], laws: new ClockLaws(world) };
  try {
    for (let tick = 0; tick < TICKS; tick += 1) await faultyTick(run, tick, options.kills);
    faults.share = 0;
    await comeToRest(run);
    await run.laws.checkTheEnd();
    assert.deepEqual(world.errors, [], "no loop has thrown");
    return run.laws.met;
  } catch (error) {
    const again = `node test/tools/simulation/run.ts --clocks --histories 1 --seed ${seed}`;
    const processes = options.processes.workers > 1 ? " --processes several" : "";
    const events = run.trace.slice(-60).join("\n");
    throw new Error(`seed ${seed} (again: ${again}${processes}), before it broke:\n${events}`, { cause: error });
  } finally {
    await world.close();
  }
}

const QUOTAS = [{ flavor: "gpu/h100", resource: GPU, nominal: 8 }];

async function faultyTick(run: Run, tick: number, kills: number): Promise<void> {
  const { world, random, trace } = run;
  const passes = pick(random, [500, 2_000, 8_000, 8_000]);
  if (random() < 0.3) sleep(run, passes);
  world.pass(passes);
  trace.push(`tick ${tick}: ${passes} ms pass`);
  if (random() < 0.4) stepSomething(run);
  if (tick < 3 || random() < 0.1) await world.submit(randomJob(random, tick));
  if (random() < kills / 2) await kill(run);
  if (random() < 0.2) world.deliver((late) => late.sort(() => random() - 0.5));
  for (const process of world.workers) {
    for (const view of process.views) if (random() < 0.7) world.refresh(process, view);
  }
  // Who renews first, and who decides between a step and its renewal, is left to chance.
  const shuffled = [...world.processes(), ...world.apis].sort(() => random() - 0.5);
  for (const { member } of shuffled) if (random() < 0.8) await member.look();
  if (random() < 0.1) stepSomething(run);
  await turn(run, () => random() < 0.8);
  await run.laws.look();
}

/** Everybody does its work once. */
async function turn({ world }: Run, isTurn: () => boolean): Promise<void> {
  for (const cluster of world.clusters) await world.observeCapacity(cluster);
  for (const { planner } of world.planners) if (isTurn()) await planner.runOnce();
  if (isTurn()) await world.reap(1_000);
  for (const { worker } of world.workers) if (isTurn()) await worker.runOnce();
}

/** A machine sleeps while time passes. Of a paused VM, no clock tells that it did. */
function sleep({ world, random, trace, laws }: Run, ms: number): void {
  const { name, machine } = pick(random, [...world.processes(), ...world.apis]);
  if (machine === null) return;
  machine.tellsSleep = random() < 0.7;
  machine.slept(ms);
  laws.slept(ms, machine.tellsSleep);
  trace.push(`  the machine of ${name} sleeps${machine.tellsSleep ? "" : " and does not know"}`);
}

function stepSomething({ world, random, trace, laws }: Run): void {
  const ms = pick(random, [-9 * HOUR_MS, -HOUR_MS, -MINUTE_MS, -3_000, 700, 5_000, MINUTE_MS, HOUR_MS, 9 * HOUR_MS]);
  const far = random() < 0.1 ? pick(random, [-40 * DAY_MS, 40 * DAY_MS]) : ms;
  const { name, machine } = pick(random, [...world.processes(), ...world.apis]);
  if (random() < 0.6) {
    laws.met.databaseSteps += 1;
    // Mostly it is corrected soon.
    const isBack = world.clocks.databaseAheadMs !== 0 && random() < 0.6;
    world.clocks.databaseAheadMs = isBack ? 0 : world.clocks.databaseAheadMs + far;
    trace.push(`  the database's clock steps: it is ${world.clocks.databaseAheadMs} ms ahead`);
  } else if (machine !== null) {
    laws.met.machineSteps += 1;
    machine.wallAheadMs += far;
    trace.push(`  the clock of the machine of ${name} steps by ${far} ms`);
  }
}

function randomJob(random: () => number, at: number): SentJob {
  const annotations = {
    "sim.gangway.dev/pull": pick(random, ["100ms", "1s", "40s"]),
    "sim.gangway.dev/run": pick(random, ["2s", "20s", "1h"]),
    "sim.gangway.dev/exit-code": pick(random, ["0", "0", "137,0"]),
  };
  const resources = { limits: { [GPU]: pick(random, ["1", "2"]) } };
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "trainer", resources }] } };
  const ttl = pick(random, [null, 30, 120]);
  return {
    ...{ namespace: "default", name: `job-${at}`, generateName: "", labels: {}, annotations: {} },
    spec: {
      kind: "Job",
      replicaSpecs: { Worker: { replicas: 1 + Math.floor(random() * 3), restartPolicy: "ExitCode", template } },
      runPolicy: {
        cleanPodPolicy: "All",
        backoffLimit: 3,
        activeDeadlineSeconds: pick(random, [60, 120, 300]),
        ...(random() < 0.3 ? { maxRuntimeMs: 90_000 } : {}),
        ...(ttl === null ? {} : { ttlSecondsAfterFinished: ttl }),
        schedulingPolicy: { scheduleTimeoutSeconds: pick(random, [20, 60]), queue: "default" },
      },
    },
  };
}

/** Clocks may still be wrong, but nothing steps any more. All jobs end, also by their limits. */
async function comeToRest(run: Run): Promise<void> {
  const { world, laws } = run;
  await world.becomeWhole();
  for (let tick = 0; tick < REST_TICKS_MAX; tick += 1) {
    world.deliver((late) => late);
    await world.renew();
    for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
    await turn(run, () => true);
    await laws.look();
    const jobs = await world.jobs();
    if (tick > 3 && jobs.every(isAtRest) && world.clusters.every((cluster) => cluster.left().length === 0)) return;
    // A job whose image takes longer than its start timeout would wait for ever.
    if (tick > 12) for (const job of jobs) await world.anyIntake().cancel(job, "never starts");
    world.pass(tick < 4 ? 1_000 : 20_000);
  }
  const rest = (await world.jobs()).filter((job) => !isAtRest(job));
  assert.fail(`it does not come to rest:\n${rest.map((job) => JSON.stringify([job.name, job.status])).join("\n")}`);
}

function isAtRest(job: Job): boolean {
  return isTerminal(job.status) && !isDraining(job) && job.deleteTimeMs === null;
}
