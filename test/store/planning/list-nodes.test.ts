/** Lists of nodes, as the store follows what observers record; and jobs by what they hold. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { NodePage, NodeQuery } from "../../../src/core/admin/nodes/node-page.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { CapacityEntry } from "../../../src/core/plan/model/capacity-entry.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { CountingDb } from "../../support/counting-db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { newJob, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const GPU = "nvidia.com/gpu";

const ANY: NodeQuery = {
  cluster: null,
  maySee: () => true,
  filter: { names: [], flavors: [], states: [] },
  order: "cluster",
  pageSize: 1_000,
  after: null,
  newerThan: null,
  scope: "",
};

function node(name: string, held = 0, more: { readonly job?: string; readonly label?: string } = {}): CapacityEntry {
  const labels = { "gangway.dev/gpu": "h100", ...(more.label === undefined ? {} : { note: more.label }) };
  const amounts = { allocatable: { [GPU]: 8_000 }, free: { [GPU]: (8 - held) * 1_000 } };
  const member = { jobUid: more.job ?? "", admission: 1, role: "worker", index: 0 };
  return {
    kind: "node",
    name,
    node: { name, labels, taints: [], unschedulable: false, ...amounts },
    members: more.job === undefined ? [] : [member],
  };
}

onEachDatabase((openDb) => {
  let db: CountingDb;
  let planner: TestPlanner;
  before(async () => {
    db = new CountingDb(await openDb());
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db as Db);
  });

  const list = async (query: Partial<NodeQuery> = {}): Promise<NodePage> => {
    const page = await planner.store.admin.listNodes({ ...ANY, ...query });
    return typeof page === "string" ? assert.fail(page) : page;
  };
  const record = async (cluster: string, entries: readonly CapacityEntry[]): Promise<number> =>
    (await planner.store.clusters.recordCapacity(completeCapacity(cluster, entries))).epoch ?? assert.fail("refused");
  const change = (cluster: string, since: number, name: string, entry: CapacityEntry | null) =>
    planner.store.clusters.recordCapacity({
      cluster,
      reachable: true,
      since,
      changes: [{ key: { kind: "node", name }, entry }],
    });
  const namesOf = ({ nodes }: NodePage) => nodes.map(({ cluster, node: { name } }) => `${cluster}/${name}`);

  test("nodes of all clusters come in pages, and follow what observers record", async () => {
    const east = await record("east", [node("a", 2), node("b", 8)]);
    await record("west", [node("a", 5)]);
    assert.deepEqual(namesOf(await list()), ["east/a", "east/b", "west/a"]);
    assert.deepEqual(namesOf(await list({ order: "held desc" })), ["east/b", "west/a", "east/a"]);
    const first = await list({ order: "held desc", pageSize: 2 });
    assert.deepEqual([first.total, namesOf(first)], [3, ["east/b", "west/a"]]);
    // A node comes at the end, and one that was shown is gone.
    await change("east", east, "c", node("c", 0));
    await change("east", east, "b", null);
    const second = await list({ order: "held desc", pageSize: 2, after: first.next });
    assert.deepEqual([namesOf(second), second.next], [["east/a", "east/c"], null]);
    assert.deepEqual(namesOf(await list({ cluster: "west" })), ["west/a"]);
    assert.deepEqual(namesOf(await list({ maySee: (name) => name === "west" })), ["west/a"]);
    assert.deepEqual(namesOf(await list({ filter: { ...ANY.filter, names: ["a"] } })), ["east/a", "west/a"]);
    assert.deepEqual(namesOf(await list({ filter: { ...ANY.filter, states: ["CORDONED"] } })), []);
  });

  test("a cursor of another order is a bad cursor, and an unknown cluster is not found", async () => {
    await record("east", [node("a"), node("b")]);
    const { next } = await list({ pageSize: 1 });
    assert.equal(await planner.store.admin.listNodes({ ...ANY, order: "name", after: next }), "badCursor");
    assert.equal(await planner.store.admin.listNodes({ ...ANY, after: "nonsense" }), "badCursor");
    assert.equal(await planner.store.admin.listNodes({ ...ANY, cluster: "none" }), "notFound");
    assert.deepEqual((await list({ cluster: "west" })).clusters[0]?.observedMs, null);
  });

  test("only what is newer than a version is listed, and what is gone is named", async () => {
    const east = await record("east", [node("a"), node("b"), node("c")]);
    const { version } = await list();
    assert.deepEqual((await list({ newerThan: version })).nodes, []);
    await change("east", east, "a", node("a", 4));
    await change("east", east, "b", null);
    const page = await list({ newerThan: version });
    const own = page.clusters.find(({ name }) => name === "east");
    assert.deepEqual([namesOf(page), own?.complete, own?.removed], [["east/a"], false, ["b"]]);
    await record("east", [node("z")]);
    const again = await list({ newerThan: page.version });
    assert.deepEqual(namesOf(again), ["east/z"]);
    assert.equal(again.clusters.find(({ name }) => name === "east")?.complete, true);
  });

  test("the jobs on the nodes of a page come with what their pods request", async () => {
    const limits = { limits: { [GPU]: 2 } };
    const made = newJob();
    const template = { spec: { containers: [{ name: "pytorch", resources: limits }] } };
    const replicaSpecs = { Worker: { replicas: 4, restartPolicy: "OnFailure" as const, template } };
    const job = await planner.submit({ ...made, spec: { ...made.spec, replicaSpecs } });
    await record("east", [node("a", 2, { job: job.uid }), node("b", 1, { job: "not-a-uuid" })]);
    const { jobs } = await list();
    assert.deepEqual([...jobs.keys()], [job.uid]);
    const held = jobs.get(job.uid);
    assert.deepEqual([held?.name, held?.namespace, held?.queue], [job.name, "team", "research"]);
    assert.equal(held?.roles["worker"]?.role, "Worker");
    assert.equal(held?.roles["worker"]?.requests[GPU], 2_000);
  });

  test("a page ends before its records are too large, and the next one goes on there", async () => {
    const label = "x".repeat(1_000_000);
    await record(
      "east",
      ["a", "b", "c", "d", "e"].map((name) => node(name, 0, { label })),
    );
    const names: string[] = [];
    let pages = 0;
    for (let after: string | null = null; pages === 0 || after !== null; pages += 1) {
      const page: NodePage = await list({ after });
      for (const name of namesOf(page)) names.push(name);
      after = page.next;
    }
    assert.deepEqual([names, pages], [["east/a", "east/b", "east/c", "east/d", "east/e"], 2]);
  });

  test("a call reads what has changed and its own page, and not the fleet again", async () => {
    const fleet = Array.from({ length: 1_000 }, (_, at) => node(`n-${String(at).padStart(4, "0")}`, at % 9));
    const east = await record("east", fleet);
    await record("west", fleet);
    await list({ pageSize: 10 });
    await change("east", east, "n-0007", node("n-0007", 8));
    db.reads = [];
    const page = await list({ order: "held desc", pageSize: 10 });
    assert.equal(page.total, 2_000);
    const entries = db.reads.join("").split('"allocatable"').length - 1;
    assert.ok(entries <= 11, `${entries} records`);
  });

  test("a capacity that the version before has recorded in one piece is listed, without holders", async () => {
    const { node: only } = node("a", 3) as Extract<CapacityEntry, { readonly kind: "node" }>;
    const capacity = JSON.stringify({ nodes: [only], seen: [], unbound: [] });
    await db.query("update clusters set capacity = $1::json, observed_ms = 5, reachable = true where name = 'east'", [
      capacity,
    ]);
    const page = await list();
    assert.deepEqual([namesOf(page), page.nodes[0]?.node.free[GPU]], [["east/a"], 5_000]);
  });

  test("jobs that hold the most come first, in pages that follow each other", async () => {
    const jobs: Job[] = [];
    for (const [admissionCounter, amount] of [1, 4, 2].entries()) {
      const job = await planner.submit();
      assert.equal(await planner.admit(plannedFor(job, { admissionCounter }), { amount }), "recorded");
      jobs.push(job);
    }
    await planner.submit();
    const filter = { namespace: "", names: [], kinds: [], phases: ["ADMITTED"], queue: "", cluster: null, labels: {} };
    const [one, four, two] = jobs.map(({ name }) => name);
    for (const pageSize of [1, 2, 3]) {
      const found: string[] = [];
      for (let after: string | null = null, at = 0; at === 0 || after !== null; at += 1) {
        const page = await planner.store.reads.listJobs({ filter, order: "held desc", pageSize, after });
        assert.ok(page !== "badCursor");
        for (const { job } of page.jobs) found.push(job.name);
        after = page.next;
      }
      assert.deepEqual(found, [four, two, one]);
    }
  });
});
