import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Job } from "../../src/core/job/job.ts";
import { DEFAULT_POLICY } from "../../src/core/plan/model/queue-policy.ts";
import type { Counters, LedgerRow } from "../../src/core/quota/counters.ts";
import { createPlanner, type RunningPlanner } from "../../src/planner/planner.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { plannerQuota } from "../../src/tokens/planner-quota.ts";
import { reap } from "../../src/tokens/reaper/reap.ts";
import { admission, cluster, job, nodes, queue } from "../core/plan/plan-world.ts";
import { waitUntil } from "../support/bounded.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { soleDomain } from "../support/sole-quota.ts";
import { MemoryStore, type Operation } from "./memory-store.ts";

const gang = (name: string, replicas: number, parts: Partial<Parameters<typeof job>[0]> = {}) =>
  job({ name, roles: { Worker: { replicas, gpus: 8 } }, ...parts });

type World = { jobs?: readonly Job[]; quota?: number; nodes?: number; strict?: boolean };

/** Counters behind a connection that can be lost once, before a call takes effect or after. */
class LossyCounters {
  readonly port: Counters;
  readonly calls: (keyof Counters)[] = [];
  next: { readonly when: "before" | "after"; readonly call: keyof Counters } | null = null;

  constructor(counters: Counters) {
    const lossy = async <T>(call: keyof Counters, carryOut: () => Promise<T>) => {
      this.calls.push(call);
      const lost = this.next?.call === call ? this.next.when : null;
      if (lost !== null) this.next = null;
      if (lost !== "before") {
        const answer = await carryOut();
        if (lost === null) return answer;
      }
      throw new UnavailableError(`${call} was lost`);
    };
    this.port = {
      ...counters,
      open: (...given) => lossy("open", () => counters.open(...given)),
      grant: (...given) => lossy("grant", () => counters.grant(...given)),
      grantAll: (...given) => lossy("grantAll", () => counters.grantAll(...given)),
      free: (...given) => lossy("free", () => counters.free(...given)),
      turnOver: (...given) => lossy("turnOver", () => counters.turnOver(...given)),
      setLimits: (...given) => lossy("setLimits", () => counters.setLimits(...given)),
    };
  }
}

function start(world: World) {
  const { quota = 16, nodes: count = 8, strict = false } = world;
  const strategy = strict ? "STRICT_FIFO" : "BEST_EFFORT_FIFO";
  const store = new MemoryStore({
    jobs: world.jobs ?? [],
    clusters: [cluster("east", { nodes: nodes(count, "h100") })],
    queues: [queue("q", { h100: quota }, { strategy, policy: { ...DEFAULT_POLICY, reserveAfterMs: 0 } })],
  });
  const counters = new LossyCounters(inProcessCounters());
  const clock = systemClock();
  const domain = soleDomain({ clock, ledger: store.ledger, counters: counters.port });
  const woken: string[] = [];
  const errors: unknown[] = [];
  const lead: { epoch: number | null } = { epoch: store.plannerEpoch };
  const lease = { epoch: () => lead.epoch };
  const ports = {
    clock,
    store,
    fleet: fleetPlanner(store),
    quota: plannerQuota(domain),
    lease,
    wakeJob: (uid: string) => void woken.push(uid),
  };
  const planner = createPlanner(ports, { onError: (error) => void errors.push(error) });
  /** Runs the reaper once its grace time for unconfirmed grants is over. */
  const reapAll = async () => {
    for (let round = 0; round < 12; round += 1) {
      await counters.port.report(await domain.epochs.openEpoch(1_000));
      await reap(domain, 1_000);
    }
  };
  return { store, counters: counters.port, lossy: counters, domain, planner, woken, errors, ports, lead, reapAll };
}

const admitted = (store: MemoryStore) =>
  [...store.jobs.values()].filter((one) => one.admissions.length > 0).map((one) => one.name);

