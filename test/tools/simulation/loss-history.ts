import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { clusterState } from "../../../src/core/admin/cluster.ts";
import type { LossRule } from "../../../src/core/admin/lost-clusters.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { AdmissionBatch } from "../../../src/core/plan/model/plan-types.ts";
import type { PlannerStore } from "../../../src/planner/ports.ts";
import { pick, seededRandom } from "../../support/random.ts";
import { checkNoReplicaTwice, comeToRest } from "./come-to-rest.ts";
import { broken, type HistoryOptions } from "./history.ts";
import { kill } from "./kill.ts";
import { LedgerLaws } from "./ledger-laws.ts";
import { MemberLaws } from "./member-laws.ts";
import { randomJob } from "./random-jobs.ts";
import { quotasOf } from "./random-policies.ts";
import type { Fate } from "./sim-kube.ts";
import { World } from "./world.ts";

const TICKS = 60;
const RULE: LossRule = { lostAfterMs: 10_000, shareMax: 0.34 };
const MOVE_AFTER_MS = 20_000;
const CLUSTERS = ["east", "north", "west"].map((name) => ({ name, flavor: "h100", nodes: 2, gpus: 4 }));

/** What a history met, so that tests can tell that its laws were not held by nothing. */
export type LossMet = Record<"lost" | "returned" | "moved" | "left" | "stayed" | "leftovers", number>;

type Run = {
  readonly db: Db;
  readonly options: HistoryOptions;
  readonly world: World;
  readonly random: () => number;
  readonly trace: string[];
  readonly ledger: LedgerLaws;
  readonly members: MemberLaws;
  /** How much silence was counted of each cluster since it answered last. */
  readonly silence: Map<string, number>;
  readonly met: LossMet;
};

/**
 * Runs one history, which depends on the seed alone, of three clusters that fall silent for short and long, while
 * processes are killed and calls get lost. Throws with the events if a law is broken.
 */
export async function runLossHistory(db: Db, seed: number, options: HistoryOptions): Promise<LossMet> {
  const random = seededRandom(seed);
  const faults = { share: random() * 0.3 };
  const fateOf = (): Fate =>
    random() < faults.share ? pick(random, ["lost", "answerLost", "doubled", "late"]) : "arrives";
  const met: LossMet = { lost: 0, returned: 0, moved: 0, left: 0, stayed: 0, leftovers: 0 };
  const world: World = await World.create({
    ...{ db, random, fateOf, clusters: CLUSTERS, processes: options.processes, moveAfterMs: MOVE_AFTER_MS },
    queues: [{ name: "default", strategy: "BEST_EFFORT_FIFO", quotas: quotasOf({ h100: 20 }) }],
    classes: [],
    watch: (store) => watchMoves(db, store, met),
  });
  const laws = { ledger: new LedgerLaws(db), members: new MemberLaws(world) };
  const run: Run = { db, options, world, random, trace: [], ...laws, silence: new Map(), met };
  try {
    for (let tick = 0; tick < TICKS; tick += 1) await faultyTick(run, tick);
    faults.share = 0;
    world.dark.clear();
    await comeToRest(world, { act: (passes, tick) => actAtRest(run, passes, tick), check: () => check(run), every: 1 });
    assert.deepEqual(await world.store.pools.check(null), { sums: [], orphans: [] });
    assert.deepEqual(await world.planAndCount(), [], "the counters say that nothing is held");
    assert.deepEqual(world.errors, [], "no loop has thrown");
    return met;
  } catch (error) {
    throw broken({ seed, options, trace: run.trace, law: "losses" }, error);
  } finally {
    await world.close();
  }
}

