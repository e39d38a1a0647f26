import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { markRestored } from "../../../src/adapters/store/db/begin-anew.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { AdmissionBatch, AdmissionRecord, PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { StatementDb } from "../../support/statement-db.ts";
import { neededOf, raiseQuotaEpoch, takePlannerLease } from "../db.ts";
import { FLAVOR, NO_LIMIT, NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

type Planned = Partial<PlannedAdmission> & { readonly amount?: number; readonly chain?: string };

/** A planner's batch of new jobs, each with a GPU unless it says otherwise; queue `research` has 8. */
function batches(fixture: () => TestPlanner) {
  let fences = 0n;
  const record = (job: Job, { amount = 1, chain, ...planned }: Planned = {}): AdmissionRecord => {
    fences += 1n;
    const one = plannedFor(job, planned);
    const token = `job/${job.uid}/admission/${one.admission}/step/${fences}`;
    const allocations = one.allocations.map((allocation) => ({ ...allocation, ...NO_LIMIT, token, amount }));
    return {
      planned: { ...one, allocations: neededOf(allocations) },
      gang: gangOfPlanned(one),
      allocations,
      fence: (BigInt(fixture().quotaEpoch) << 32n) + fences,
      chain: chain ?? null,
    };
  };
  const batch = (records: readonly AdmissionRecord[], changes: Partial<AdmissionBatch> = {}): AdmissionBatch => {
    const { quotaEpoch, plannerEpoch } = fixture();
    const counters = new Map([
      ["east", 0],
      ["west", 0],
    ]);
    return { records, counters, quotaEpoch, plannerEpoch, nowMs: NOW + 1, ...changes };
  };
  const recordAll = (records: readonly AdmissionRecord[], changes: Partial<AdmissionBatch> = {}) =>
    fixture().store.planner.recordAdmissions(batch(records, changes));
  return { record, batch, recordAll };
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  const { record, recordAll } = batches(() => planner);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });

  const submit = (count: number) => Promise.all(Array.from({ length: count }, () => planner.submit()));

  /** The jobs with live admissions, the use of the pool, and the counters of the clusters. */
  async function facts() {
    const [row] = await db.query<{ live: number; used: number; held: number; tokens: number; logged: number }>(`
      select (select count(*)::int from admissions where state = 'live') as live,
             (select coalesce(sum(used), 0)::int from allocation_sums where scope = 'pool') as used,
             (select coalesce(sum(amount), 0)::int from allocations where released_ms is null) as held,
             (select count(*)::int from allocations) as tokens,
             (select count(*)::int from job_changes where change = 'MODIFIED') as logged`);
    const rows = await db.query<{ name: string; counter: number }>(
      "select name, admission_counter as counter from clusters order by name",
    );
    return { ...row, counters: rows.map(({ counter }) => counter) };
  }

  const RECORDED = { live: 2, used: 2, held: 2, tokens: 2, logged: 2, counters: [2, 0] };

  test("a batch is recorded in one transaction, and raises each cluster's counter by its gangs", async () => {
    const [a, b, c] = await submit(3);
    assert.ok(a && b && c);
    const outcomes = await recordAll([record(a), record(b, { cluster: "west" }), record(c)]);
    assert.deepEqual(outcomes, ["recorded", "recorded", "recorded"]);
    assert.deepEqual(await facts(), { live: 3, used: 3, held: 3, tokens: 3, logged: 3, counters: [2, 1] });
    for (const job of [a, b, c]) assert.equal((await planner.load(job.uid)).status.phase, "ADMITTED");
  });

  test("fences rise over all admissions, also when a gang is left out and after a restore", async () => {
    const jobs = await submit(5);
    const [a, b, late, c, d] = jobs;
    assert.ok(a && b && late && c && d);
    const fenceOf = async ({ uid }: Job) => BigInt((await planner.load(uid)).admissions[0]?.fence ?? -1);
    await recordAll([record(a), record(late, { generation: 9 }), record(b)]);
    assert.equal((await planner.load(late.uid)).admissions.length, 0);
    await recordAll([record(c)], { counters: new Map([["east", 2]]) });
    const before = [await fenceOf(a), await fenceOf(b), await fenceOf(c)];
    await markRestored({ query: async (text, params) => ({ rows: await db.query(text, params) }) });
    // The dump is older than the last fences.
    await db.query("alter sequence admission_fences restart");
    planner = { ...planner, quotaEpoch: (await raiseQuotaEpoch(planner.store)).epoch };
    await recordAll([record(d)], { counters: new Map([["east", 3]]) });
    const fences = [...before, await fenceOf(d)];
    assert.deepEqual(
      fences,
      [...new Set(fences)].sort((x, y) => (x < y ? -1 : 1)),
    );
    assert.ok(fences.every((fence) => fence > 0n && fence < 2n ** 63n));
  });

  const leftOut: Record<string, (job: Job) => Promise<Planned>> = {
    "a gang whose job moved on": async () => ({ generation: 9 }),
    "a gang whose job was cancelled": async (job) => {
      await planner.store.intake.requestCancel(job, "enough", NOW);
      return { generation: 2 };
    },
    "a gang that has an older admission": async (job) => {
      await db.query("insert into admissions select $1, 1, 'west', 'undone', '{}', '{}', '{}', 1, 1, 1", [job.uid]);
      return {};
    },
    "a gang of a cordoned cluster": async () => {
      await planner.store.admin.setCordoned("west", true);
      return { cluster: "west" };
    },
    "a gang of an unknown cluster": async () => ({ cluster: "north" }),
    "a gang that the ledger refuses": async () => ({ amount: 8 }),
  };
  for (const [name, arrange] of Object.entries(leftOut)) {
    test(`${name} is left out alone`, async () => {
      const [a, b, c] = await submit(3);
      assert.ok(a && b && c);
      const planned = await arrange(b);
      const logged = (await facts()).logged ?? 0;
      const admissions = (await facts()).tokens;
      const outcome = planned.amount === undefined ? "stale" : "refusedByLedger";
      assert.deepEqual(await recordAll([record(a), record(b, planned), record(c)]), ["recorded", outcome, "recorded"]);
      assert.deepEqual(await facts(), { ...RECORDED, logged: logged + 2, tokens: (admissions ?? 0) + 2 });
      assert.deepEqual((await planner.load(b.uid)).status.phase, "WAITING");
    });

    test(`${name} holds up those behind it in its chain`, async () => {
      const [a, b, c, d, e] = await submit(5);
      assert.ok(a && b && c && d && e);
      const planned = await arrange(b);
      const chain = "research";
      const outcomes = await recordAll([
        record(a, { chain }),
        record(b, { ...planned, chain }),
        record(c, { chain }),
        record(d, { chain: "other" }),
        record(e, { chain, cluster: "west" }),
      ]);
      const outcome = planned.amount === undefined ? "stale" : "refusedByLedger";
      assert.deepEqual(outcomes, ["recorded", outcome, "heldUp", "recorded", "heldUp"]);
      const { live, used, held, counters } = await facts();
      assert.deepEqual({ live, used, held, counters }, { live: 2, used: 2, held: 2, counters: [2, 0] });
    });
  }

  const nothing = { live: 0, used: 0, held: 0, tokens: 0, logged: 0, counters: [0, 0] };
  const moved: Record<string, () => Promise<Partial<AdmissionBatch>>> = {
    "the planner's lease": async () => {
      await takePlannerLease(planner.store, "p2");
      return {};
    },
    "the quota epoch": async () => {
      await raiseQuotaEpoch(planner.store);
      return {};
    },
    "each cluster's counter": async () => ({ counters: new Map([["east", 7]]) }),
  };
  for (const [name, arrange] of Object.entries(moved)) {
    test(`a batch is stale and leaves no trace if ${name} has moved on`, async () => {
      const [a, b] = await submit(2);
      assert.ok(a && b);
      const records = [record(a), record(b)];
      assert.deepEqual(await recordAll(records, await arrange()), ["stale", "stale"]);
      assert.deepEqual(await facts(), nothing);
    });
  }

  test("the ledger refuses as many gangs as do not fit, in the order of the batch", async () => {
    const jobs = await submit(5);
    const amounts = [3, 4, 6, 1, 2];
    const outcomes = await recordAll(jobs.map((job, at) => record(job, { amount: amounts[at] ?? 0 })));
    assert.deepEqual(outcomes, ["recorded", "recorded", "refusedByLedger", "recorded", "refusedByLedger"]);
    const { used, held, counters } = await facts();
    assert.deepEqual({ used, held, counters }, { used: 8, held: 8, counters: [3, 0] });
  });

  test("a job that comes twice in a batch is admitted once", async () => {
    const [a] = await submit(1);
    assert.ok(a);
    assert.deepEqual(await recordAll([record(a), record(a)]), ["recorded", "stale"]);
    assert.deepEqual((await facts()).counters, [1, 0]);
  });

  test("a gang without tokens, a growing gang and a job without pods are recorded beside others", async () => {
    const [a, b, c, d] = await submit(4);
    assert.ok(a && b && c && d);
    await recordAll([record(a, { members: { Worker: 2 } })]);
    const outcomes = await recordAll(
      [
        record(a, { kind: "grow", generation: 2, members: { Worker: 4 } }),
        { ...record(b, { allocations: [] }), fence: null },
        { ...record(c, { cluster: null, allocations: [] }), fence: null },
        record(d),
      ],
      { counters: new Map([["east", 1]]) },
    );
    assert.deepEqual(outcomes, ["recorded", "recorded", "recorded", "recorded"]);
    assert.deepEqual((await planner.load(a.uid)).admissions[0]?.members, { Worker: 4 });
    const { live, used, counters } = await facts();
    assert.deepEqual({ live, used, counters }, { live: 4, used: 3, counters: [4, 0] });
  });

  test("the number of statements does not grow with the batch, and few follow the lock of the domain", async () => {
    const statements: (readonly string[])[] = [];
    for (const count of [1, 7]) {
      planner = await freshPlanner(db);
      const jobs = await submit(count);
      const counted = new StatementDb(db);
      const bounds = { clock: { nowMs: () => NOW }, openNamespaces: true, defaultQueue: "research" };
      const store = createStore(counted, { ...bounds, kinds: OWN_KINDS, onAppended: () => undefined });
      planner = { ...planner, store };
      const outcomes = await recordAll(jobs.map((job) => record(job)));
      assert.ok(outcomes.every((outcome) => outcome === "recorded"));
      assert.equal(counted.transactions.length, 1);
      statements.push(counted.transactions[0] ?? []);
    }
    assert.deepEqual(statements[0], statements[1]);
    const domain =
      statements[0]?.findIndex((text) => /from quota_domains where .* for no key update/s.test(text)) ?? -1;
    assert.ok(domain > 0);
    assert.ok((statements[0]?.length ?? 0) - 1 - domain <= 4);
  });

  test("a transaction that fails at any of its statements records nothing, and can be repeated", async () => {
    const [a, b] = await submit(2);
    assert.ok(a && b);
    const records = [record(a), record(b)];
    const bounds = { clock: { nowMs: () => NOW }, openNamespaces: true, defaultQueue: "research" };
    const failing = new StatementDb(db);
    const store = createStore(failing, { ...bounds, kinds: OWN_KINDS, onAppended: () => undefined });
    planner = { ...planner, store };
    for (let at = 1; ; at += 1) {
      failing.failAt = at;
      const outcomes = await recordAll(records).catch((error: Error) => error.message);
      if (typeof outcomes !== "string") {
        assert.deepEqual(outcomes, ["recorded", "recorded"]);
        assert.ok(at > 10, `${at}`);
        break;
      }
      assert.equal(outcomes, `statement ${at} failed`);
      assert.deepEqual(await facts(), nothing);
    }
    assert.deepEqual(await facts(), RECORDED);
  });
});