async function queueUse(counters: Counters): Promise<number> {
  const sums = await counters.used();
  return sums.find(({ scope }) => scope.kind === "queue")?.used ?? 0;
}

function ledgerUse(store: MemoryStore): number {
  return store.rows.filter((row) => !row.released).reduce((sum, row) => sum + row.amount, 0);
}

function jobOf({ holder }: LedgerRow): string {
  return holder.kind === "admission" ? holder.jobUid : "no job";
}

test("a round admits gangs that fit, names tokens, wakes workers, and records why others wait", async () => {
  const { store, counters, planner, woken } = start({ jobs: [gang("a", 2), gang("b", 1)] });
  const round = await planner.runOnce();
  assert.deepEqual(round, {
    admitted: 1,
    grown: 0,
    refused: 1,
    nominated: 0,
    missed: 0,
    replanAtMs: null,
    more: false,
  });
  assert.deepEqual(woken, ["uid-a"]);
  assert.deepEqual(
    store.rows.map((row) => [row.token, row.amount, jobOf(row)]),
    [["job/uid-a/admission/1/step/1/1", 16, "uid-a"]],
  );
  assert.equal(store.rows[0]?.fence, 2n ** 32n + 1n);
  assert.equal(store.refusals.get("uid-b")?.reason, "QuotaExhausted");
  assert.deepEqual(store.refusals.get("uid-b")?.quotas[0]?.heldBy, ["ml/a"]);
  assert.equal(await queueUse(counters), 16);
});

test("one round admits several gangs to the same cluster", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1), gang("b", 1), gang("c", 1)], quota: 99 });
  assert.equal((await planner.runOnce())?.admitted, 3);
  assert.equal(store.clusters[0]?.admissionCounter, 10);
});

test("a round takes the tokens of many gangs in one call, and records them in one transaction", async () => {
  const jobs = Array.from({ length: 300 }, (_, at) => gang(`${at}`, 1));
  const { store, lossy, planner, counters } = start({ jobs, quota: 8 * 300, nodes: 300 });
  const records: number[] = [];
  store.before = (operation, jobUids) => {
    if (operation === "recordAdmissions") records.push(jobUids.length);
  };
  assert.equal((await planner.runOnce())?.admitted, 300);
  assert.deepEqual(records, [256, 44]);
  assert.equal(lossy.calls.filter((call) => call === "grantAll").length, 2);
  assert.equal(lossy.calls.includes("grant"), false);
  assert.equal(await queueUse(counters), 8 * 300);
  assert.equal(store.clusters[0]?.admissionCounter, 307);
});

test("a gang that moved on in the middle of a round leaves later batches their places", async () => {
  const jobs = Array.from({ length: 300 }, (_, at) => gang(`${at}`, 1));
  const { store, planner, counters } = start({ jobs, quota: 8 * 300, nodes: 300 });
  store.before = (operation) => {
    const one = store.jobs.get("uid-7");
    if (operation === "recordAdmissions" && one) store.jobs.set(one.uid, { ...one, version: 9 });
  };
  const round = await planner.runOnce();
  assert.deepEqual([round?.admitted, round?.missed], [299, 1]);
  assert.equal(await queueUse(counters), 8 * 299);
});

test("in a strict queue no gang takes tokens after one for which the counters have none", async () => {
  const { store, domain, planner, counters } = start({ jobs: [gang("a", 2), gang("b", 1)], quota: 24, strict: true });
  const epoch = await domain.epochs.openEpoch(1_000);
  const allocation = { pool: "gpu/h100", token: "t", amount: 9, project: "p", namespace: "n", queue: "q" };
  const allocations = [{ ...allocation, caps: { project: null, namespace: null }, leaseMs: null }];
  const holder = { kind: "caller", name: "ann" } as const;
  assert.equal((await counters.grant({ epoch, holder, allocations, priority: 0, waiter: null })).kind, "granted");
  await planner.runOnce();
  assert.deepEqual(admitted(store), []);
  assert.equal(await queueUse(counters), 9, "the plan has room for both, and the counters for the second");
});

