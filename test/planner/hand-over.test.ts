/** Two planners at a hand-over, on real PostgreSQL, with batches in flight and the connection cut at every step. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import { createPlanner } from "../../src/planner/planner.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { plannerQuota } from "../../src/tokens/planner-quota.ts";
import { reap } from "../../src/tokens/reaper/reap.ts";
import { freshStore } from "../store/db.ts";
import { FLAVOR, newJob, sentOf } from "../store/jobs.ts";
import { poolChange } from "../store/ledger-fixture.ts";
import { completeCapacity } from "../support/complete-capacity.ts";
import { onPostgres } from "../support/databases.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { KillingDb } from "../support/killing-db.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { soleDomain } from "../support/sole-quota.ts";

const GPU = "nvidia.com/gpu";
const QUOTA = 5;
/** The first statement of a transaction that records a batch, which is the first of a round that has it. */
const TAKE_LEASE = "from leases where name";

function node(name: string): CapacityEntry {
  const room = { cpu: 64_000, memory: 1e12, pods: 1_000_000, [GPU]: 4_000 };
  const labels = { "gangway.dev/gpu": "h100" };
  const facts = { name, labels, taints: [], unschedulable: false, allocatable: room, free: room };
  return { kind: "node", name, node: facts, members: [] };
}

function gpuJob(name: string, queue: string, replicas: number): Job {
  const job = newJob({ name, queue });
  const resources = { limits: { [GPU]: "1" }, requests: { [GPU]: "1" } };
  const template = { spec: { containers: [{ name: "pytorch", resources }] } };
  const worker = { replicas, restartPolicy: "OnFailure" as const, template };
  const { schedulingPolicy } = job.spec.runPolicy;
  const runPolicy = { ...job.spec.runPolicy, schedulingPolicy: { ...schedulingPolicy, minAvailable: replicas } };
  return { ...job, spec: { ...job.spec, replicaSpecs: { Worker: worker }, runPolicy } };
}

