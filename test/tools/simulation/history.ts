import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { currentAdmission } from "../../../src/core/job/job.ts";
import { keptMembers, memberCount } from "../../../src/core/job/roles.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { pick, seededRandom } from "../../support/random.ts";
import { Callers } from "./callers.ts";
import { checkNoReplicaTwice, comeToRest } from "./come-to-rest.ts";
import { Incidents } from "./incidents.ts";
import { kill } from "./kill.ts";
import { LedgerLaws } from "./ledger-laws.ts";
import { LimitedQueues } from "./limited-queues.ts";
import { MemberLaws, recordedAttempt } from "./member-laws.ts";
import { PlacementLaws } from "./placement-laws.ts";
import { PreemptionLaws } from "./preemption-laws.ts";
import { Preemptions } from "./preemptions.ts";
import { QuotaAdmins } from "./quota-admins.ts";
import { randomJob, randomTask } from "./random-jobs.ts";
import { NO_POLICIES, type RandomPolicies, randomPolicies, withRandomPolicy } from "./random-policies.ts";
import { requireStill } from "./rest.ts";
import type { Fate } from "./sim-kube.ts";
import { SERVICE_KIND } from "./sim-service.ts";
import { World } from "./world.ts";

const TICKS = 50;

export type HistoryOptions = {
  readonly processes: { readonly intakes: number; readonly planners: number; readonly workers: number };
  /** How often a process is killed, as a share of all ticks. */
  readonly kills: number;
};

/** One process of each role, as in the embedded service. */
export const ALONE: HistoryOptions = { processes: { intakes: 1, planners: 1, workers: 1 }, kills: 0.08 };
/** Several processes, as a team runs them. A process is killed every few seconds. */
export const SEVERAL: HistoryOptions = { processes: { intakes: 2, planners: 2, workers: 3 }, kills: 0.5 };

type Run = {
  readonly db: Db;
  readonly options: HistoryOptions;
  readonly world: World;
  readonly random: () => number;
  readonly trace: string[];
  readonly queues: LimitedQueues;
  readonly incidents: Incidents;
  readonly placements: PlacementLaws;
  readonly preemptions: Preemptions;
  readonly members: MemberLaws;
  readonly ledger: LedgerLaws;
  /** Null: the queues have no policies, and jobs are preempted at random. */
  readonly shared: SharedQueues | null;
};

/** What happens in a world whose queues share by policies. */
type SharedQueues = {
  readonly policies: RandomPolicies;
  readonly admins: QuotaAdmins;
  readonly callers: Callers;
  readonly laws: PreemptionLaws;
};

/** What a history met, so that tests can tell that its laws were not held by nothing. */
export type Met = Readonly<
  Record<
    | "replaced"
    | "relabelled"
    | "inRack"
    | "removed"
    | "taken"
    | "onPlan"
    | "offPlan"
    | "returned"
    | "preempted"
    | "undone"
    | "readmitted"
    | "reserved"
    | "takenBack"
    | "turnedOver"
    | "frozen"
    | "calls",
    number
  >
>;

/**
 * Runs one random history, which depends on the seed alone. In most of them queues form a tree and share by policies.
 * Throws with the events if a law is broken.
 */
export async function runHistory(db: Db, seed: number, options: HistoryOptions = ALONE): Promise<Met> {
  const random = seededRandom(seed);
  const faults = { share: random() * 0.4 };
  const fateOf = (): Fate =>
    random() < faults.share ? pick(random, ["lost", "answerLost", "doubled", "late"]) : "arrives";
  const policies = random() < 0.7 ? randomPolicies(random) : null;
  const { queues, classes } = policies ?? NO_POLICIES;
  const laws = new PreemptionLaws(db, (uids) => world.store.explain.gangsNow(uids));
  const world: World = await World.create({
    db,
    random,
    fateOf,
    clusters: [
      { name: "east", flavor: "h100", nodes: 2, gpus: 4 },
      { name: "west", flavor: "a100", nodes: 1 + Math.floor(random() * 3), gpus: 2 },
    ],
    processes: options.processes,
    queues,
    classes,
    ...(policies === null
      ? {}
      : { watch: (store) => laws.watch(store), watchWorker: (store) => laws.watchWorker(store) }),
  });
  const run: Run = {
    db,
    options,
    world,
    random,
    trace: [],
    queues: new LimitedQueues(world, random),
    incidents: new Incidents(world, random),
    placements: new PlacementLaws(world),
    preemptions: new Preemptions(world, db, random),
    members: new MemberLaws(world),
    ledger: new LedgerLaws(db),
    shared: policies === null ? null : sharedQueues(world, random, { policies, laws }),
  };
  try {
    for (let tick = 0; tick < TICKS; tick += 1) await faultyTick(run, tick);
    faults.share = 0;
    await endPolicies(run);
    await comeToRest(world, {
      act: (passesMs) => actAtRest(run, passesMs),
      check: () => checkRecords(run),
      every: 4,
    });
    await checkTheEnd(run);
    assert.deepEqual(world.errors, [], "no loop has thrown");
    return metBy(run);
  } catch (error) {
    throw broken({ seed, options, trace: run.trace }, error);
  } finally {
    await world.close();
  }
}