test("tokens that the ledger has released are freed in the counters, confirmed and used again", async () => {
  const { store, counters, planner } = start({ jobs: [gang("a", 2), gang("b", 2)] });
  await planner.runOnce();
  store.finish("uid-a");
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["b"]);
  assert.deepEqual(await store.tokens.unconfirmedReleases(10), []);
  assert.equal(await queueUse(counters), 16);
});

test("a nominee asks the counters only for what it does not hold, and keeps what it holds", async () => {
  const { store, counters, lossy, planner } = start({ jobs: [gang("victim", 2)] });
  await planner.runOnce();
  const [row] = store.rows;
  assert.ok(row);
  store.jobs.clear();
  const nominee = gang("nominee", 2);
  store.jobs.set(nominee.uid, nominee);
  const heir = `job/${nominee.uid}/hold/1`;
  await store.tokens.turnOver({ ...row, amount: 0, heir, lacks: 10, jobUid: nominee.uid });
  const calls = lossy.calls.length;
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.deepEqual(
    lossy.calls.slice(calls).filter((call) => /turnOver|free|grant/.test(call)),
    ["turnOver", "free", "grantAll"],
  );
  assert.deepEqual(
    store.tokens.live.map(({ token, amount, holder }) => [token, amount, holder]),
    [
      [heir, 10, { kind: "admission", jobUid: nominee.uid, admission: 1 }],
      [`job/${nominee.uid}/admission/1/step/1/1`, 6, { kind: "admission", jobUid: nominee.uid, admission: 1 }],
    ],
  );
  assert.equal(await queueUse(counters), 16);
});

test("a nominee that holds all that it needs asks the counters for nothing", async () => {
  const { store, counters, lossy, planner } = start({ jobs: [gang("victim", 2)] });
  await planner.runOnce();
  const [row] = store.rows;
  assert.ok(row);
  store.jobs.clear();
  const nominee = gang("nominee", 2);
  store.jobs.set(nominee.uid, nominee);
  await store.tokens.turnOver({ ...row, amount: 0, heir: "job/hold", lacks: 16, jobUid: nominee.uid });
  const calls = lossy.calls.length;
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.deepEqual(
    lossy.calls.slice(calls).filter((call) => call.startsWith("grant")),
    [],
  );
  assert.equal(await queueUse(counters), 16);
});

test("a release between settling and planning does not rebuild the counters", async () => {
  const { store, planner } = start({ jobs: [gang("a", 2), gang("b", 2)] });
  await planner.runOnce();
  store.before = (operation) => {
    if (operation === "readFleet") store.finish("uid-a");
  };
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.equal(store.tokens.epoch, 1);
});

test("a gang whose job moved on gives its tokens back and is planned again", async () => {
  const { store, counters, planner } = start({ jobs: [gang("a", 1)] });
  let moves = 1;
  store.before = (operation) => {
    const one = store.jobs.get("uid-a");
    if (operation === "recordAdmissions" && moves-- > 0 && one)
      store.jobs.set(one.uid, { ...one, version: one.version + 1 });
  };
  assert.equal((await planner.runOnce())?.missed, 1);
  assert.equal(await queueUse(counters), 0);
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.equal(await queueUse(counters), 8);
});

test("a gang that moved on does not hold up those behind it", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1), gang("b", 1)] });
  store.before = (operation) => {
    const one = store.jobs.get("uid-a");
    if (operation === "recordAdmissions" && one) store.jobs.set(one.uid, { ...one, version: 9 });
  };
  const round = await planner.runOnce();
  assert.deepEqual([round?.admitted, round?.missed], [1, 1]);
  assert.deepEqual(admitted(store), ["b"]);
});