/** A gang leaves a cluster for another one only while that is lost, and then has as many members as before. */
function watchMoves(db: Db, store: PlannerStore, met: LossMet): PlannerStore {
  const recordAdmissions = async (batch: AdmissionBatch) => {
    const moving = batch.records.filter(({ planned }) => planned.movesFrom !== undefined);
    const before = new Map(await Promise.all(moving.map(async ({ planned }) => [planned, await of(planned)] as const)));
    const outcomes = await store.recordAdmissions(batch);
    for (const record of moving) {
      const { planned } = record;
      const live = before.get(planned);
      const isRecorded = outcomes[batch.records.indexOf(record)] === "recorded";
      met[isRecorded ? "moved" : "stayed"] += 1;
      if (!isRecorded) continue;
      assert.ok(live, "a gang that moves has run");
      assert.ok(live.lost, `a gang has left ${live.cluster}, which is not lost`);
      for (const [role, count] of Object.entries(live.members)) {
        assert.ok((planned.members[role] ?? 0) >= count, `a gang has fewer members of ${role} than before`);
      }
    }
    return outcomes;
  };
  const of = async ({ jobUid, movesFrom }: { readonly jobUid: string; readonly movesFrom?: number }) => {
    const [live] = await db.query<{ cluster: string; members: Record<string, number>; lost: boolean }>(
      `select a.cluster, a.members, c.lost_ms is not null as lost
         from admissions a join clusters c on c.name = a.cluster
        where a.job_uid = $1 and a.number = $2 and a.state = 'live'`,
      [jobUid, movesFrom],
    );
    return live;
  };
  return { ...store, recordAdmissions };
}

async function faultyTick(run: Run, tick: number): Promise<void> {
  const { world, random, trace } = run;
  const passes = pick(random, [20, 500, 2_000, 8_000]);
  world.pass(passes);
  trace.push(`tick ${tick}: ${passes} ms pass`);
  if (tick < 8 || random() < 0.1) {
    await world.submit(longJob(random, randomJob(random, tick, { queues: ["default"], small: true })));
  }
  if (random() < 0.12) changeLight(run);
  if (random() < 0.2) world.deliver((late) => late.sort(() => random() - 0.5));
  await act(run, { passes, share: 0.7 });
  if (random() < run.options.kills / 2) await kill(run);
  if (random() < 0.04) await endSomething(run);
  await check(run);
}

/** A job that runs for longer than clusters are silent, mostly. Some say themselves when they leave a lost cluster. */
function longJob(random: () => number, job: SentJob): SentJob {
  const moveAfterMs = pick(random, [undefined, undefined, 0, 15_000]);
  const annotations = {
    "sim.gangway.dev/pull": "100ms",
    "sim.gangway.dev/run": pick(random, ["30s", "150s", "150s"]),
    "sim.gangway.dev/exit-code": pick(random, ["0", "0", "0", "1", "137,0"]),
  };
  const replicas = Object.entries(job.spec.replicaSpecs).map(([role, one]) => {
    return [role, { ...one, template: { ...one.template, metadata: { annotations } } }] as const;
  });
  const { activeDeadlineSeconds: _, ...others } = job.spec.runPolicy ?? {};
  const runPolicy = { ...others, ...(moveAfterMs === undefined ? {} : { moveAfterMs }) };
  return { ...job, spec: { ...job.spec, replicaSpecs: Object.fromEntries(replicas), runPolicy } };
}

/** A cluster falls silent, or answers again. Two at a time are too many for either to be lost. */
function changeLight({ world, random, trace }: Run): void {
  const { name } = pick(random, CLUSTERS);
  if (world.dark.delete(name)) return void trace.push(`  ${name} answers again`);
  if (world.dark.size > 1) return;
  world.dark.add(name);
  trace.push(`  ${name} falls silent`);
}

async function endSomething({ world, random, trace }: Run): Promise<void> {
  const job = pick(random, await world.jobs());
  if (job === undefined) return;
  const which = { namespace: job.namespace, name: job.name };
  const how = pick(random, ["cancel", "remove", "suspend"] as const);
  trace.push(`  ${how} ${job.name}`);
  if (how === "suspend") await world.anyIntake().change(job, { version: null, suspend: true });
  else if (how === "cancel") await world.anyIntake().cancel(which, "simulated");
  else await world.anyIntake().remove(which);
}