type BrokenHistory = {
  readonly seed: number;
  readonly options: HistoryOptions;
  readonly trace: readonly string[];
  /** The law that its world was made for. Omitted: none. */
  readonly law?: string;
};

/** The error of a history that broke a law: how to run it again, and its last events. */
export function broken({ seed, options, trace, law }: BrokenHistory, cause: unknown): Error {
  const flags = `${law === undefined ? "" : " --laws"}${options === SEVERAL ? " --processes several" : ""}`;
  const again = `node test/tools/simulation/run.ts${flags} --histories 1 --seed ${seed}`;
  const what = `${law === undefined ? "" : `${law}: `}seed ${seed}`;
  return new Error(`${what} (again: ${again}), before it broke:\n${trace.slice(-40).join("\n")}`, { cause });
}

function sharedQueues(
  world: World,
  random: () => number,
  { policies, laws }: Pick<SharedQueues, "policies" | "laws">,
): SharedQueues {
  const isFair = policies.queues.some(({ policy }) => policy?.fairSharing !== null);
  const admins = new QuotaAdmins(world, random, isFair);
  return { policies, laws, admins, callers: new Callers(world, random, policies.leaves) };
}

function metBy({ incidents, ledger, members, placements, shared }: Run): Met {
  const { preempted = 0, undone = 0, readmitted = 0, reserved = 0, takenBack = 0 } = shared?.laws.met ?? {};
  const { turnedOver, frozen } = ledger.met;
  return {
    ...incidents.met,
    ...placements.met,
    ...members.met,
    frozen,
    preempted,
    undone,
    readmitted,
    reserved,
    takenBack,
    turnedOver,
    calls: shared?.callers.met.granted ?? 0,
  };
}

/** Ends all that could keep jobs waiting for ever. */
async function endPolicies(run: Run): Promise<void> {
  await run.queues.resumeAll();
  await run.shared?.admins.endAll();
  await run.shared?.callers.giveAllBack();
  if (run.shared === null) await run.preemptions.withdrawAll();
  await run.ledger.look("admins and callers at the end", true);
}

async function faultyTick(run: Run, tick: number): Promise<void> {
  const { world, random, trace } = run;
  const passes = pick(random, [0, 20, 100, 500, 2_000, 8_000]);
  world.pass(passes);
  trace.push(`tick ${tick}: ${passes} ms pass`);
  await submitSome(run, tick);
  if (random() < 0.2) world.service.deliver();
  if (random() < 0.2) world.deliver((late) => late.sort(() => random() - 0.5));
  for (const process of world.workers) {
    for (const view of process.views) {
      if (random() < 0.6)
        world.refresh(
          process,
          view,
          (["pods", "services", "configMaps"] as const).filter(() => random() < 0.7),
        );
    }
  }
  for (const { member } of world.processes()) if (random() < 0.8) await member.look();
  for (const cluster of world.clusters) if (random() < 0.5) await world.observeCapacity(cluster);
  await run.ledger.look("intake");
  for (const { planner } of world.planners) if (random() < 0.6) await planner.runOnce();
  await run.ledger.look("planner", true);
  if (random() < 0.5) await world.reap(1_000);
  await run.ledger.look("reaper");
  for (const { worker } of world.workers) if (random() < 0.8) await worker.runOnce();
  await run.ledger.look("worker");
  if (random() < run.options.kills) await kill(run);
  if (random() < 0.05) await endSomething(run);
  if (random() < 0.15) trace.push(`  ${run.incidents.act()}`);
  if (random() < 0.2) await changeSomething(run);
  await run.ledger.look("processes that end", true);
  if (random() < (run.shared === null ? 0.06 : 0.02)) trace.push(`  ${await run.queues.change()}`);
  await share(run);
  if (random() < 0.15) await audit(run);
  await run.ledger.look("others", true);
  checkNoReplicaTwice(world, EVERYWHERE);
  world.service.check();
  if (tick % 3 === 0) await checkRecords(run);
}