test("in a strict queue no gang passes one that moved on", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1), gang("b", 1)], strict: true });
  store.before = (operation) => {
    const one = store.jobs.get("uid-a");
    if (operation === "recordAdmissions" && one) store.jobs.set(one.uid, { ...one, version: 9 });
  };
  assert.equal((await planner.runOnce())?.missed, 2);
  assert.deepEqual(admitted(store), []);
});

test("an admission that the store cannot record holds up no other", async () => {
  const { store, counters, planner } = start({ jobs: [gang("a", 1), gang("b", 1), gang("c", 1)] });
  store.before = (_operation, jobUids) => {
    if (jobUids.includes("uid-a")) throw new Error("no such row");
  };
  await assert.rejects(planner.runOnce(), /no such row/);
  assert.deepEqual(admitted(store), ["b"]);
  assert.equal(store.refusals.get("uid-c")?.reason, "QuotaExhausted");
  store.before = () => undefined;
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a", "b"]);
  assert.equal(await queueUse(counters), 16);
});

test("an admission whose answer was lost is found in the ledger, not granted twice", async () => {
  const { store, counters, planner } = start({ jobs: [gang("a", 2), gang("b", 1)] });
  store.after = (operation) => {
    store.after = () => undefined;
    throw new Error(`lost the answer of ${operation}`);
  };
  await assert.rejects(planner.runOnce(), /lost the answer/);
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a"]);
  assert.equal(await queueUse(counters), 16);
  // The counters were not rebuilt: the unacknowledged grant waited for the ledger.
  assert.equal(store.tokens.epoch, 1);
});

test("unconfirmed grants hold their tokens until the reaper frees them", async () => {
  const { store, counters, planner, reapAll } = start({});
  await planner.runOnce();
  const allocation = { pool: "gpu/h100", token: "ghost", amount: 16, project: "p", namespace: "n", queue: "q" };
  await counters.grant({
    epoch: 1,
    priority: 0,
    waiter: null,
    holder: { kind: "admission", jobUid: "ghost", admission: 1 },
    allocations: [{ ...allocation, caps: { project: null, namespace: null }, leaseMs: null }],
  });
  store.jobs.set("uid-a", gang("a", 2));
  assert.equal((await planner.runOnce())?.missed, 1);
  await reapAll();
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.equal(await queueUse(counters), 16);
});

test("a raised limit admits, a lowered one takes nothing away", async () => {
  const { store, counters, planner } = start({ jobs: [gang("a", 1), gang("b", 1)], quota: 8 });
  const setQuota = (quota: number) => {
    store.queues = [queue("q", { h100: quota })];
  };
  await planner.runOnce();
  setQuota(16);
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a", "b"]);
  setQuota(4);
  store.jobs.set("uid-c", gang("c", 1));
  await planner.runOnce();
  assert.equal(store.refusals.get("uid-c")?.reason, "AboveQuota");
  assert.equal(await queueUse(counters), 16);
});

test("a gang that lacks members grows under a token of its own", async () => {
  const running = gang("a", 2, {
    minAvailable: 1,
    admissions: [
      admission({
        cluster: "east",
        members: { Worker: 1 },
        flavors: { "nvidia.com/gpu": "gpu/h100" },
        flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
      }),
    ],
  });
  const { store, planner } = start({ jobs: [running] });
  assert.equal((await planner.runOnce())?.grown, 1);
  assert.equal((await planner.runOnce())?.grown, 0);
  assert.deepEqual(
    store.rows.map((row) => [row.token, row.amount]),
    [["job/uid-a/admission/1/step/3/1", 8]],
  );
  assert.deepEqual(store.jobs.get("uid-a")?.admissions.at(-1)?.members, { Worker: 2 });
});

test("a gang without GPUs is admitted without tokens", async () => {
  const { store, planner } = start({ jobs: [job({ name: "cpu", roles: { Worker: { replicas: 2, cpu: 1 } } })] });
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["cpu"]);
  assert.deepEqual(store.rows, []);
});

