import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { queue } from "./plan-world.ts";
import { SmallFleet } from "./small-fleet.ts";

const MINUTE = 60_000;

const own = (gpus: number, parts: Partial<QueuePolicy> = {}, strategy?: "STRICT_FIFO"): PlanQueue =>
  queue(
    "q",
    { h100: gpus },
    { policy: { ...DEFAULT_POLICY, ...parts }, ...(strategy === undefined ? {} : { strategy }) },
  );

/** `a admitted`, `a reserves on east after b, c`, `a takes back b on east`, `a withdrawn`. */
function short({ admissions, preemptions, withdrawn }: FleetPlan): readonly string[] {
  const names = (gangs: readonly { readonly jobUid: string }[]) =>
    gangs.map(({ jobUid }) => jobUid.slice(4)).join(", ");
  return [
    ...admissions.map(({ jobUid }) => `${jobUid.slice(4)} admitted`),
    ...preemptions.map(({ planned: { jobUid, cluster }, victims, reservation }) => {
      const does =
        victims.length > 0 ? `takes back ${names(victims)}` : `reserves after ${names(reservation?.awaits ?? [])}`;
      return `${jobUid.slice(4)} ${does} on ${cluster}`;
    }),
    ...withdrawn.map((uid) => `${uid.slice(4)} withdrawn`),
  ];
}

/** A fleet of nodes with 8 GPUs each, which one gang fills each. */
function fullFleet(
  nodes: number,
  of: { readonly queue?: PlanQueue; readonly runs?: readonly (number | undefined)[] } = {},
) {
  const fleet = new SmallFleet(
    [of.queue ?? own(1000)],
    Array.from({ length: nodes }, () => 8),
    true,
  );
  for (let at = 0; at < nodes; at++) {
    const maxRuntimeMs = of.runs?.[at];
    fleet.submit({ name: `r${at}`, queue: "q", gpus: 8, ...(maxRuntimeMs === undefined ? {} : { maxRuntimeMs }) });
    fleet.step();
  }
  return fleet;
}

test("a gang that has waited for so long gets a reservation, and boards although smaller ones never end coming", () => {
  const fleet = fullFleet(2);
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2 });
  assert.deepEqual(short(fleet.step()), []);
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after r0, r1 on east"]);
  fleet.submit({ name: "small", queue: "q", gpus: 1 });
  fleet.end("uid-r0");
  assert.deepEqual(short(fleet.step()), []);
  assert.deepEqual(fleet.causeOf("uid-small"), "kept for uid-wide");
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), ["wide admitted", "small reserves after wide on east"]);
});

/** A fleet of two nodes in which `wide`, which needs both, has a reservation. */
function reserved(of: Parameters<typeof fullFleet>[1] & { readonly priority?: number } = {}) {
  const fleet = fullFleet(2, of);
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2 });
  fleet.step();
  fleet.nowMs += 10 * MINUTE;
  fleet.step();
  return fleet;
}

test("pods that no node shows yet make room at the end of their gangs, too", () => {
  const fleet = new SmallFleet([own(1000)], [8, 8]);
  for (const name of ["r0", "r1"]) {
    fleet.submit({ name, queue: "q", gpus: 4, pods: 2 });
    fleet.step();
  }
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2 });
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after r0, r1 on east"]);
});

test("a reservation waits for gangs that its own round has admitted, too", () => {
  const fleet = fullFleet(2);
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2, createTimeMs: 1 });
  fleet.step();
  fleet.nowMs += 10 * MINUTE;
  fleet.end("uid-r0");
  fleet.submit({ name: "older", queue: "q", gpus: 8 });
  assert.deepEqual(short(fleet.step()), ["older admitted", "wide reserves after r1, older on east"]);
});

test("a gang that has ended and holds tokens still is waited for, but not named", () => {
  const fleet = fullFleet(2, { queue: own(16) });
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2 });
  fleet.nowMs += 10 * MINUTE;
  fleet.drain("uid-r0");
  assert.deepEqual(short(fleet.step()), ["wide reserves after r1 on east"]);
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-r0");
  assert.deepEqual(short(fleet.step()), ["wide admitted"]);
});

test("a reservation says when it starts, also if the gangs that it waits for are ending", () => {
  const fleet = fullFleet(1, { queue: own(8), runs: [30 * MINUTE] });
  fleet.submit({ name: "wide", queue: "q", gpus: 8 });
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after r0 on east"]);
  const said = () => fleet.wordsOf("uid-wide").replace(/^.*these jobs have ended: /, "");
  const admitMs = fleet.gangs.get("uid-r0")?.admissions[0]?.admitTimeMs ?? Number.NaN;
  assert.match(said(), new RegExp(`/r0; it starts at ${new Date(admitMs + 30 * MINUTE).toISOString()} at the latest$`));
  fleet.drain("uid-r0");
  assert.match(said(), /\/r0; it starts once the pods that end now are gone$/);
});