/** Every process has its turn with this chance. */
async function act(run: Run, { passes, share }: { readonly passes: number; readonly share: number }): Promise<void> {
  const { world, random, ledger } = run;
  for (const process of world.workers) {
    for (const view of process.views) {
      if (!world.dark.has(view.name) && random() < share) world.refresh(process, view);
    }
  }
  for (const { member } of world.processes()) if (random() < share) await member.look();
  for (const cluster of world.clusters) await observe(run, cluster.name, passes);
  if (random() < share) await world.readLosses();
  for (const { planner } of world.planners) if (random() < share) await planner.runOnce();
  await ledger.look("planner", true);
  if (random() < 0.5) await world.reap(1_000);
  for (const { worker } of world.workers) if (random() < share) await worker.runOnce();
  await ledger.look("worker", true);
}

/** One turn of every process: all clusters answer, and all calls arrive. */
async function actAtRest(run: Run, passes: number, tick: number): Promise<void> {
  run.world.pass(passes);
  if (tick % 5 === 0) await run.world.becomeWhole();
  await act(run, { passes, share: 1 });
}

/** The observer of a cluster hears of it, or counts its silence. */
async function observe({ world, trace, silence, met }: Run, name: string, passes: number): Promise<void> {
  const cluster = world.clusters.find((one) => one.name === name);
  assert.ok(cluster);
  if (world.dark.has(name)) {
    silence.set(name, (silence.get(name) ?? 0) + passes);
    const lost = await world.observeSilence(name, passes, RULE);
    for (const one of lost) {
      met.lost += 1;
      trace.push(`  ${one} is lost`);
      assert.ok((silence.get(one) ?? 0) >= RULE.lostAfterMs, `${one} is lost after ${silence.get(one)} ms of silence`);
    }
    return;
  }
  silence.delete(name);
  await world.observeCapacity(cluster);
  const owners = cluster.owners();
  if (!(await world.store.clusters.endReturn(name, owners)).ended) return;
  met.returned += 1;
  trace.push(`  ${name} has returned`);
  const jobs = await world.jobs();
  for (const { jobUid, admission, runs } of owners) {
    const job = jobs.find(({ uid }) => uid === jobUid);
    const of = job?.admissions.find(({ number }) => number === admission);
    const isLeft = of === undefined || of.state === "undone" || (runs && of.abandonedMs !== undefined);
    assert.ok(!isLeft, `${name} has returned with what ${job?.name} left there`);
  }
}

async function check(run: Run): Promise<void> {
  const { world, members, met } = run;
  const records = await world.store.admin.listClusters();
  const states = new Map(records.map((record) => [record.name, clusterState(record)]));
  // What gangs left in a cluster that has returned may still be ending.
  const counts = (name: string) => states.get(name) === "ACTIVE" && !world.dark.has(name);
  checkNoReplicaTwice(world, { counts, deleting: false });
  const jobs = await world.jobs();
  for (const job of jobs) {
    await members.checkTokens(job);
    checkAdmissions(job);
    met.left += job.admissions.filter(({ abandonedMs }) => abandonedMs !== undefined).length > 0 ? 1 : 0;
  }
  met.leftovers += [...states.values()].filter((state) => state === "RETURNING").length;
}

/** A job has one live admission at most, and no pods of an older one where the new one is. */
function checkAdmissions(job: Job): void {
  const live = job.admissions.filter(({ state }) => state === "live");
  assert.ok(live.length <= 1, `${job.name} has ${live.length} live admissions`);
  const [now] = live;
  if (now === undefined) return;
  const older = job.admissions.filter(({ number, goneMs }) => number < now.number && goneMs === null);
  assert.ok(
    older.every(({ cluster }) => cluster !== now.cluster),
    `${job.name} was admitted again to ${now.cluster} before it had left it`,
  );
}
