import assert from "node:assert/strict";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { currentAdmission, isDraining, type Job } from "../../src/core/job/job.ts";
import { keptMembers, memberCount } from "../../src/core/job/roles.ts";
import type { SentJob } from "../../src/core/job/sent.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { podView } from "../../src/core/pods/pod-view.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import { seededRandom } from "../support/random.ts";
import { LimitedQueues } from "./limited-queues.ts";
import { Preemptions } from "./preemptions.ts";
import type { Fate } from "./sim-kube.ts";
import { SERVICE_KIND, TASK_ENDS } from "./sim-service.ts";
import { GPU, World } from "./world.ts";

const TICKS = 50;
/** The ticks with faults. Afterwards everything must come to rest within as many ticks again. */
const REST_TICKS_MAX = 400;
/** Reasons that only an admin or a larger cluster could remove. Jobs with these wait forever, and rightly so. */
const NEVER = ["AboveQuota", "TooLarge"];

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
  readonly options: HistoryOptions;
  readonly world: World;
  readonly random: () => number;
  readonly trace: string[];
  readonly queues: LimitedQueues;
  readonly preemptions: Preemptions;
};

/** Runs one random history, which depends on the seed alone. Throws with the events if a law is broken. */
export async function runHistory(db: Db, seed: number, options: HistoryOptions = ALONE): Promise<void> {
  const random = seededRandom(seed);
  const faults = { share: random() * 0.4 };
  const fateOf = (): Fate =>
    random() < faults.share ? pick(random, ["lost", "answerLost", "doubled", "late"]) : "arrives";
  const world = await World.create({
    db,
    random,
    fateOf,
    clusters: [
      { name: "east", flavor: "h100", nodes: 2, gpus: 4 },
      { name: "west", flavor: "a100", nodes: 1 + Math.floor(random() * 3), gpus: 2 },
    ],
    processes: options.processes,
    queues: [
      { name: "default", quotas: { h100: 8, a100: 4 } },
      { name: "small", quotas: { a100: 4, h100: 4 } },
    ],
  });
  const queues = new LimitedQueues(world, random);
  const preemptions = new Preemptions(world, db, random);
  const run: Run = { options, world, random, trace: [], queues, preemptions };
  try {
    for (let tick = 0; tick < TICKS; tick += 1) await faultyTick(run, tick);
    faults.share = 0;
    await run.queues.resumeAll();
    await run.preemptions.withdrawAll();
    await comeToRest(run);
    await checkTheEnd(run);
    assert.deepEqual(world.errors, [], "no loop has thrown");
  } catch (error) {
    throw new Error(`seed ${seed}, before it broke:\n${run.trace.slice(-40).join("\n")}`, { cause: error });
  } finally {
    await world.close();
  }
}

async function faultyTick(run: Run, tick: number): Promise<void> {
  const { world, random, trace } = run;
  const passes = pick(random, [0, 20, 100, 500, 2_000, 8_000]);
  world.pass(passes);
  trace.push(`tick ${tick}: ${passes} ms pass`);
  if (tick < 5 || random() < 0.04) await world.submit(randomJob(random, tick));
  if (tick < 3 || random() < 0.04) await world.submit(randomTask(random, tick));
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
  for (const { planner } of world.planners) if (random() < 0.6) await planner.runOnce();
  if (random() < 0.5) await world.reap(1_000);
  for (const { worker } of world.workers) if (random() < 0.8) await worker.runOnce();
  if (random() < run.options.kills) await kill(run);
  if (random() < 0.05) await endSomething(run);
  if (random() < 0.2) await changeSomething(run);
  if (random() < 0.06) trace.push(`  ${await run.queues.change()}`);
  if (random() < 0.12) trace.push(`  ${await run.preemptions.preempt()}`);
  if (random() < 0.03) await run.preemptions.withdrawAll();
  if (random() < 0.15) await audit(run);
  checkNoReplicaTwice(world);
  world.service.check();
  if (tick % 3 === 0) await checkRecords(run);
}

/** Ends a process: it hands over, or crashes, or is declared dead while it still works. */
async function kill({ world, random, trace }: Run): Promise<void> {
  const how = pick(random, ["stopped", "killed", "killed", "taken for dead"]);
  const at = Math.floor(random() * world.processes().length);
  const isPlanner = at < world.planners.length;
  trace.push(`  ${isPlanner ? "planner" : "worker"} ${how}`);
  const before = isPlanner ? await world.killPlanner(at) : await world.killWorker(at - world.planners.length);
  if (how === "stopped") await world.stop(before);
  if (how !== "taken for dead") return;
  await world.takeForDead(before);
  for (const { member } of world.processes()) await member.look();
  for (const { worker } of world.workers) if (random() < 0.7) await worker.runOnce();
  for (const { planner } of world.planners) if (random() < 0.7) await planner.runOnce();
  // It does not know that it is dead. Its decisions must not be recorded, and its actions are harmless.
  if ("planner" in before) await before.planner.runOnce();
  else await before.worker.runOnce();
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
  const hasNoReplicas = "replicas" in wanted && job.spec.kind === SERVICE_KIND;
  const refused = hasNoReplicas ? "invalid" : "fixedSize";
  assert.ok(["changed", "unchanged", "terminal", "ending", refused, "notFound"].includes(kind), kind);
}