test("a queue that may borrow waits until it has the quota of its own", () => {
  const fleet = new SmallFleet([
    queue("all", {}, {}),
    queue("q", { h100: 8 }, { parent: "all" }),
    queue("lender", { h100: 8 }, { parent: "all" }),
  ]);
  for (const name of ["a", "b"]) fleet.submit({ name, queue: "q", gpus: 8 });
  fleet.step();
  fleet.submit({ name: "wide", queue: "q", gpus: 8, createTimeMs: 1 });
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after a, b on east"]);
});

/** Gangs fill four nodes. Those of `pods` wait, the first one the longest; each of their pods fills a node. */
function inTurn(perPool: number, pods: readonly number[]) {
  const fleet = fullFleet(4);
  fleet.reservationsPerPool = perPool;
  for (const [at, count] of pods.entries()) {
    fleet.submit({ name: `w${at}`, queue: "q", gpus: 8, pods: count, createTimeMs: 1 + at });
  }
  fleet.step();
  fleet.nowMs += 10 * MINUTE;
  return fleet;
}

test("a pool has as many reservations at a time as it may, each beside what is kept for those before it", () => {
  const fleet = inTurn(2, [3, 1, 2]);
  assert.deepEqual(short(fleet.step()), ["w0 reserves after r0, r1, r2 on east", "w1 reserves after r3 on east"]);
  fleet.end("uid-r3");
  assert.deepEqual(short(fleet.step()), ["w1 reserves after r2 on east"], "the first takes the first room");
  fleet.end("uid-r0");
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), ["w0 admitted", "w2 reserves after w0 on east"]);
});

test("no later gang gets a reservation before one that finds no room beside those of others", () => {
  const fleet = inTurn(3, [1, 4, 1]);
  assert.deepEqual(short(fleet.step()), ["w0 reserves after r0 on east"]);
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-r0");
  assert.deepEqual(short(fleet.step()), ["w0 admitted", "w1 reserves after r1, r2, r3, w0 on east"]);
});

test("a gang that is too young, or whose queue reserves nothing, gets no reservation", () => {
  for (const parts of [{ reserveAfterMs: 0 }, { reserveAfterMs: 11 * MINUTE }]) {
    const fleet = reserved({ queue: own(1000, parts) });
    assert.equal(fleet.gangs.get("uid-wide")?.nomination, undefined);
  }
});

test("the round says when the next gang will have waited long enough", () => {
  const fleet = fullFleet(1);
  fleet.submit({ name: "wide", queue: "q", gpus: 8, createTimeMs: 5 });
  assert.equal(fleet.step().replanAtMs, 5 + 10 * MINUTE);
});

test("a reservation with a known start lets those pass that will have ended, and no others", () => {
  const fleet = reserved({ runs: [30 * MINUTE, 60 * MINUTE] });
  fleet.end("uid-r0");
  fleet.submit({ name: "unknown", queue: "q", gpus: 1 });
  fleet.submit({ name: "long", queue: "q", gpus: 1, maxRuntimeMs: 60 * MINUTE });
  fleet.submit({ name: "short", queue: "q", gpus: 1, maxRuntimeMs: 40 * MINUTE });
  assert.deepEqual(short(fleet.step()), ["short admitted"]);
  assert.equal(fleet.causeOf("uid-long"), "kept for uid-wide");
  fleet.end("uid-short");
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), ["wide admitted", "long reserves after wide on east"]);
});

test("in a strict queue a reservation ends for a gang that comes before, and nobody passes it meanwhile", () => {
  const fleet = reserved({ queue: own(1000, {}, "STRICT_FIFO") });
  fleet.submit({ name: "high", queue: "q", gpus: 8, priority: 1 });
  fleet.submit({ name: "low", queue: "q", gpus: 8, createTimeMs: 1 });
  assert.deepEqual(short(fleet.step()), ["wide withdrawn"]);
  fleet.end("uid-r0");
  assert.deepEqual(short(fleet.step()), ["high admitted", "wide reserves after r1, high on east"]);
  fleet.end("uid-high");
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), ["wide admitted", "low reserves after wide on east"]);
});

test("a gang that agrees to backfill passes, and is taken back once it is all that is in the way", () => {
  const fleet = reserved();
  fleet.end("uid-r0");
  fleet.submit({ name: "filler", queue: "q", gpus: 1, backfill: true });
  assert.deepEqual(short(fleet.step()), ["filler admitted"]);
  assert.deepEqual(short(fleet.step()), ["wide reserves after filler, r1 on east"]);
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-r1");
  assert.deepEqual(short(fleet.step()), ["wide takes back filler on east"]);
  assert.deepEqual(short(fleet.step()), ["wide admitted", "filler reserves after wide on east"]);
});