async function submitSome({ world, random, shared }: Run, tick: number): Promise<void> {
  const { leaves } = shared?.policies ?? NO_POLICIES;
  const [first, later] = shared === null ? [5, 0.04] : [8, 0.25];
  if (tick < first || random() < later) {
    const job = randomJob(random, tick, { queues: leaves, small: shared !== null });
    await world.submit(shared === null ? job : { ...job, spec: withRandomPolicy(job.spec, random) });
  }
  if (tick < 3 || random() < 0.04) await world.submit(randomTask(random, tick));
}

/** Where queues share by policies: admins, callers and lost counters. Elsewhere: preemptions at random. */
async function share({ world, random, trace, shared, preemptions, ledger }: Run): Promise<void> {
  if (shared === null) {
    if (random() < 0.12) trace.push(`  ${await preemptions.preempt()}`);
    if (random() < 0.03) await preemptions.withdrawAll();
    return;
  }
  if (random() < 0.4) {
    trace.push(`  ${await shared.callers.act()}`);
    await ledger.look("caller", true);
  }
  if (random() < 0.2) {
    trace.push(`  ${await shared.admins.change()}`);
    await ledger.look("admin", true);
  }
  if (random() < 0.03) {
    trace.push("  the counters lose everything");
    world.loseCounters();
  }
  if (random() < 0.03) {
    trace.push("  the epoch of the counters ends");
    await world.loseEpochs();
  }
}

async function endSomething({ world, random, trace }: Run): Promise<void> {
  const job = pick(random, await world.jobs());
  if (job === undefined) return;
  const which = { namespace: job.namespace, name: job.name };
  trace.push(`  ${job.name} cancelled or deleted`);
  if (random() < 0.5) await world.anyIntake().cancel(which, "simulated");
  else await world.anyIntake().remove(which);
}

/** Changes a job before its end. A change that its phase or its kind does not allow is refused. */
async function changeSomething({ world, random, trace }: Run): Promise<void> {
  const job = pick(random, await world.jobs());
  if (job === undefined) return;
  const wanted = pick(random, [
    { suspend: true },
    { suspend: job.spec.runPolicy.suspend !== true },
    { suspend: false },
    { priority: Math.floor(random() * 3) },
    { replicas: { Worker: 1 + Math.floor(random() * 5) } },
    { replicas: { Worker: 1 + Math.floor(random() * 5) } },
  ]);
  const { kind } = await world.anyIntake().change(job, { version: null, ...wanted });
  trace.push(`  ${job.name} ${JSON.stringify(wanted)}: ${kind}`);
  // Sets of jobs and jobs without pods have no replica type of that name, and a Job may have fewer completions.
  const hasLimits = [SERVICE_KIND, "JobSet", "TrainJob", "Job.v1.batch"].includes(job.spec.kind);
  const refused = "replicas" in wanted && hasLimits ? ["invalid", "fixedSize"] : ["fixedSize"];
  assert.ok(["changed", "unchanged", "terminal", "ending", "notFound", ...refused].includes(kind), kind);
}

/**
 * With fresh caches and two steps, no admission may hold its tokens with too few pods for longer than its start
 * timeout.
 */
async function audit({ db, world, ledger, members: laws }: Run): Promise<void> {
  await world.becomeWhole();
  for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
  for (let look = 1; look <= 2; look += 1) {
    for (const { uid } of await world.jobs()) for (const { worker } of world.workers) worker.wake(uid);
    for (const { worker } of world.workers) await worker.runOnce();
  }
  await ledger.look("audit", true);
  await requireStill(db, world, async () => ledger.look("planner in an audit", true));
  for (const job of await world.jobs()) {
    const admission = currentAdmission(job);
    if (admission === null || admission.state !== "live") continue;
    laws.checkReturned(job, admission);
    const { minAvailable, scheduleTimeoutSeconds } = job.spec.runPolicy.schedulingPolicy;
    const cluster = world.clusters.find(({ name }) => name === admission.cluster);
    const pods = (cluster?.pods() ?? [])
      .map(podView)
      .filter((pod) => pod.jobUid === job.uid && pod.admission === admission.number && !pod.deleting);
    const up = pods.filter(({ phase }) => ["Running", "Succeeded"].includes(phase));
    const gone = Object.entries(admission.ended ?? {}).filter(([key]) => {
      return !pods.some(({ role, index }) => `${role}/${index}` === key.toLowerCase());
    });
    const goneUp = gone.filter(([, end]) => end === "SUCCEEDED").length;
    // A member that has failed for good while the job goes on, such as a dynamic worker, is not required.
    const over = pods.filter(
      ({ phase, role, index, attempt }) => phase === "Failed" && attempt === recordedAttempt(job, role, index),
    );
    const members = memberCount(keptMembers(job, admission));
    const wanted = Math.min(minAvailable, members - over.length - (gone.length - goneUp));
    const runs = up.length + goneUp;
    if (runs < wanted) {
      assert.notEqual(admission.belowMinSinceMs, null, `${job.name} is known to run with ${runs} of ${wanted}`);
      const belowMs = world.clock.atMs - (admission.belowMinSinceMs ?? 0);
      assert.ok(
        belowMs <= scheduleTimeoutSeconds * 1000,
        `${job.name} holds tokens with too few pods for ${belowMs} ms`,
      );
    }
  }
}