onPostgres((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  const { record, recordAll } = batches(() => planner);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });

  test("a job that another transaction has locked is left out, and holds up no other", async () => {
    const [a, b] = await Promise.all([planner.submit(), planner.submit()]);
    const records = [record(a), record(b)];
    const outcomes = await db.tx(async (tx) => {
      await tx.query("select 1 from jobs where uid = $1 for update", [a.uid]);
      return recordAll(records);
    });
    assert.deepEqual(outcomes, ["stale", "recorded"]);
    assert.deepEqual(await recordAll(records, { counters: new Map([["east", 1]]) }), ["recorded", "stale"]);
  });

  test("of many batches that want the same room, each gang is admitted once and no limit is exceeded", async () => {
    const jobs = await Promise.all(Array.from({ length: 12 }, () => planner.submit()));
    const all = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        recordAll([...jobs.slice(at), ...jobs.slice(0, at)].map((job) => record(job))),
      ),
    );
    const recorded = all.flat().filter((outcome) => outcome === "recorded").length;
    const [row] = await db.query<{ live: number; used: number; held: number; counter: number }>(`
      select (select count(*)::int from admissions where state = 'live') as live,
             (select used::int from allocation_sums where scope = 'pool' and pool = '${FLAVOR}') as used,
             (select sum(amount)::int from allocations where released_ms is null) as held,
             (select admission_counter::int from clusters where name = 'east') as counter`);
    assert.deepEqual(row, { live: recorded, used: recorded, held: recorded, counter: recorded });
    assert.ok(recorded > 0 && recorded <= 8, `${recorded}`);
  });

  test("batches beside steps of workers and releases neither deadlock nor lose an amount", async () => {
    const admitted = await Promise.all(Array.from({ length: 6 }, () => planner.submit()));
    assert.ok((await recordAll(admitted.map((job) => record(job)))).every((outcome) => outcome === "recorded"));
    const leases = new Map((await planner.store.worker.takeBuckets("w1")).map((lease) => [lease.bucket, lease]));
    const release = async (job: Job) => {
      const loaded = await planner.store.worker.loadJob(job.uid);
      const lease = leases.get(loaded?.bucket ?? -1);
      assert.ok(loaded && lease);
      const admissions = loaded.job.admissions.map((one) => {
        return { ...one, state: "ended" as const, tokensReleasedMs: NOW };
      });
      const status = { ...loaded.job.status, phase: "SUCCEEDED" as const, completionTimeMs: NOW };
      const decided = { status, admissions, events: [], deleteTimeMs: null };
      const decision = { record: decided, forget: false, actions: [], recheckAtMs: null };
      return planner.store.worker.record(loaded.job, decision, lease, NOW);
    };
    const waiting = await Promise.all(Array.from({ length: 8 }, () => planner.submit()));
    const [released, outcomes] = await Promise.all([
      Promise.all(admitted.map(release)),
      recordAll(
        waiting.map((job) => record(job)),
        { counters: new Map([["east", 6]]) },
      ),
    ]);
    assert.ok(released.every((outcome) => outcome === "recorded"));
    const recorded = outcomes.filter((outcome) => outcome === "recorded").length;
    const [row] = await db.query<{ used: number; held: number }>(`
      select (select used::int from allocation_sums where scope = 'pool' and pool = '${FLAVOR}') as used,
             (select coalesce(sum(amount), 0)::int from allocations where released_ms is null) as held`);
    assert.deepEqual(row, { used: recorded, held: recorded });
    assert.ok(recorded >= 2, `${recorded}`);
  });
});
