import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { observerLease } from "../../../src/adapters/store/fleet/leases.ts";
import type { AuditEntry } from "../../../src/core/admin/audit.ts";
import { clusterState } from "../../../src/core/admin/cluster.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { FLAVOR, NOW } from "../jobs.ts";
import { freshPlanner } from "../planner-fixture.ts";

const RULE = { lostAfterMs: 60_000, shareMax: 0.34 };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    const flavor = { name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: {} };
    await store.clusters.simulate({ name: "north", labels: {}, flavors: [flavor] });
    for (const name of ["east", "west", "north"]) await answers(name);
  });

  const answers = (cluster: string) => {
    const gpus = { "nvidia.com/gpu": 8_000 };
    const facts = { name: "n", labels: {}, taints: [], unschedulable: false, allocatable: gpus, free: gpus };
    return store.clusters.recordCapacity(
      completeCapacity(cluster, [{ kind: "node", name: "n", node: facts, members: [] }]),
    );
  };
  const falls = (cluster: string, unusable: string | null = null) =>
    store.clusters.recordCapacity({ cluster, reachable: false, unusable });
  const observer = async (cluster: string, holder = "m1") =>
    (await store.members.takeLease(observerLease(cluster), holder)) ?? assert.fail("somebody holds it");
  const counts = (cluster: string, ms: number, leaseEpoch: number) =>
    store.clusters.countSilence({ cluster, ms, leaseEpoch }, RULE);
  const stateOf = async (name: string) => clusterState((await store.admin.getCluster(name)) ?? assert.fail());
  const audited = async (action: string) =>
    db.query<AuditEntry>("select actor, subject, details from audit_entries where action = $1", [action]);
  const lost = async () => [...(await store.clusters.listCredentials()).lost.keys()];

  test("a cluster is lost once its counted silence is long enough, and no more once it answers", async () => {
    const epoch = await observer("east");
    assert.equal((await counts("east", 90_000, epoch)).counted, false, "the record says that it answers");
    await falls("east");
    assert.deepEqual(await counts("east", 59_999, epoch), { lost: [], held: [], counted: true });
    assert.equal(await stateOf("east"), "UNREACHABLE");
    assert.deepEqual(await counts("east", 1, epoch), { lost: ["east"], held: [], counted: true });
    assert.deepEqual([await stateOf("east"), await lost()], ["LOST", ["east"]]);
    assert.deepEqual(await counts("east", 5_000, epoch), { lost: [], held: [], counted: true }, "once");
    await answers("east");
    assert.deepEqual([await stateOf("east"), await lost()], ["RETURNING", []]);
    assert.deepEqual(await store.clusters.endReturn("east", []), { ended: true, left: [] });
    assert.equal(await stateOf("east"), "ACTIVE");
    assert.equal((await store.clusters.endReturn("east", [])).ended, false, "once");
    await falls("east");
    assert.deepEqual((await counts("east", 59_999, epoch)).lost, [], "it counts anew");
    const told = await audited("LoseCluster");
    assert.deepEqual(
      told.map(({ actor, subject, details }) => [actor, subject, details]),
      [["system:gangway", "east", { before: { state: "UNREACHABLE" }, after: { state: "LOST" }, silenceMs: 60_000 }]],
    );
  });

  test("silence of a lost cluster adds up only while another one answers, and anew after any answer", async () => {
    const epoch = await observer("east");
    await falls("east");
    assert.deepEqual((await counts("east", 60_000, epoch)).lost, ["east"]);
    const silenceMs = async () => (await store.clusters.listCredentials()).lost.get("east")?.silenceMs;
    await counts("east", 5_000, epoch);
    assert.equal(await silenceMs(), 65_000);
    for (const name of ["west", "north"]) await falls(name);
    await counts("east", 900_000, epoch);
    assert.equal(await silenceMs(), 65_000, "the network of the service may be the fault");
    await answers("west");
    await counts("east", 5_000, epoch);
    assert.equal(await silenceMs(), 70_000);
    await store.clusters.noteAnswer("east");
    assert.deepEqual([await silenceMs(), await stateOf("east")], [0, "LOST"], "another process gets answers");
  });

  test("only the observer with the lease adds silence, and a process that gets answers takes it away", async () => {
    await falls("east");
    const before = await observer("east");
    const epoch = await observer("east", "m2");
    assert.equal((await counts("east", 90_000, before)).counted, false);
    assert.equal((await counts("east", 50_000, epoch)).counted, true);
    await store.clusters.noteAnswer("east");
    assert.deepEqual((await counts("east", 50_000, epoch)).lost, []);
    assert.deepEqual((await counts("east", 10_000, epoch)).lost, ["east"]);
    await store.clusters.noteAnswer("east");
    assert.equal(await stateOf("east"), "LOST", "only its observer brings it back");
  });

  test("nothing is lost while no cluster answers, and of several no more than the share", async () => {
    const epochs = { east: await observer("east"), west: await observer("west"), north: await observer("north") };
    for (const name of ["east", "west", "north"]) await falls(name);
    assert.deepEqual(await counts("east", 90_000, epochs.east), { lost: [], held: ["east"], counted: true });
    await answers("north");
    assert.deepEqual((await counts("east", 2_000, epochs.east)).held, ["east"], "two of three are silent");
    assert.equal(await stateOf("east"), "UNREACHABLE");
    await answers("west");
    assert.deepEqual((await counts("east", 2_000, epochs.east)).lost, ["east"]);
    await falls("west");
    assert.deepEqual(await counts("west", 90_000, epochs.west), { lost: [], held: ["west"], counted: true });
  });

  test("a cluster that refuses this service is never lost, and one that was lost is so no more", async () => {
    const epoch = await observer("east");
    await falls("east", "it does not accept the credentials");
    assert.equal((await counts("east", 90_000, epoch)).counted, false);
    await falls("east");
    assert.deepEqual((await counts("east", 60_000, epoch)).lost, ["east"]);
    await falls("east", "it does not accept the credentials");
    assert.deepEqual([await stateOf("east"), await lost()], ["UNUSABLE", []]);
    assert.deepEqual(await store.admin.declareLost("east"), { kind: "answers", state: "UNUSABLE" });
    await answers("east");
    assert.equal(await stateOf("east"), "RETURNING", "gangs have left it while it was lost");
  });

  test("a cluster that has returned takes gangs once nothing is seen of admissions that left it", async () => {
    const planner = await freshPlanner(db);
    store = planner.store;
    const { uid } = await planner.submit();
    for (const [number, state, cluster] of [
      [1, "undone", "east"],
      [2, "ended", "east"],
      [3, "ended", "west"],
      [4, "live", "east"],
    ]) {
      const columns = "job_uid, number, cluster, state, members, flavors, node_labels, admit_ms";
      const values = [uid, number, cluster, state];
      await db.query(`insert into admissions (${columns}) values ($1, $2, $3, $4, '{}', '{}', '{}', 1)`, values);
    }
    await db.query(
      `
      insert into admissions (job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, details)
      values ($1, 6, 'east', 'ended', '{}', '{}', '{}', 1, '{"abandonedMs": 5}')`,
      [uid],
    );
    await db.query(
      `
      insert into admissions (job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, details)
      values ($1, 7, 'east', 'ended', '{}', '{}', '{}', 1, '{"fence": "70"}')`,
      [uid],
    );
    const seen = (...numbers: readonly number[]) =>
      numbers.map((admission) => ({ jobUid: uid, admission, fence: null as string | null, runs: false }));
    const fenced = (admission: number, fence: string) => seen(admission).map((one) => ({ ...one, fence }));
    const ofNobody = ["of-nobody", "01900000-0000-7000-8000-00000000ffff"].map((jobUid) => {
      return { jobUid, admission: 1, fence: null, runs: false };
    });
    const running = seen(6).map((one) => ({ ...one, runs: true }));
    await falls("east");
    await store.admin.declareLost("east");
    assert.equal((await store.clusters.endReturn("east", [])).ended, false, "it does not answer yet");
    await answers("east");
    assert.deepEqual((await store.clusters.listCredentials()).returning, ["east"]);
    const lefts = [seen(4, 1), seen(3), seen(5), running, fenced(7, "69"), fenced(4, "1")];
    for (const left of [...lefts, ...ofNobody.map((one) => [...seen(4), one])]) {
      const jobs = [left.at(-1)?.jobUid];
      assert.deepEqual(
        await store.clusters.endReturn("east", left),
        { ended: false, left: jobs },
        JSON.stringify(left),
      );
      assert.deepEqual(await store.clusters.jobsLeftIn("east", left), jobs);
    }
    assert.equal(await stateOf("east"), "RETURNING");
    const stays = [...seen(2, 4, 4, 6, 7), ...fenced(7, "70")];
    assert.deepEqual(await store.clusters.jobsLeftIn("east", stays), []);
    assert.deepEqual(await store.clusters.endReturn("east", stays), { ended: true, left: [] });
    assert.equal(await stateOf("east"), "ACTIVE");
  });

  test("for gangs in a lost cluster their queue counts, then the one above it, then their namespace", async () => {
    const planner = await freshPlanner(db);
    store = planner.store;
    const { uid } = await planner.submit();
    await db.query("insert into admission_clusters (job_uid, admission, cluster) values ($1, 1, 'east')", [uid]);
    const [job = assert.fail()] = await db.query<{ namespace: string; queue: string }>(
      "select namespace, queue from jobs where uid = $1",
      [uid],
    );
    const counts = async () => [...(await store.clusters.listCredentials()).policies];
    assert.deepEqual(await counts(), [], "nothing is lost");
    await falls("east");
    await store.admin.declareLost("east");
    const gangs = `${job.namespace}/${job.queue}`;
    assert.deepEqual(await counts(), [[gangs, "MOVE"]]);
    const queue = { strategy: "BEST_EFFORT_FIFO" as const, quotas: [], version: 0 };
    await store.admin.createQueue({ ...queue, name: "above", onClusterLost: "WAIT" });
    await store.admin.updateQueue({ ...queue, name: job.queue, parent: "above" });
    assert.deepEqual(await counts(), [[gangs, "WAIT"]]);
    await store.admin.updateQueue({ ...queue, name: job.queue, parent: "above", onClusterLost: "MOVE" });
    assert.deepEqual(await counts(), [[gangs, "MOVE"]]);
  });

  test("an operator says that a silent cluster is lost, though others are silent; not one that answers", async () => {
    assert.deepEqual(await store.admin.declareLost("nowhere"), { kind: "notFound" });
    assert.deepEqual(await store.admin.declareLost("east"), { kind: "answers", state: "ACTIVE" });
    for (const name of ["east", "west", "north"]) await falls(name);
    for (let times = 0; times < 2; times += 1) {
      const outcome = await store.admin.declareLost("east");
      assert.ok(outcome.kind === "done");
      assert.deepEqual([clusterState(outcome.record), outcome.record.silence?.lostMs], ["LOST", NOW]);
    }
    assert.equal((await audited("DeclareClusterLost")).length, 1);
  });

  test("the fence of a loss is that of the last admission before it", async () => {
    await falls("east");
    await store.admin.declareLost("east");
    const [first] = await db.query<{ fence: string }>("select lost_fence as fence from clusters where name = 'east'");
    await answers("east");
    await db.query("select nextval('admission_fences') from generate_series(1, 3)");
    await falls("east");
    await store.admin.declareLost("east");
    const lostNow = (await store.clusters.listCredentials()).lost.get("east")?.fence ?? "";
    assert.ok(BigInt(lostNow) > BigInt(first?.fence ?? "0"), `${lostNow} after ${first?.fence}`);
  });
});
