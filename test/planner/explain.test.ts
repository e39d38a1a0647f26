import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import { DEFAULT_POLICY } from "../../src/core/plan/model/queue-policy.ts";
import { createExplainer, type Explainer } from "../../src/planner/explainer.ts";
import { createFollowedFleet, type FollowedFleet } from "../../src/planner/followed-fleet.ts";
import { createPlanner, type RunningPlanner } from "../../src/planner/planner.ts";
import { createSimulator } from "../../src/planner/simulator.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { freshStore, type TestStore, takePlannerLease } from "../store/db.ts";
import { FLAVOR, newJob, sentOf } from "../store/jobs.ts";
import { allocation, caller, poolChange, releaseOf } from "../store/ledger-fixture.ts";
import { completeCapacity } from "../support/complete-capacity.ts";
import { onEachDatabase } from "../support/databases.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { soleQuota } from "../support/sole-quota.ts";
import { StatementDb } from "../support/statement-db.ts";

const GPU = "nvidia.com/gpu";
const SIGNAL = new AbortController().signal;
const NO_RESERVATIONS = { ...DEFAULT_POLICY, reserveAfterMs: 0 };
const CHANGED = "; this has changed, and the planner is about to look at it again";

function node(name: string, gpus: number): CapacityEntry {
  const room = { cpu: 64_000, memory: 1e12, pods: 100_000, [GPU]: gpus * 1_000 };
  const labels = { "gangway.dev/gpu": "h100" };
  return {
    kind: "node",
    name,
    node: { name, labels, taints: [], unschedulable: false, allocatable: room, free: room },
    members: [],
  };
}

/** A gang of this many pods with one GPU each. */
function gpuJob(name: string, replicas: number, of: Parameters<typeof newJob>[0] = {}): Job {
  const job = newJob({ name, ...of });
  const resources = { limits: { [GPU]: "1" }, requests: { [GPU]: "1" } };
  const template = { spec: { containers: [{ name: "pytorch", resources }] } };
  const { schedulingPolicy } = job.spec.runPolicy;
  const runPolicy = { ...job.spec.runPolicy, schedulingPolicy: { ...schedulingPolicy, minAvailable: replicas } };
  const Worker = { replicas, restartPolicy: "OnFailure" as const, template };
  return { ...job, spec: { ...job.spec, replicaSpecs: { Worker }, runPolicy } };
}

