import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { fleetStore } from "../../../src/adapters/store/store.ts";
import { refuse } from "../../../src/core/plan/explain/refuse.ts";
import type { FleetRead } from "../../../src/core/plan/facts/fleet-read.ts";
import type { CapacityEntry, EntryChange } from "../../../src/core/plan/model/capacity-entry.ts";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { Planner } from "../../../src/core/plan/planner.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { waitUntil } from "../../support/bounded.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { keyed } from "../../support/keyed.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { changesOf } from "../../support/load-snapshot.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { countedDb } from "../../tools/bench/counted-db.ts";
import { type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW, newJob, sentOf } from "../jobs.ts";
import { allocation, freshLedger, poolChange, releaseOf } from "../ledger-fixture.ts";

const GPU = "nvidia.com/gpu";
const SHARED = "gpu/shared";

function node(name: string, gpus: number): CapacityEntry {
  const facts = { name, labels: {}, taints: [], unschedulable: false, allocatable: { [GPU]: 8_000 } };
  return { kind: "node", name, node: { ...facts, free: { [GPU]: gpus * 1_000 } }, members: [] };
}

/** The hashes of entities by key, but for nodes and pods: a snapshot does not say which node shows a member. */
function hashes(state: Planner): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  state.eachEntity((key, { hash }) => {
    if (!/^(node|unbound) /.test(key)) found.set(key, `${hash.low} ${hash.high}`);
  });
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