onPostgres((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  /** Jobs in a strict queue and in another one, two clusters of four GPUs, and a pool of fewer GPUs than are asked. */
  async function world() {
    const { store } = await freshStore(db);
    for (const cluster of ["east", "west"]) {
      await store.clusters.recordCapacity(completeCapacity(cluster, [node(`${cluster}-1`)]));
    }
    const quotas = [{ flavor: FLAVOR, resource: GPU, nominal: QUOTA }];
    await store.admin.ensureQueue({ name: "strict", strategy: "STRICT_FIFO", quotas });
    await store.pools.register(poolChange({ name: FLAVOR, quota: QUOTA }), { version: 0, actor: "admin" });
    const jobs = [
      ...[1, 1, 2].map((replicas, at) => gpuJob(`strict-${at}`, "strict", replicas)),
      ...[1, 1, 1].map((replicas, at) => gpuJob(`loose-${at}`, "research", replicas)),
    ];
    for (const job of jobs) {
      assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    }
    return { counters: inProcessCounters() };
  }

  /** A planner with connections, a domain and a lease of its own. It loses as many answers as `cuts` says. */
  async function startPlanner(counters: Counters, holder: string, cuts: { grants?: number; free?: number } = {}) {
    const clock = systemClock();
    const killing = new KillingDb(db);
    const store = createStore(killing, {
      clock,
      kinds: OWN_KINDS,
      openNamespaces: true,
      defaultQueue: "research",
      onAppended: () => undefined,
    });
    const lossy: Counters = {
      ...counters,
      grantAll: async (epoch, requests) => {
        const answer = await counters.grantAll(epoch, requests);
        if (cuts.grants !== undefined && cuts.grants-- > 0) throw new UnavailableError("the grants were lost");
        return answer;
      },
      free: async (epoch, refs) => {
        if (cuts.free !== undefined && cuts.free-- > 0) throw new UnavailableError("the release was lost");
        return counters.free(epoch, refs);
      },
    };
    const domain = soleDomain({ clock, ledger: store.ledgerOf("default", clock), counters: lossy });
    const lead: { epoch: number | null } = { epoch: await store.members.takeLease("planner", holder) };
    assert.ok(lead.epoch !== null);
    const errors: unknown[] = [];
    const planner = createPlanner(
      {
        clock,
        store: store.planner,
        fleet: fleetPlanner(store.planner),
        quota: plannerQuota(domain),
        lease: { epoch: () => lead.epoch },
        wakeJob: () => undefined,
      },
      { onError: (error) => void errors.push(error) },
    );
    const round = () => planner.runOnce().catch((error: unknown) => void errors.push(error));
    const reapAll = async () => {
      for (let at = 0; at < 12; at += 1) {
        await lossy.report(await domain.epochs.openEpoch(1_000));
        await reap(domain, 1_000);
      }
    };
    return { killing, domain, round, reapAll, errors };
  }

  /** No job has two live admissions, sums equal live rows, no limit is exceeded, and no tokens are without a gang. */
  async function check(counters: Counters): Promise<number> {
    const [row] = await db.query<Record<string, number>>(`
      select (select count(*)::int from admissions where state = 'live') as live,
             (select count(distinct job_uid)::int from admissions where state = 'live') as jobs,
             (select count(*)::int from admission_clusters) as entered,
             (select count(*)::int from jobs where phase = 'ADMITTED') as admitted,
             (select sum(admission_counter)::int from clusters) as counters,
             (select count(*)::int from allocations where released_ms is null) as rows,
             (select coalesce(sum(amount), 0)::int from allocations where released_ms is null) as held,
             (select coalesce(sum(used), 0)::int from allocation_sums where scope = 'pool') as pool,
             (select coalesce(sum(used), 0)::int from allocation_sums where scope = 'queue') as queues`);
    assert.ok(row);
    const { live, held } = row;
    assert.deepEqual(row, {
      live,
      jobs: live,
      entered: live,
      admitted: live,
      counters: live,
      rows: live,
      held,
      pool: held,
      queues: held,
    });
    assert.ok((held ?? 0) <= QUOTA);
    const used = (await counters.used()).find(({ scope }) => scope.kind === "pool")?.used ?? 0;
    assert.equal(used, held);
    const order = await db.query<{ name: string; phase: string }>(
      "select name, phase from jobs where queue = 'strict' order by create_ms, uid",
    );
    const phases = order.map(({ phase }) => phase);
    assert.deepEqual(phases, [...phases].sort(), "no gang of the strict queue has passed another");
    return held ?? 0;
  }

  type Cuts = {
    /** Omitted: no transaction is cut. */
    readonly record?: number | "answer";
    /** The number of answers of the counters that are lost. Omitted: none. */
    grants?: number;
    free?: number;
    /** True: the other planner takes over only after the cut. Omitted: at the same time. */
    readonly later?: boolean;
  };

  /** One planner is cut, and another takes over; then both plan, and at last the other alone until nothing changes. */
  async function handOver({ record, later = false, ...cuts }: Cuts) {
    const { counters } = await world();
    const first = await startPlanner(counters, "p1", cuts);
    if (record !== undefined) first.killing.next = { statement: TAKE_LEASE, after: record };
    const cut = first.round();
    if (later) await cut;
    const other = await startPlanner(counters, "p2");
    // The first planner does not know that it has lost the lease.
    await Promise.all([cut, other.round()]);
    await Promise.all([first.round(), other.round()]);
    await other.reapAll();
    for (let at = 0; at < 3; at += 1) await other.round();
    await other.reapAll();
    assert.ok((await check(counters)) >= QUOTA - 1);
    return first;
  }

  test("two planners at a hand-over admit each gang once, whichever of them is faster", async () => {
    for (let run = 0; run < 5; run += 1) await handOver({});
  });

  for (const later of [true, false]) {
    const when = later ? "then" : "meanwhile";
    test(`a batch is cut at each statement and after its commit, and another planner takes over ${when}`, async () => {
      const { counters } = await world();
      const alone = await startPlanner(counters, "p0");
      alone.killing.next = { statement: TAKE_LEASE, after: "answer" };
      await alone.round();
      const { statements } = alone.killing;
      assert.ok(statements > 10, `${statements}`);
      for (const at of [...Array.from({ length: statements + 1 }, (_, count) => count), "answer" as const]) {
        const { errors, killing } = await handOver({ record: at, later });
        assert.ok(!later || killing.kills === 1, `${at}`);
        assert.ok(
          errors.every((error) => error instanceof UnavailableError),
          `${at}: ${errors.join()}`,
        );
      }
    });
  }

  test("the answer of the counters is lost between the grants and their record", async () => {
    for (const later of [true, false]) await handOver({ grants: 1, later });
  });

  test("tokens that could not be given back are freed later", async () => {
    for (const later of [true, false]) await handOver({ free: 2, later });
  });
});