test("in a queue that an admin stops nothing more is admitted, and once it is resumed, the older gang is", async () => {
  const { store, planner } = start({ jobs: [gang("b", 1, { createTimeMs: 2 }), gang("a", 1, { createTimeMs: 1 })] });
  const [open] = store.queues;
  assert.ok(open);
  store.queues = [{ ...open, stopPolicy: "HOLD" }];
  await planner.runOnce();
  assert.deepEqual(admitted(store), []);
  const { reason, message } = store.refusals.get("uid-a") ?? {};
  assert.deepEqual([reason, message], ["QueueStopped", "queue q is stopped"]);
  store.queues = [{ ...open, quotas: queue("q", { h100: 8 }).quotas }];
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a"]);
  assert.equal(store.refusals.get("uid-b")?.reason, "QuotaExhausted");
});

test("a queue runs no more jobs than it may; a higher number admits the next", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1, { createTimeMs: 1 }), gang("b", 1, { createTimeMs: 2 })] });
  const [open] = store.queues;
  assert.ok(open);
  store.queues = [{ ...open, maxRunningJobs: 1 }];
  await planner.runOnce();
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a"]);
  const { reason, message } = store.refusals.get("uid-b") ?? {};
  assert.deepEqual([reason, message], ["QueueFull", "queue q runs 1 job, and may run 1 at most"]);
  store.queues = [{ ...open, maxRunningJobs: 2 }];
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a", "b"]);
});

test("a gang that was planned before its queue was stopped is not admitted after it", async () => {
  const { store, planner, counters } = start({ jobs: [gang("a", 1)] });
  const [open] = store.queues;
  assert.ok(open);
  store.before = (operation) => {
    if (operation === "recordAdmissions") store.queues = [{ ...open, stopPolicy: "HOLD" }];
  };
  assert.equal((await planner.runOnce())?.missed, 1);
  assert.deepEqual([admitted(store), await queueUse(counters)], [[], 0]);
  await planner.runOnce();
  assert.equal(store.refusals.get("uid-a")?.reason, "QueueStopped");
});

test("a queue that drains has its admissions undone, once each, also if the answer is lost", async () => {
  const { store, planner, woken, errors } = start({ jobs: [gang("a", 1)] });
  await planner.runOnce();
  const [open] = store.queues;
  assert.ok(open);
  store.queues = [{ ...open, stopPolicy: "HOLD_AND_DRAIN" }];
  woken.length = 0;
  store.after = (operation) => {
    if (operation === "recordEvictions") throw new UnavailableError("the answer was lost");
  };
  await planner.runOnce().catch((error: unknown) => errors.push(error));
  assert.equal(errors.length, 1);
  store.after = () => undefined;
  const requested = store.jobs.get("uid-a");
  assert.equal(requested?.status.eviction?.admission, 1);
  await planner.runOnce();
  assert.equal(store.jobs.get("uid-a"), requested, "it is requested once");
  store.queues = [open];
  await planner.runOnce();
  assert.equal(store.jobs.get("uid-a"), requested, "what was requested is carried out");
});

test("a queue that is resumed before evictions are recorded keeps its admissions", async () => {
  const { store, planner, woken } = start({ jobs: [gang("a", 1)] });
  await planner.runOnce();
  const [open] = store.queues;
  assert.ok(open);
  store.queues = [{ ...open, stopPolicy: "HOLD_AND_DRAIN" }];
  woken.length = 0;
  store.before = (operation) => {
    if (operation === "recordEvictions") store.queues = [open];
  };
  await planner.runOnce();
  assert.deepEqual([store.jobs.get("uid-a")?.status.eviction, woken], [undefined, []]);
});