onEachDatabase((openDb) => {
  let db: Db;
  let writes: StatementDb;
  let store: TestStore;
  let planner: RunningPlanner;
  let fleet: FollowedFleet;
  let explain: Explainer;
  let loads: number;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  const clock = systemClock();
  const quotas = [{ flavor: FLAVOR, resource: GPU, nominal: 8 }];

  beforeEach(async (t) => {
    await freshStore(db);
    writes = new StatementDb(db);
    const options = { clock, kinds: OWN_KINDS, openNamespaces: true, defaultQueue: "research", onAppended: () => {} };
    store = createStore(writes, options);
    await store.clusters.recordCapacity(completeCapacity("east", [node("east-1", 64)]));
    await store.clusters.recordCapacity(completeCapacity("west", []));
    const plannerEpoch = await takePlannerLease(store, "p1");
    const lease = { epoch: () => plannerEpoch };
    const quota = soleQuota({ clock, ledgerOf: store.ledgerOf });
    const ports = { clock, store: store.planner, fleet: fleetPlanner(store.planner), quota, lease };
    planner = createPlanner({ ...ports, wakeJob: () => undefined }, { onError: (error) => assert.fail(String(error)) });
    loads = 0;
    const followTakers = () => {
      const following = store.explain.followTakers();
      const readFleet: typeof following.readFleet = (place, known) => {
        if (place === null) loads += 1;
        return following.readFleet(place, known);
      };
      return { ...following, readFleet };
    };
    fleet = createFollowedFleet({ clock, followTakers });
    if ("after" in t) t.after(() => fleet.close());
    explain = createExplainer({ store: store.explain, fleet });
  });

  async function submit(job: Job): Promise<Job> {
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  }

  /** Lets callers hold tokens of four GPUs each. */
  async function hold(tokens: readonly string[]): Promise<void> {
    await planner.runOnce();
    const [domain] = await db.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
    const epoch = domain?.epoch ?? 0;
    for (const [at, token] of tokens.entries()) {
      const one = allocation({ pool: FLAVOR, token, amount: 4, queue: "research" });
      const grant = { allocations: [one], holder: caller("flyte"), fence: (BigInt(epoch) << 32n) + BigInt(1_000 + at) };
      const [outcome] = await ledgerAt(store, clock.nowMs()).commit(epoch, [grant]);
      assert.equal(outcome?.kind, "committed");
    }
  }

  const release = (token: string) => ledgerAt(store, clock.nowMs()).release([releaseOf({ pool: FLAVOR, token })]);
  const explained = async ({ uid }: Job) => (await explain(uid, SIGNAL)) ?? assert.fail("nothing is explained");
  const messageOf = async (job: Job) => (await explained(job)).refusal.message;
  const rowOf = async ({ uid }: Job) =>
    (await db.query("select *, xmin::text from refusals where job_uid = $1", [uid]))[0];

  test("numbers follow a release at once, and the refusal is not written again", async () => {
    await hold(["a", "b"]);
    const job = await submit(gpuJob("train", 6));
    await planner.runOnce();
    const row = await rowOf(job);
    const full = await explained(job);
    assert.deepEqual(
      [full.refusal.reason, full.refusal.message],
      ["QuotaExhausted", `needs 6 of ${FLAVOR}; queue research uses 8 of 8 (held by caller flyte)`],
    );
    await release("a");
    writes.transactions.length = 0;
    const half = await explained(job);
    assert.deepEqual(
      half.refusal.quotas.map(({ need, used, limit }) => [need, used, limit]),
      [[6, 4, 8]],
    );
    assert.equal(half.refusal.message, `needs 6 of ${FLAVOR}; queue research uses 4 of 8 (held by caller flyte)`);
    assert.ok(half.atMs >= full.atMs);
    const round = await planner.runOnce();
    assert.equal(round?.refused, 0);
    const written = writes.transactions
      .flat()
      .filter((text) => /^\s*(insert|update|delete|with)\b.*refusals/s.test(text));
    assert.deepEqual(written, []);
    assert.deepEqual(await rowOf(job), row);
    await release("b");
    assert.equal(await messageOf(job), `needs 6 of ${FLAVOR}; queue research uses 0 of 8${CHANGED}`);
    assert.equal(loads, 1);
  });

  test("a gang in the pool's waiting line, and one that leaves room for it, have the present numbers", async () => {
    await store.admin.updateQueue({
      name: "research",
      strategy: "BEST_EFFORT_FIFO",
      quotas: [{ ...quotas[0]!, nominal: 64 }],
      version: 0,
    });
    await store.pools.register(poolChange({ name: FLAVOR, quota: 8 }), { version: 0, actor: "admin" });
    await hold(["a"]);
    const first = await submit(gpuJob("first", 6));
    const second = await submit(gpuJob("second", 2));
    await planner.runOnce();
    const pool = `pool ${FLAVOR} uses 4 of 8`;
    const inLine = `it is in the waiting line of ${FLAVOR}`;
    assert.equal(await messageOf(first), `needs 6 of ${FLAVOR}; ${pool} (held by caller flyte); ${inLine}`);
    const { refusal } = await explained(second);
    assert.deepEqual(
      [refusal.reason, refusal.message],
      ["Reserved", `needs 2 of ${FLAVOR}; ${pool}, and keeps 6 for team/first`],
    );
    await store.intake.requestCancel(first, "", clock.nowMs());
    assert.equal(
      await messageOf(second),
      `needs 2 of ${FLAVOR}; ${pool}, and keeps 0 for the first of its waiting line${CHANGED}`,
    );
  });

  /** Two gangs of `lent` that run, and one of `owner` that takes back its quota from them: it is a nominee. */
  async function nominate(): Promise<void> {
    const queue = { strategy: "BEST_EFFORT_FIFO" as const, quotas };
    const reclaims = { ...NO_RESERVATIONS, reclaimWithinTree: "ANY" as const };
    await store.admin.ensureQueue({ ...queue, name: "tree", quotas: [{ ...quotas[0]!, nominal: 0 }] });
    await store.admin.ensureQueue({ ...queue, name: "lent", parent: "tree", policy: NO_RESERVATIONS });
    await store.admin.ensureQueue({ ...queue, name: "owner", parent: "tree", policy: reclaims });
    await hold([]);
    await submit(gpuJob("v1", 5, { queue: "lent" }));
    await submit(gpuJob("v2", 7, { queue: "lent" }));
    await planner.runOnce();
    await submit(gpuJob("n1", 8, { queue: "owner" }));
    await planner.runOnce();
  }

  test("what is kept for a nominee is said while its victims leave", async () => {
    await nominate();
    const late = await submit(gpuJob("v9", 3, { queue: "lent" }));
    await planner.runOnce();
    const uses = `queue tree uses 12 of 16 (held by team/v2, team/v1), and keeps 8 for nominees`;
    const { refusal } = await explained(late);
    assert.equal(refusal.message, `needs 3 of ${FLAVOR}; ${uses}`);
    assert.deepEqual(
      refusal.quotas.map(({ need, used, limit, booked: pending }) => [need, used, limit, pending]),
      [[3, 12, 16, 8]],
    );
    const simulate = createSimulator({ kinds: OWN_KINDS, fleet, firstWaiting: store.explain.firstWaiting });
    const judged = await simulate(gpuJob("asked", 2, { queue: "lent" }), SIGNAL);
    assert.deepEqual([judged?.verdict, judged?.message], ["WAITS", `needs 2 of ${FLAVOR}; ${uses}`]);
    assert.equal((await explained(late)).refusal.message, refusal.message, "a simulation leaves no trace");
  });

  test("nodes that are kept for a nominee are not said to be free", async () => {
    await store.clusters.recordCapacity(completeCapacity("east", [node("east-1", 8)]));
    const urgent = { ...NO_RESERVATIONS, withinQueue: "LOWER_PRIORITY" as const };
    const much = [{ ...quotas[0]!, nominal: 64 }];
    await store.admin.ensureQueue({ name: "urgent", strategy: "BEST_EFFORT_FIFO", quotas: much, policy: urgent });
    await hold([]);
    await submit(gpuJob("victim", 5, { queue: "urgent" }));
    await planner.runOnce();
    await submit(gpuJob("nominee", 8, { queue: "urgent", priority: 1 }));
    await planner.runOnce();
    const late = await submit(gpuJob("late", 3, { queue: "urgent" }));
    await planner.runOnce();
    const { refusal } = await explained(late);
    assert.equal(refusal.reason, "NoCapacity");
    assert.doesNotMatch(refusal.message, /this has changed/);
  });

  test("a job behind the head of a strict queue is told what the head lacks now", async () => {
    await store.admin.ensureQueue({ name: "strict", strategy: "STRICT_FIFO", quotas });
    await hold([]);
    const head = await submit(gpuJob("head", 100, { queue: "strict" }));
    const behind = await submit(gpuJob("behind", 1, { queue: "strict" }));
    await planner.runOnce();
    const waits = "waits behind team/head, the head of the strict queue strict";
    const lacks = `needs 100 of ${FLAVOR}; queue strict may use 8 at most`;
    assert.equal(await messageOf(behind), `${waits}: ${lacks}`);
    assert.deepEqual(
      (await explained(behind)).refusal.quotas.map(({ reason }) => reason),
      ["AboveQuota"],
    );
    await store.admin.updateQueue({
      name: "strict",
      strategy: "STRICT_FIFO",
      quotas: [{ ...quotas[0]!, nominal: 9 }],
      version: 0,
    });
    assert.equal(await messageOf(behind), `${waits}: ${lacks.replace("use 8", "use 9")}`);
    await store.intake.requestCancel(head, "", clock.nowMs());
    assert.equal(await messageOf(behind), `${waits}${CHANGED}`);
  });

  test("room that came, a cluster that is open again and one that is gone are said", async () => {
    await store.admin.setCordoned("west", true);
    await store.clusters.recordCapacity(completeCapacity("east", [node("east-1", 2)]));
    await hold([]);
    const job = await submit(gpuJob("train", 6));
    await planner.runOnce();
    const clusters = async () => {
      const { refusal } = await explained(job);
      return refusal.clusters.map(({ cluster, reason, have, message }) => [cluster, reason, have, message]);
    };
    const [west, east] = await clusters();
    assert.deepEqual(
      [west, east?.slice(0, 3)],
      [
        ["west", "Cordoned", 0, "it is cordoned"],
        ["east", "TooLarge", 2],
      ],
    );
    await store.clusters.recordCapacity(completeCapacity("east", [node("east-1", 3)]));
    assert.deepEqual((await clusters())[1]?.slice(0, 3), ["east", "TooLarge", 3]);
    await store.admin.setCordoned("west", false);
    await store.clusters.recordCapacity(completeCapacity("east", [node("east-1", 8)]));
    const [open, roomy] = await clusters();
    assert.deepEqual(open, ["west", "Cordoned", 0, "it is not cordoned any more"]);
    assert.match(String(roomy?.[3]), /all fit now on east \(simulated\)$/);
    assert.ok((await messageOf(job)).endsWith(CHANGED));
    await store.clusters.remove("east", true);
    assert.deepEqual((await clusters())[1], ["east", "TooLarge", 0, "it is not registered any more"]);
  });

  test("a refusal that a program of the version before has kept is shown as it is", async () => {
    await hold([]);
    const job = await submit(gpuJob("train", 60));
    assert.equal(await explain(job.uid, SIGNAL), null, "the planner has not looked at it yet");
    await planner.runOnce();
    const old = {
      jobUid: job.uid,
      generation: 1,
      reason: "NoCapacity",
      message: "needs 60",
      clusters: [],
      quotas: [],
      retryAtMs: null,
    };
    await db.query("update refusals set refusal = $1::json, at_ms = 7", [JSON.stringify(old)]);
    assert.deepEqual(await explain(job.uid, SIGNAL), { refusal: old, atMs: 7 });
    assert.equal(loads, 0, "nothing is loaded for it");
  });

  test("an explanation of a job that was admitted meanwhile is none", async () => {
    await hold([]);
    const job = await submit(gpuJob("train", 60));
    await planner.runOnce();
    await store.intake.requestCancel(job, "", clock.nowMs());
    assert.equal(await explain(job.uid, SIGNAL), null);
  });

  test("calls of one moment share one catch-up, and those that have left have none", async () => {
    await hold([]);
    const job = await submit(gpuJob("train", 60));
    await planner.runOnce();
    const gone = AbortSignal.abort();
    assert.equal(await explain(job.uid, gone), null);
    assert.equal(loads, 0);
    const answers = await Promise.all(Array.from({ length: 8 }, () => explain(job.uid, SIGNAL)));
    assert.equal(new Set(answers.map((answer) => answer?.refusal.message)).size, 1);
    assert.equal(loads, 1);
  });
});