test("nobody boards on the quota of a gang that a reservation takes back", () => {
  const fleet = new SmallFleet([own(8)], [64], true);
  fleet.submit({ name: "filler", queue: "q", gpus: 4, backfill: true });
  fleet.submit({ name: "other", queue: "q", gpus: 4 });
  fleet.step();
  fleet.submit({ name: "wide", queue: "q", gpus: 8 });
  fleet.step();
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after filler, other on east"]);
  fleet.submit({ name: "small", queue: "q", gpus: 4, createTimeMs: 9 });
  fleet.end("uid-other");
  assert.deepEqual(short(fleet.step()), ["wide takes back filler on east"]);
  assert.deepEqual(short(fleet.step()), ["wide admitted", "filler reserves after wide on east"]);
});

test("gangs that agree to backfill do not take back each other", () => {
  const fleet = new SmallFleet([own(1000)], [8], true);
  for (const name of ["runs", "waits"]) {
    fleet.submit({ name, queue: "q", gpus: 8, backfill: true });
    fleet.step();
  }
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["waits reserves after runs on east"]);
  assert.deepEqual(short(fleet.step()), []);
  fleet.end("uid-runs");
  assert.deepEqual(short(fleet.step()), ["waits admitted"]);
});

test("a gang of a higher priority passes a reservation, which then waits for that one too", () => {
  const fleet = reserved();
  fleet.end("uid-r0");
  fleet.submit({ name: "high", queue: "q", gpus: 8, priority: 1 });
  assert.deepEqual(short(fleet.step()), ["high admitted"]);
  assert.deepEqual(short(fleet.step()), ["wide reserves after r1, high on east"]);
});

test("in a strict queue no later gang passes the one with a reservation, but one that ends before", () => {
  const fleet = reserved({ queue: own(1000, {}, "STRICT_FIFO"), runs: [30 * MINUTE, 60 * MINUTE] });
  fleet.end("uid-r0");
  fleet.submit({ name: "later", queue: "q", gpus: 1, createTimeMs: 20 });
  fleet.submit({ name: "short", queue: "q", gpus: 1, createTimeMs: 30, maxRuntimeMs: MINUTE });
  assert.deepEqual(short(fleet.step()), ["short admitted"]);
  assert.equal(fleet.causeOf("uid-later"), "behind uid-wide");
});

test("a pool has one reservation at a time, that of the first gang", () => {
  const fleet = reserved();
  fleet.submit({ name: "other", queue: "q", gpus: 8, pods: 2, createTimeMs: 9 });
  assert.deepEqual(short(fleet.step()), []);
});

test("a reservation for quota waits for the gangs of its queue", () => {
  const fleet = new SmallFleet([own(8)], [64], true);
  for (const name of ["a", "b"]) fleet.submit({ name, queue: "q", gpus: 4 });
  fleet.step();
  fleet.submit({ name: "wide", queue: "q", gpus: 8 });
  fleet.step();
  fleet.nowMs += 10 * MINUTE;
  assert.deepEqual(short(fleet.step()), ["wide reserves after a, b on east"]);
  fleet.submit({ name: "small", queue: "q", gpus: 1 });
  fleet.end("uid-a");
  assert.deepEqual(short(fleet.step()), []);
  assert.equal(fleet.causeOf("uid-small"), "kept for uid-wide");
  fleet.end("uid-b");
  assert.deepEqual(short(fleet.step()), ["wide admitted", "small reserves after wide on east"]);
});

test("a gang takes back the quota of its queue on a full node where a reservation waits for another one", () => {
  const below = (name: string, gpus: number, policy: Partial<QueuePolicy> = {}) =>
    queue(name, { h100: gpus }, { parent: "all", policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, ...policy } });
  const first = below("first", 1, { reserveAfterMs: MINUTE });
  const owner = below("owner", 1, { reclaimWithinTree: "ANY" });
  const fleet = new SmallFleet([queue("all", { h100: 0 }), first, owner, below("borrower", 0)], [2], true);
  for (const name of ["first", "borrower"]) fleet.submit({ name, queue: name, gpus: 1 });
  fleet.step();
  fleet.submit({ name: "second", queue: "first", gpus: 1, priority: 1 });
  fleet.step();
  fleet.nowMs += MINUTE;
  assert.deepEqual(short(fleet.step()), ["second reserves after first on east"]);
  fleet.submit({ name: "owner", queue: "owner", gpus: 1 });
  assert.deepEqual(short(fleet.step()), ["owner takes back borrower on east"]);
  assert.deepEqual(short(fleet.step()), ["owner admitted"]);
  fleet.submit({ name: "small", queue: "borrower", gpus: 1 });
  fleet.end("uid-first");
  assert.deepEqual(short(fleet.step()), ["second admitted"]);
});