test("an unchanged refusal is not written again", async () => {
  const { store, planner } = start({ jobs: [gang("a", 3)] });
  for (let round = 0; round < 5; round += 1) await planner.runOnce();
  assert.equal(store.refusalsWritten, 1);
});

test("a planner that does not lead plans nothing; one that takes over keeps the counters", async () => {
  const { store, planner, lead } = start({ jobs: [gang("a", 1)] });
  lead.epoch = null;
  assert.equal(await planner.runOnce(), null);
  assert.deepEqual([admitted(store), store.tokens.epoch], [[], 0]);
  lead.epoch = 1;
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.equal(store.tokens.epoch, 1);
  store.jobs.set("uid-b", gang("b", 1));
  lead.epoch = null;
  assert.equal(await planner.runOnce(), null);
  store.plannerEpoch = 3;
  lead.epoch = 3;
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.equal(store.tokens.epoch, 1);
});

test("a planner that has lost its lease without knowing it admits no gang and gives its grants back", async () => {
  const { store, planner, counters } = start({ jobs: [gang("a", 1)] });
  store.plannerEpoch = 2;
  assert.equal((await planner.runOnce())?.missed, 1);
  assert.deepEqual([admitted(store), await queueUse(counters)], [[], 0]);
});

test("rounds do not overlap", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1)] });
  const order: string[] = [];
  store.before = (operation) => void order.push(operation);
  await Promise.all([planner.runOnce(), planner.runOnce()]);
  const second = order.lastIndexOf("unconfirmedReleases");
  assert.ok(order.indexOf("recordAdmissions") < second);
  assert.equal(order.filter((operation) => operation === "raiseEpoch").length, 1);
});

function running(planner: RunningPlanner) {
  const stop = new AbortController();
  const ended = planner.run(stop.signal);
  return {
    end: async () => {
      stop.abort();
      await ended;
    },
  };
}

test("the loop plans again when it is woken, and ends when its signal is aborted", async () => {
  const { store, planner } = start({ jobs: [gang("a", 1)] });
  const loop = running(planner);
  await waitUntil("one gang is admitted", () => admitted(store).length === 1, { pollMs: 1 });
  store.jobs.set("uid-b", gang("b", 1));
  for (let times = 0; times < 100; times += 1) planner.wake();
  await waitUntil("two gangs are admitted", () => admitted(store).length === 2, { pollMs: 1 });
  await loop.end();
});

test("the loop plans again by itself when a gang's time has come", async () => {
  const waits = gang("a", 1, { backoff: { undone: 1, notBeforeMs: Date.now() + 50, lastCluster: "east" } });
  const { store, planner } = start({ jobs: [waits] });
  store.numbers.set("uid-a", 1);
  const loop = running(planner);
  await waitUntil("one gang is admitted", () => admitted(store).length === 1, { pollMs: 1 });
  assert.equal(store.jobs.get("uid-a")?.admissions.at(-1)?.number, 2);
  await loop.end();
});

test("the loop reports errors of the store, and continues", async () => {
  const { store, planner, errors } = start({ jobs: [gang("a", 1)] });
  const failing: Operation[] = ["readFleet", "recordAdmissions", "recordRefusals"];
  store.jobs.set("uid-b", gang("b", 9));
  store.before = (operation) => {
    if (operation !== failing[0]) return;
    failing.shift();
    throw new Error(`${operation} failed`);
  };
  const loop = running(planner);
  const isDecided = () => store.refusals.size === 1 && admitted(store).length === 1;
  await waitUntil("one is admitted and one refused", isDecided, { pollMs: 1 });
  await loop.end();
  const each = errors.flatMap((error) => (error instanceof AggregateError ? error.errors : [error]));
  assert.deepEqual(
    each.map((error: Error) => error.message.split(" ")[0]),
    ["readFleet", "recordAdmissions", "recordRefusals"],
  );
  assert.equal(ledgerUse(store), 8);
});

