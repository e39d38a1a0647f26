/** Preemptions of a plan that the tests make, from the round to the nominee's admission, on real databases. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { PlanGang } from "../../src/core/plan/model/plan-gang.ts";
import type { PreemptionRecord } from "../../src/core/plan/model/preemption.ts";
import { reconcile } from "../../src/core/reconcile/reconcile.ts";
import { createExplainer } from "../../src/planner/explainer.ts";
import { createFollowedFleet, type FollowedFleet } from "../../src/planner/followed-fleet.ts";
import { createPlanner, type RunningPlanner } from "../../src/planner/planner.ts";
import type { FleetDecision, FleetPlanner, PlannerStore } from "../../src/planner/ports.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { CONFIG } from "../core/reconcile/world.ts";
import { freshStore, type TestStore, takePlannerLease } from "../store/db.ts";
import { newJob, sentOf } from "../store/jobs.ts";
import { completeCapacity } from "../support/complete-capacity.ts";
import { onEachDatabase } from "../support/databases.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { soleQuota } from "../support/sole-quota.ts";

const GPU = "nvidia.com/gpu";
const FLAVOR = "gpu/h100";
const SIGNAL = new AbortController().signal;
/** The worker's clock is ahead by this, so that a backoff lasts longer than its test. */
const AHEAD_MS = 600_000;

function node(name: string): CapacityEntry {
  const room = { cpu: 64_000, memory: 1e12, pods: 100_000, [GPU]: 64_000 };
  const facts = { name, labels: { "gangway.dev/gpu": "h100" }, taints: [], unschedulable: false };
  return { kind: "node", name, node: { ...facts, allocatable: room, free: room }, members: [] };
}

/** A gang of eight pods with one GPU each: as many as the queue's quota. */
function gpuJob(name: string): Job {
  const job = newJob({ name });
  const resources = { limits: { [GPU]: "1" }, requests: { [GPU]: "1" } };
  const template = { spec: { containers: [{ name: "pytorch", resources }] } };
  const { schedulingPolicy } = job.spec.runPolicy;
  const runPolicy = { ...job.spec.runPolicy, schedulingPolicy: { ...schedulingPolicy, minAvailable: 8 } };
  const Worker = { replicas: 8, restartPolicy: "OnFailure" as const, template };
  return { ...job, spec: { ...job.spec, replicaSpecs: { Worker }, runPolicy } };
}

type Preempting = Pick<FleetDecision, "preemptions" | "withdrawn">;

/** Adds to the next decision of a planner what it is to preempt or give up. */
class StubbedPlans {
  next: Partial<Preempting> = {};
  /** The jobs that the planner has read again since the last decision. */
  readonly reread: string[] = [];

  over(fleet: FleetPlanner): FleetPlanner {
    const decide: FleetPlanner["decide"] = async (of) => {
      this.reread.length = 0;
      const { next } = this;
      this.next = {};
      return { ...(await fleet.decide(of)), ...next };
    };
    const reread: FleetPlanner["reread"] = (jobUids) => {
      this.reread.push(...jobUids);
      return fleet.reread(jobUids);
    };
    return { ...fleet, decide, reread };
  }
}

function preemption(nominee: PlanGang, victim: PlanGang): PreemptionRecord {
  const { uid: jobUid, askHash, generation, queue, project, namespace } = nominee;
  const [live] = victim.admissions;
  assert.ok(live);
  const allocations = [{ pool: FLAVOR, amount: 8, project, namespace, queue }];
  const where = { cluster: "west", admissionCounter: 0, members: { Worker: 8 }, flavors: { [GPU]: FLAVOR } };
  const planned = { kind: "admit", jobUid, askHash, generation, admission: 1, flavorLabels: {}, allocations } as const;
  const { number: admission, members } = live;
  const reason = "InClusterQueue";
  return {
    planned: { ...planned, ...where },
    victims: [{ jobUid: victim.uid, queue, admission, members, reason }],
    queue,
  };
}