/** Laws that the records must keep at all times, under any faults. */
async function checkRecords({ world, queues, preemptions, members, placements, shared }: Run): Promise<void> {
  const jobs = await world.jobs();
  placements.check();
  queues.check(jobs);
  preemptions.check(jobs, shared === null);
  for (const job of jobs) {
    if (job.status.phase === "SUSPENDED") {
      assert.ok(
        job.admissions.every(({ state }) => state === "undone"),
        `${job.name} has a live admission although it is suspended`,
      );
    }
    // An undone admission may have had another minimum: a job can be resized while it waits.
    for (const admission of job.admissions.filter(({ state }) => state === "live")) {
      const members = memberCount(admission.members);
      assert.ok(
        members >= job.spec.runPolicy.schedulingPolicy.minAvailable,
        `${job.name} was admitted with ${members} members`,
      );
    }
    const terminal = job.status.conditions.filter(
      ({ type, status }) => status === "True" && ["Succeeded", "Failed", "Cancelled"].includes(type),
    );
    assert.ok(
      terminal.length === (isTerminal(job.status) ? 1 : 0),
      `${job.name} has ${terminal.length} terminal conditions in ${job.status.phase}`,
    );
  }
  for (const job of jobs) await members.checkTokens(job);
  // In a tree queues borrow: the laws of the ledger say how much.
  if (shared !== null) return;
  for (const queue of await world.store.admin.listQueues()) {
    for (const { flavor, nominal } of queue.quotas) {
      const used = queue.used[flavor] ?? 0;
      assert.ok(used <= nominal, `${queue.name} uses ${used} of ${nominal} ${flavor}`);
    }
  }
}

/** Pods that are being deleted count too: they may still run. */
const EVERYWHERE = { counts: () => true, deleting: true };

/** One turn of every process without further faults. */
async function actAtRest({ world, ledger }: Run, passesMs: number): Promise<void> {
  world.service.deliver();
  for (const { member } of world.processes()) await member.look();
  for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
  for (const cluster of world.clusters) await world.observeCapacity(cluster);
  for (const { planner } of world.planners) await planner.runOnce();
  await ledger.look("planner at rest", true);
  for (const { worker } of world.workers) await worker.runOnce();
  await ledger.look("worker at rest", true);
  checkNoReplicaTwice(world, EVERYWHERE);
  world.service.check();
  world.pass(passesMs);
}

/** Counters, ledger and clusters agree that no token is held, and nothing needs a repair. */
async function checkTheEnd({ world }: Run): Promise<void> {
  world.service.checkTheEnd();
  assert.deepEqual(await world.store.pools.check(null), { sums: [], orphans: [] });
  // The reaper also ends what jobs held as nominees in pools that their admissions did not use.
  const counted = await world.planAndCount();
  const filter = { pool: null, project: null, namespace: null, holder: null, grantedBeforeMs: null };
  const held = await world.store.pools.listAllocations({ filter, pageSize: 100, after: null });
  assert.deepEqual(held === "badCursor" ? held : held.allocations, [], "no token is held");
  for (const queue of await world.store.admin.listQueues()) {
    assert.ok(
      Object.values(queue.used).every((used) => used === 0),
      `the ledger says that ${queue.name} holds nothing: ${JSON.stringify(queue.used)}`,
    );
  }
  assert.deepEqual(counted, [], "the counters say that nothing is held");
  assert.deepEqual(await ledgerAt(world.store).unconfirmedReleases(10), [], "no release waits for the counters");
}