onEachDatabase((openDb) => {
  let db: Db;
  let ledger: Awaited<ReturnType<typeof freshLedger>>;
  let store: TestStore;
  let plannerEpoch: number;
  /** The epoch of the complete report that counts, by cluster. */
  const reports = new Map<string, number | null>();
  const held = new Set<string>();
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ledger = await freshLedger(db);
    store = ledger.store;
    plannerEpoch = await takePlannerLease(store, "p1");
    reports.clear();
    held.clear();
    await store.pools.register(poolChange({ name: SHARED, quota: 50 }), { version: 0, actor: "admin" });
  });

  const quotas = (flavor: string, nominal: number) => [{ flavor, resource: GPU, nominal }];
  const strategy = "BEST_EFFORT_FIFO" as const;
  const nameOf = (number: number) => ["east", "west"][number % 2] ?? "east";

  async function report(cluster: string, changes: readonly EntryChange[]): Promise<void> {
    const since = reports.get(cluster) ?? null;
    const { epoch } = await store.clusters.recordCapacity({ cluster, reachable: true, since, changes });
    reports.set(cluster, epoch);
  }

  async function updateQueue(name: string, change: object): Promise<void> {
    const found = await store.admin.getQueue(name);
    if (found !== null) await store.admin.updateQueue({ ...found, ...change });
  }

  /** Everything that changes what a plan depends on, but jobs. A number says how. Some do nothing at times. */
  const changes: Record<string, (number: number) => Promise<unknown>> = {
    submit: async () => {
      const job = newJob();
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    },
    "make a queue": (number) =>
      store.admin.createQueue({
        name: `q${number % 3}`,
        strategy,
        quotas: quotas(number % 2 ? FLAVOR : SHARED, number),
      }),
    "change a queue": (number) => updateQueue("research", { quotas: quotas(FLAVOR, number) }),
    "make a queue strict": () => updateQueue("research", { strategy: "STRICT_FIFO" }),
    "weigh a queue": (number) => updateQueue("research", { policy: { ...DEFAULT_POLICY, weight: number } }),
    "delete a queue": (number) => store.admin.deleteQueue(`q${number % 3}`),
    "limit a pool": async (number) => {
      const found = await store.pools.get(FLAVOR);
      const limited = poolChange({ name: FLAVOR, quota: number, projectDefault: number % 2 ? number : null });
      await store.pools.register(limited, { version: found?.version ?? 0, actor: "admin" });
    },
    grant: async (number) => {
      const token = `t${number % 5}`;
      const queue = (await store.admin.getQueue("q0")) === null ? "research" : "q0";
      const one = allocation({ pool: number % 2 ? FLAVOR : SHARED, token, amount: 1 + (number % 3), queue });
      const [outcome] = await ledgerAt(store, NOW).commit(ledger.epoch, [ledger.grant([one])]);
      if (outcome?.kind === "committed") held.add(JSON.stringify([one.pool, token]));
    },
    release: async () => {
      for (const one of [...held].slice(0, 2)) {
        held.delete(one);
        const [pool, token] = JSON.parse(one) as [string, string];
        await ledgerAt(store, NOW).release([releaseOf({ pool, token })]);
      }
    },
    "report a cluster anew": async (number) => {
      const entries = Array.from({ length: 1 + (number % 4) }, (_, at) => node(`n${at}`, number % 9));
      const { epoch } = await store.clusters.recordCapacity(completeCapacity(nameOf(number), entries));
      reports.set(nameOf(number), epoch);
    },
    "change a node": (number) =>
      report(nameOf(number), [
        { key: { kind: "node", name: `n${number % 4}` }, entry: node(`n${number % 4}`, number) },
      ]),
    "lose a node": (number) => report(nameOf(number), [{ key: { kind: "node", name: `n${number % 4}` }, entry: null }]),
    "lose a cluster": (number) => store.clusters.markUnreachable(nameOf(number), number % 2 === 0 ? null : "refuses"),
    cordon: (number) => store.admin.setCordoned(nameOf(number), number % 3 > 0),
    forget: async (number) => {
      reports.delete(nameOf(number));
      await store.clusters.remove(nameOf(number), true);
    },
    "register again": (number) => {
      const flavors = [{ name: FLAVOR, resource: GPU, nodeLabels: {} }];
      return store.clusters.simulate({ name: nameOf(number), labels: {}, flavors });
    },
    "report as the version before": async (number) => {
      reports.delete(nameOf(number));
      const capacity = JSON.stringify({ nodes: [], seen: [], unbound: [] });
      const legacy = "update clusters set capacity = $2, observed_ms = $3, reachable = true where name = $1";
      await db.query(`${legacy} and forgotten_ms is null`, [nameOf(number), capacity, NOW + number]);
    },
  };

  test("a planner that follows knows what one that loads knows, whatever changes", async () => {
    const step = fc.tuple(fc.constantFrom(...Object.keys(changes)), fc.nat(20));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 6 }), async (rounds) => {
        const follower = new FleetFollower(store.planner);
        for (const steps of rounds) {
          for (const [name, number] of steps) await changes[name]?.(number);
          // After a call without news the fleet rests, and the next round must still see every change.
          for (let at = 0; at < 2; at += 1) await follower.catchUp();
          const loaded = new FleetFollower(fleetStore(db, OWN_KINDS));
          await loaded.catchUp();
          assert.equal(follower.planner.hash(), loaded.planner.hash());
          const cold = new Planner();
          const snapshot = await snapshotOf(db);
          for (const change of changesOf(snapshot)) cold.apply(change);
          assert.deepEqual(hashes(follower.planner), hashes(cold));
          // A snapshot in which no gang waits has no callers.
          if (snapshot.waiting.length > 0) assert.deepEqual([...follower.callers], [...snapshot.callers]);
          assert.equal(follower.quotaEpoch, snapshot.quotaEpoch);
        }
      }),
      { numRuns: 25 },
    );
  });

  test("a fleet at rest costs one statement, which says nothing", async () => {
    for (const name of ["submit", "report a cluster anew", "grant"]) await changes[name]?.(1);
    await store.watch.sequence();
    const reads: FleetRead[] = [];
    let acts: string[] = [];
    const counted = countedDb(db, ({ kind }) => void acts.push(kind));
    const fleet = fleetStore(counted, OWN_KINDS);
    const readFleet: TestStore["planner"]["readFleet"] = async (...given) => {
      const read = await fleet.readFleet(...given);
      reads.push(read);
      return read;
    };
    const follower = new FleetFollower({ ...fleet, readFleet });
    // Transactions of other databases on the server can make the database tell sums again.
    await waitUntil("the fleet rests", async () => {
      acts = [];
      await follower.catchUp();
      return acts.join() === "statement";
    });
    await follower.reread([]);
    assert.deepEqual(acts, ["statement"]);
    const last = reads.at(-1) ?? assert.fail();
    assert.deepEqual([last.changes, last.whole, last.callers, last.more], [[], [], null, false]);
  });

  test("a job that a program of the version before has changed is known with its new generation", async () => {
    const follower = new FleetFollower(store.planner);
    await follower.catchUp();
    const job = newJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    await db.query("update jobs set gang_version = null, ask_hash = null, gang = null where uid = $1", [job.uid]);
    await follower.catchUp();
    const { generation } = follower.planner.gangOf(job.uid) ?? assert.fail();
    const [row] = await db.query<{ generation: number }>("select generation from jobs where uid = $1", [job.uid]);
    assert.deepEqual([row?.generation, generation], [2, 2]);
  });

  test("causes that another planner has recorded are known by page", async () => {
    const jobs = [newJob(), newJob()];
    for (const job of jobs) await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const refusals = jobs.map(({ uid }, at) =>
      keyed(refuse({ uid, generation: 1 }, { reason: "NoCapacity", message: "" }), at + 5),
    );
    await store.planner.recordRefusals(refusals, plannerEpoch, NOW);
    const { causes, next } = await store.planner.recordedCauses("");
    assert.deepEqual(
      new Map(causes.map(({ jobUid, causeKey }) => [jobUid, causeKey])),
      new Map(refusals.map(({ refusal, causeKey }) => [refusal.jobUid, causeKey])),
    );
    assert.equal(next, null);
    assert.deepEqual((await store.planner.recordedCauses(causes.at(-1)?.jobUid ?? "")).causes, []);
  });
});