onEachDatabase((openDb) => {
  const clock = systemClock();
  let db: Db;
  let store: TestStore;
  let plans: StubbedPlans;
  let planner: RunningPlanner;
  let fleet: FollowedFleet;
  let woken: string[];
  /** Called after preemptions are recorded. If it throws, the answer is lost. */
  let afterRecord: () => void;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  const options = { clock, kinds: OWN_KINDS, openNamespaces: true, defaultQueue: "research", onAppended: () => {} };

  async function lead(holder: string): Promise<RunningPlanner> {
    const plannerEpoch = await takePlannerLease(store, holder);
    const recordPreemptions: PlannerStore["recordPreemptions"] = async (...given) => {
      const outcomes = await store.planner.recordPreemptions(...given);
      afterRecord();
      return outcomes;
    };
    const ports = {
      clock,
      store: { ...store.planner, recordPreemptions },
      fleet: plans.over(fleetPlanner(store.planner)),
      quota: soleQuota({ clock, ledgerOf: store.ledgerOf }),
      lease: { epoch: () => plannerEpoch },
      wakeJob: (uid: string) => void woken.push(uid),
    };
    return createPlanner(ports, { onError: (error) => assert.fail(String(error)) });
  }

  beforeEach(async (t) => {
    await freshStore(db);
    store = createStore(db, options);
    for (const cluster of ["east", "west"]) {
      await store.clusters.recordCapacity(completeCapacity(cluster, [node(`${cluster}-1`)]));
    }
    plans = new StubbedPlans();
    woken = [];
    afterRecord = () => undefined;
    planner = await lead("p1");
    fleet = createFollowedFleet({ clock, followTakers: () => store.explain.followTakers() });
    if ("after" in t) t.after(() => fleet.close());
  });

  async function submit(name: string): Promise<Job> {
    const job = { ...gpuJob(name), createTimeMs: clock.nowMs() };
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  }

  const load = async ({ uid }: Job) => (await store.worker.loadJob(uid))?.job ?? assert.fail(`no job ${uid}`);

  async function gangOf({ uid }: Job): Promise<PlanGang> {
    const [gang] = await store.explain.gangsNow([uid]);
    return gang ?? assert.fail(`no gang ${uid}`);
  }

  async function explained({ uid }: Job) {
    const found = await createExplainer({ store: store.explain, fleet })(uid, SIGNAL);
    return found?.refusal ?? assert.fail("nothing is explained");
  }

  /** Steps a job's worker, whose clusters have no pods, until nothing is left to record. */
  async function work(job: Job): Promise<void> {
    const leases = new Map((await store.worker.takeBuckets("w1")).map((lease) => [lease.bucket, lease]));
    const empty = ["east", "west"].map((cluster) => ({ cluster, pods: [], services: [], configMaps: [] }));
    for (let step = 0; step < 5; step += 1) {
      const loaded = await store.worker.loadJob(job.uid);
      const lease = leases.get(loaded?.bucket ?? -1);
      assert.ok(loaded && lease);
      const nowMs = clock.nowMs() + AHEAD_MS + step * 10_000;
      const decision = reconcile(loaded.job, empty, nowMs, CONFIG);
      if (decision.record === null) continue;
      assert.equal(await store.worker.record(loaded.job, decision, lease, nowMs), "recorded");
    }
  }

  /** One job that runs with all of the quota, and one that waits for it. */
  async function world() {
    const victim = await submit("runs");
    assert.equal((await planner.runOnce())?.admitted, 1);
    const nominee = await submit("waits");
    await planner.runOnce();
    assert.equal((await explained(nominee)).reason, "QuotaExhausted");
    woken.length = 0;
    return { victim, nominee, planned: preemption(await gangOf(nominee), await gangOf(victim)) };
  }

  test("a nominee waits for its victim, and boards once that has ended; the victim waits for its backoff", async () => {
    const { victim, nominee, planned } = await world();
    plans.next = { preemptions: [planned] };
    const round = await planner.runOnce();
    assert.deepEqual([round?.nominated, round?.missed, woken], [1, 0, [victim.uid]]);
    assert.deepEqual([...plans.reread].sort(), [victim.uid, nominee.uid].sort(), "its own records apply at once");
    const nomination = (await gangOf(nominee)).nomination;
    assert.deepEqual(nomination?.victims, [{ jobUid: victim.uid, admission: 1 }]);
    await planner.runOnce();
    const waits = "it is nominated for cluster west, and waits until the gangs that are preempted for it have ended";
    const refusal = await explained(nominee);
    assert.deepEqual([refusal.reason, refusal.message], ["Preempting", `${waits}: team/runs`]);
    assert.equal((await load(nominee)).status.waiting?.reason, "Preempting");

    await work(victim);
    const undone = await load(victim);
    assert.deepEqual([undone.status.phase, undone.admissions], ["WAITING", []]);
    assert.equal((await planner.runOnce())?.admitted, 1);
    const boarded = await load(nominee);
    assert.deepEqual([boarded.status.phase, boarded.status.nomination], ["ADMITTED", undefined]);
    const waiting = await explained(victim);
    assert.equal(waiting.reason, "Backoff");
    const why = "it was preempted for team/waits, which comes before it in the same queue";
    assert.match(
      waiting.message,
      new RegExp(`^its last admission was undone because ${why}; it may be admitted again`),
    );
    assert.equal(waiting.retryAtMs, undone.status.backoff?.notBeforeMs);
  });

  test("a preemption whose answer was lost is recorded once, and the next planner knows its nominee", async () => {
    const { victim, nominee, planned } = await world();
    plans.next = { preemptions: [planned] };
    afterRecord = () => {
      throw new UnavailableError("the answer was lost");
    };
    await assert.rejects(planner.runOnce(), /the answer was lost/);
    afterRecord = () => undefined;
    const before = [await load(nominee), await load(victim)];
    const next = await lead("p2");
    plans.next = { preemptions: [planned] };
    assert.deepEqual([(await next.runOnce())?.nominated, woken], [0, []]);
    assert.deepEqual((await load(victim)).version, before[1]?.version);
    assert.deepEqual((await load(nominee)).status.nomination, before[0]?.status.nomination);
    await next.runOnce();
    assert.equal((await explained(nominee)).reason, "Preempting");
  });

  test("a preemption whose victim has moved on is planned again, and its nominee waits as before", async () => {
    const { victim, nominee, planned } = await world();
    await store.intake.requestCancel({ namespace: victim.namespace, name: victim.name }, "enough", clock.nowMs());
    plans.next = { preemptions: [planned] };
    const round = await planner.runOnce();
    assert.deepEqual([round?.nominated, round?.missed, woken], [0, 1, []]);
    assert.equal((await load(nominee)).status.nomination, undefined);
    assert.equal((await load(victim)).status.eviction, undefined);
    assert.equal((await explained(nominee)).reason, "QuotaExhausted");
  });

  test("a nominee that is given up says again what it lacks", async () => {
    const { nominee, planned } = await world();
    plans.next = { preemptions: [planned] };
    await planner.runOnce();
    await planner.runOnce();
    plans.next = { withdrawn: [nominee.uid] };
    await planner.runOnce();
    assert.equal((await gangOf(nominee)).nomination, undefined);
    assert.match((await explained(nominee)).message, /this has changed/);
    await planner.runOnce();
    assert.equal((await explained(nominee)).reason, "QuotaExhausted");
    assert.equal((await load(nominee)).status.waiting?.reason, "QuotaExhausted");
  });
});