/**
 * With fresh caches and two steps, no admission may hold its tokens with too few pods for longer than its start
 * timeout.
 */
async function audit({ world }: Run): Promise<void> {
  await world.becomeWhole();
  for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
  for (let look = 1; look <= 2; look += 1) {
    for (const { uid } of await world.jobs()) for (const { worker } of world.workers) worker.wake(uid);
    for (const { worker } of world.workers) await worker.runOnce();
  }
  for (const job of await world.jobs()) {
    const admission = currentAdmission(job);
    if (admission === null || admission.state !== "live") continue;
    const { minAvailable, scheduleTimeoutSeconds } = job.spec.runPolicy.schedulingPolicy;
    const cluster = world.clusters.find(({ name }) => name === admission.cluster);
    const pods = (cluster?.pods() ?? [])
      .map(podView)
      .filter((pod) => pod.jobUid === job.uid && pod.admission === admission.number && !pod.deleting);
    const up = pods.filter(({ phase }) => ["Running", "Succeeded"].includes(phase));
    // A member that has failed for good while the job goes on, such as a dynamic worker, is not required.
    const over = pods.filter(
      ({ phase, role, index, attempt }) => phase === "Failed" && attempt === recordedAttempt(job, role, index),
    );
    const members = memberCount(keptMembers(job.spec, admission.members));
    const wanted = Math.min(minAvailable, members - over.length);
    if (up.length < wanted) {
      assert.notEqual(admission.belowMinSinceMs, null, `${job.name} is known to run with ${up.length} of ${wanted}`);
      const belowMs = world.clock.atMs - (admission.belowMinSinceMs ?? 0);
      assert.ok(
        belowMs <= scheduleTimeoutSeconds * 1000,
        `${job.name} holds tokens with too few pods for ${belowMs} ms`,
      );
    }
  }
}

/** The attempt that the record names for a pod's slot. */
function recordedAttempt({ status, spec }: Job, podRole: string | null, index: number | null): number {
  const role = Object.keys(spec.replicaSpecs).find((name) => name.toLowerCase() === podRole);
  return status.attempts.byReplica[`${role ?? ""}/${index ?? 0}`] ?? 1;
}

/** Laws that the records must keep at all times, under any faults. */
async function checkRecords({ world, queues, preemptions }: Run): Promise<void> {
  const jobs = await world.jobs();
  queues.check(jobs);
  preemptions.check(jobs);
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
  for (const job of jobs) await checkTokens(world, job);
  for (const queue of await world.store.admin.listQueues()) {
    for (const { flavor, nominal } of queue.quotas) {
      const used = queue.used[flavor] ?? 0;
      assert.ok(used <= nominal, `${queue.name} uses ${used} of ${nominal} ${flavor}`);
    }
  }
}

/** A live admission holds exactly the tokens of its members, however often it grew and shrank. */
async function checkTokens(world: World, { uid, name }: Job): Promise<void> {
  const shown = await world.store.reads.getJob({ uid });
  const live = shown?.job.admissions.find(({ state }) => state === "live");
  if (shown === null || live === undefined) return;
  if (shown.job.spec.kind === SERVICE_KIND)
    return assert.ok(shown.tokens.length <= 1, `${name} holds one slot at most`);
  const held = shown.tokens.reduce((sum, { amount }) => sum + amount, 0);
  const container = arrayAt(objectAt(shown.job.spec.replicaSpecs["Worker"]?.template, "spec"), "containers")[0];
  const gpus = Number(stringAt(objectAt(objectAt(container, "resources"), "limits"), GPU) ?? 0);
  assert.equal(held, gpus * memberCount(live.members), `${name} holds ${held} tokens with ${JSON.stringify(live)}`);
}

/**
 * No replica runs twice: in all clusters no two running pods have the same job and index, also while one is being
 * deleted.
 */
function checkNoReplicaTwice(world: World): void {
  const running = new Map<string, string>();
  for (const cluster of world.clusters) {
    for (const pod of cluster.pods().map(podView)) {
      if (pod.phase !== "Running") continue;
      const replica = `${pod.jobUid}/${pod.role}/${pod.index}`;
      const where = `${cluster.name}/${pod.name} of admission ${pod.admission}`;
      assert.equal(running.get(replica), undefined, `${where} runs beside ${running.get(replica)}`);
      running.set(replica, where);
    }
  }
}