for (const when of ["before", "after"] as const) {
  test(`a gang's tokens are given back even if that call is lost ${when} it takes effect`, async () => {
    const { store, counters, lossy, planner, reapAll } = start({ jobs: [gang("a", 1)] });
    store.before = (operation) => {
      if (operation === "recordAdmissions") store.jobs.delete("uid-a");
    };
    lossy.next = { when, call: "free" };
    await assert.rejects(planner.runOnce(), /free was lost/);
    await reapAll();
    assert.equal(await queueUse(counters), 0);
  });

  test(`a limit that was changed back holds again even if its change was lost ${when} it took effect`, async () => {
    const { store, counters, lossy, planner } = start({ quota: 16 });
    await planner.runOnce();
    store.queues = [queue("q", { h100: 8 })];
    lossy.next = { when, call: "setLimits" };
    await assert.rejects(planner.runOnce(), /setLimits was lost/);
    store.queues = [queue("q", { h100: 16 })];
    store.jobs.set("uid-a", gang("a", 2));
    assert.equal((await planner.runOnce())?.admitted, 1);
    assert.equal(await queueUse(counters), 16);
  });
}

test("whichever calls are lost, counters and ledger agree at the end and no limit is exceeded", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("submit" as const), replicas: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ do: fc.constant("finish" as const), at: fc.nat(4) }),
    fc.record({ do: fc.constant("quota" as const), quota: fc.nat(40) }),
    fc.record({
      do: fc.constant("fail" as const),
      when: fc.constantFrom("before" as const, "after" as const),
      operation: fc.constantFrom<Operation>("recordAdmissions", "confirmReleases", "readFleet", "raiseEpoch"),
    }),
    fc.record({
      do: fc.constant("lose" as const),
      when: fc.constantFrom("before" as const, "after" as const),
      call: fc.constantFrom<keyof Counters>("open", "grant", "grantAll", "free", "setLimits"),
    }),
    fc.record({ do: fc.constant("move on" as const) }),
    fc.record({ do: fc.constant("round" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { store, counters, lossy, planner, reapAll } = start({ quota: 24 });
      let limit = 24;
      let count = 0;
      const once = (operation: Operation) => {
        let done = false;
        return (called: Operation) => {
          if (done || called !== operation) return;
          done = true;
          throw new Error(`${operation} was lost`);
        };
      };
      const round = async () => {
        const before = ledgerUse(store);
        await planner.runOnce().catch((error: Error) => {
          const causes: readonly Error[] = error instanceof AggregateError ? error.errors : [error];
          for (const cause of causes) assert.match(cause.message, /was lost/);
        });
        if (ledgerUse(store) > before) assert.ok(ledgerUse(store) <= limit);
      };
      for (const one of steps) {
        if (one.do === "submit") {
          count += 1;
          store.jobs.set(`uid-${count}`, gang(String(count), one.replicas));
        } else if (one.do === "finish") {
          const done = [...store.jobs.values()].filter((j) => j.admissions.length > 0)[one.at];
          if (done) store.finish(done.uid);
        } else if (one.do === "quota") {
          limit = one.quota;
          store.queues = [queue("q", { h100: limit })];
        } else if (one.do === "lose") lossy.next = one;
        else if (one.do === "move on") {
          store.before = (operation) => {
            if (operation !== "recordAdmissions") return;
            store.before = () => undefined;
            for (const [uid, job] of store.jobs) store.jobs.set(uid, { ...job, version: job.version + 1 });
          };
        } else if (one.do === "fail") store[one.when] = once(one.operation);
        else await round();
      }
      for (let times = 0; times < 6; times += 1) await round();
      // A loss or a failure that no call has met is over.
      lossy.next = null;
      store.before = () => undefined;
      store.after = () => undefined;
      await reapAll();
      assert.equal(await queueUse(counters), ledgerUse(store));
      assert.deepEqual(await store.tokens.unconfirmedReleases(1), []);
    }),
  );
});
