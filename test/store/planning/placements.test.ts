/** The planned nodes of admissions, recorded with them, and read by workers, the planner and users. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { PlannedRun } from "../../../src/core/job/placement/placement.ts";
import type { CapacityEntry } from "../../../src/core/plan/model/capacity-entry.ts";
import type { AdmitOutcome, PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { recordStep } from "../db.ts";
import { NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const run = (first: number, count: number, node: string, others: readonly string[] = []): PlannedRun => {
  return { role: "Worker", first, count, node, others };
};

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  let job: Job;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    job = await planner.submit();
  });

  async function record(planned: Partial<PlannedAdmission>, counter = 0): Promise<AdmitOutcome | undefined> {
    const one = { ...plannedFor(job), allocations: [], ...planned };
    const { generation } = (await planner.store.planner.gangsOf([job.uid]))[0]?.gang ?? assert.fail();
    const { queue } = job.spec.runPolicy.schedulingPolicy;
    const { quotaEpoch, plannerEpoch } = planner;
    const records = [
      {
        planned: { ...one, generation },
        gang: gangOfPlanned(one, { queue }),
        allocations: [],
        fence: null,
        chain: null,
      },
    ];
    const counters = new Map([["east", counter]]);
    const batch = { records, counters, quotaEpoch, plannerEpoch, nowMs: NOW + 1 };
    return (await planner.store.planner.recordAdmissions(batch))[0];
  }

  const admit = () => record({ members: { Worker: 2 }, runs: [run(0, 1, "n0", ["n9"]), run(1, 1, "n1", ["n9"])] });
  const placement = async () => (await planner.store.worker.loadJob(job.uid))?.placement ?? null;

  test("workers and the planner read the nodes that an admission was recorded with", async () => {
    assert.equal(await admit(), "recorded");
    const read = await placement();
    assert.deepEqual(read, {
      version: 1,
      nodes: ["n0", "n9", "n1"],
      runs: [
        { role: "Worker", first: 0, count: 1, node: 0, others: [1], version: 1 },
        { role: "Worker", first: 1, count: 1, node: 2, others: [1], version: 1 },
      ],
    });
    const [update] = await planner.store.planner.gangsOf([job.uid]);
    assert.deepEqual(update?.gang?.admissions[0]?.placement, read);
  });

  test("an admission without nodes has none, as of an older planner", async () => {
    assert.equal(await record({}), "recorded");
    assert.equal(await placement(), null);
    const [update] = await planner.store.planner.gangsOf([job.uid]);
    assert.equal("placement" in (update?.gang?.admissions[0] ?? {}), false);
  });

  test("growth adds the nodes of the members that come", async () => {
    await admit();
    assert.equal(await record({ kind: "grow", members: { Worker: 4 }, runs: [run(2, 2, "n1")] }, 1), "recorded");
    const grown = await placement();
    assert.equal(grown?.version, 2);
    assert.deepEqual(
      grown?.runs.map(({ first, count, node, version }) => [first, count, grown.nodes[node], version]),
      [
        [0, 1, "n0", 1],
        [1, 1, "n1", 1],
        [2, 2, "n1", 2],
      ],
    );
  });

  test("a repair replaces the nodes of its members once, and tells so", async () => {
    await admit();
    const repair = { kind: "repair" as const, members: { Worker: 2 }, runs: [run(1, 1, "n9")], repairs: 1 };
    assert.equal(await record(repair, 1), "recorded");
    assert.equal(await record(repair, 2), "stale", "it was planned for the version before");
    const repaired = await placement();
    assert.deepEqual([repaired?.version, repaired?.nodes], [2, ["n0", "n9"]]);
    const events = await planner.store.reads.listEvents({
      namespace: job.namespace,
      name: job.name,
      pageSize: 100,
      after: null,
    });
    assert.ok(typeof events !== "string");
    const told = events.events.filter(({ reason }) => reason === "PodsReplanned").map(({ message }) => message);
    const why = "since the planned ones did not take their pods";
    assert.deepEqual(told, [`Other nodes are planned for member Worker/1, ${why}.`]);
  });

  test("members get other nodes also while their queue is stopped, where a gang does not grow", async () => {
    await admit();
    const queue = (await planner.store.admin.getQueue(job.spec.runPolicy.schedulingPolicy.queue)) ?? assert.fail();
    await planner.store.admin.updateQueue({ ...queue, stopPolicy: "HOLD", version: 0 });
    assert.equal(await record({ kind: "grow", members: { Worker: 4 }, runs: [run(2, 2, "n1")] }, 1), "stale");
    const repair = { kind: "repair" as const, members: { Worker: 2 }, runs: [run(1, 1, "n9")], repairs: 1 };
    assert.equal(await record(repair, 1), "recorded");
  });

  test("nodes of a cluster whose own gang scheduler chooses them are not shown", async () => {
    await admit();
    assert.notEqual(await planner.store.reads.plannedNodes(job.uid), null);
    await db.query("update clusters set gang_scheduler = 'volcano' where name = 'east'");
    assert.equal(await planner.store.reads.plannedNodes(job.uid), null);
  });

  test("a worker's record of the admission leaves its nodes as they are", async () => {
    await admit();
    const before = await placement();
    const now = await planner.load(job.uid);
    const admissions = now.admissions.map((one) => ({ ...one, belowMinSinceMs: NOW + 5 }));
    await recordStep(planner.store, now, { status: now.status, admissions, events: [], deleteTimeMs: null });
    assert.deepEqual(await placement(), before);
  });

  test("users see which of these nodes have pods of the job, and which are gone or take none", async () => {
    await admit();
    const member = (jobUid: string, index: number) => ({ jobUid, admission: 1, role: "worker", index });
    const amounts = { allocatable: {}, free: {} };
    const node = (name: string, cordoned: boolean) => {
      const trouble = cordoned ? { trouble: { cordoned: true as const } } : {};
      return { name, labels: {}, taints: [], unschedulable: cordoned, ...amounts, ...trouble };
    };
    const entries: readonly CapacityEntry[] = [
      { kind: "node", name: "n0", node: node("n0", true), members: [] },
      { kind: "node", name: "n9", node: node("n9", false), members: [member(job.uid, 0), member("another", 0)] },
      { kind: "node", name: "n1", node: null, members: [member(job.uid, 1)] },
      { kind: "node", name: "n5", node: node("n5", false), members: [] },
    ];
    await planner.store.clusters.recordCapacity(completeCapacity("east", entries));
    const seen = await planner.store.reads.plannedNodes(job.uid);
    assert.deepEqual(
      [...(seen?.nodes ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1)),
      [
        { name: "n0", exists: true, trouble: "cordoned", members: [] },
        { name: "n1", exists: false, trouble: "", members: [{ role: "worker", index: 1 }] },
        { name: "n9", exists: true, trouble: "", members: [{ role: "worker", index: 0 }] },
      ],
    );
    assert.deepEqual(seen?.placement, await placement());
  });

  test("a job without planned nodes shows none", async () => {
    assert.equal(await planner.store.reads.plannedNodes(job.uid), null);
  });
});