/** Without further faults all calls that are under way arrive, and all jobs end. */
async function comeToRest(run: Run): Promise<void> {
  const { world } = run;
  for (let tick = 0; tick < REST_TICKS_MAX; tick += 1) {
    world.deliver((late) => late);
    world.service.deliver();
    for (const { member } of world.processes()) await member.look();
    for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
    for (const cluster of world.clusters) await world.observeCapacity(cluster);
    for (const { planner } of world.planners) await planner.runOnce();
    for (const { worker } of world.workers) await worker.runOnce();
    checkNoReplicaTwice(world);
    world.service.check();
    world.pass(tick < 20 ? 500 : 5_000);
    if (tick % 4 !== 0) continue;
    await checkRecords(run);
    const jobs = await world.jobs();
    if (jobs.every((job) => isTerminal(job.status) && !isDraining(job) && job.deleteTimeMs === null)) {
      if (tick > 8 && world.clusters.every((cluster) => cluster.left().length === 0)) return;
    }
    for (const job of jobs) {
      if (job.spec.runPolicy.suspend) await world.anyIntake().change(job, { version: null, suspend: false });
    }
    for (const { namespace, name, status } of jobs) {
      if (NEVER.includes(status.waiting?.reason ?? ""))
        await world.anyIntake().cancel({ namespace, name }, "can never run");
    }
  }
  const jobs = await world.jobs();
  const rest = jobs.map(
    (job) =>
      `${job.name} ${job.status.phase}${isDraining(job) ? " draining" : ""} ` +
      `${JSON.stringify(job.admissions)} ${JSON.stringify(job.status.waiting)}`,
  );
  const left = world.clusters.flatMap((cluster) => cluster.left().map((what) => `${cluster.name}/${what}`));
  assert.fail(`it does not come to rest:\n${rest.join("\n")}\nleft: ${left.join(", ")}`);
}

/** Counters, ledger and clusters agree that no token is held, and nothing needs a repair. */
async function checkTheEnd({ world }: Run): Promise<void> {
  world.service.checkTheEnd();
  assert.deepEqual(await world.store.pools.check(null), { sums: [], orphans: [] });
  const filter = { pool: null, project: null, namespace: null, holder: null, grantedBeforeMs: null };
  const held = await world.store.pools.listAllocations({ filter, pageSize: 100, after: null });
  assert.deepEqual(held === "badCursor" ? held : held.allocations, [], "no token is held");
  const counted = await world.planAndCount();
  for (const queue of await world.store.admin.listQueues()) {
    assert.ok(
      Object.values(queue.used).every((used) => used === 0),
      `the ledger says that ${queue.name} holds nothing: ${JSON.stringify(queue.used)}`,
    );
  }
  assert.deepEqual(counted, [], "the counters say that nothing is held");
  assert.deepEqual(
    await world.store.ledger.unconfirmedReleases("default", 10),
    [],
    "no release waits for the counters",
  );
}

function randomJob(random: () => number, at: number): SentJob {
  const replicas = 1 + Math.floor(random() * 5);
  const isGangOfFour = random() < 0.5;
  const min = isGangOfFour ? 4 : 1 + Math.floor(random() * replicas);
  const gpus = pick(random, [0, 1, 1, 2]);
  const annotations = {
    "sim.gangway.dev/pull": pick(random, ["100ms", "1s", "8s"]),
    "sim.gangway.dev/run": pick(random, ["1s", "5s", "20s"]),
    "sim.gangway.dev/exit-code": pick(random, ["0", "0", "0", "1", "137,0", "137,137,1"]),
  };
  const resources = gpus === 0 ? { requests: { cpu: "1" } } : { limits: { [GPU]: String(gpus) } };
  const kind = pick(random, ["Job", "PyTorchJob", "TFJob", "MPIJob"]);
  const container = {
    name: { Job: "main", PyTorchJob: "pytorch", TFJob: "tensorflow", MPIJob: "mpi" }[kind] ?? "",
    image: "trainer",
    resources,
  };
  const template = { metadata: { annotations }, spec: { containers: [container] } };
  return {
    namespace: "default",
    name: `job-${at}-${Math.floor(random() * 1e6)}`,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind,
      // The workers of these jobs may come and go while the job runs.
      ...(kind === "TFJob" && random() < 0.6 ? { kindSpec: { enableDynamicWorker: true } } : {}),
      priority: Math.floor(random() * 3),
      replicaSpecs: {
        ...(kind === "MPIJob" ? { Launcher: { template } } : {}),
        Worker: {
          replicas: isGangOfFour ? 4 + Math.floor(random() * 2) : replicas,
          restartPolicy: pick(random, ["ExitCode", "Never", "OnFailure"]),
          template,
        },
      },
      runPolicy: {
        cleanPodPolicy: "All",
        backoffLimit: 3,
        activeDeadlineSeconds: 600,
        schedulingPolicy: {
          minAvailable: min,
          scheduleTimeoutSeconds: 20,
          queue: pick(random, ["default", "default", "small"]),
        },
      },
    },
  };
}

/** A job without pods, with the outcomes of its attempts. */
function randomTask(random: () => number, at: number): SentJob {
  const ends = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(random, TASK_ENDS));
  return {
    namespace: "default",
    name: `task-${at}-${Math.floor(random() * 1e6)}`,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: SERVICE_KIND,
      replicaSpecs: {},
      runPolicy: {
        backoffLimit: 3,
        systemBackoffLimit: 1 + Math.floor(random() * 6),
        activeDeadlineSeconds: 200,
        schedulingPolicy: { queue: pick(random, ["default", "small"]) },
      },
      kindSpec: { ends, runMs: pick(random, [0, 1_000, 10_000]), givesBack: random() < 0.5 },
    },
  };
}

function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}
