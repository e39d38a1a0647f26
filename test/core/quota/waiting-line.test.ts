import assert from "node:assert/strict";
import { test } from "node:test";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type { Allocation, Limits, StandOutcome } from "../../../src/core/quota/counters.ts";
import { STAND_LEASE_MS } from "../../../src/core/quota/lease-clock.ts";
import { ceilings } from "../../tokens/limits.ts";

const EPOCH = 1;
const POOL = "gpu";

type Asked = {
  readonly amount?: number;
  readonly priority?: number;
  readonly sinceMs?: number;
  readonly grants?: boolean;
  readonly pools?: readonly string[];
  readonly caps?: Allocation["caps"];
  readonly holder?: string;
  readonly leaseMs?: number;
};

/** Counters of pools with 4 each, with short verbs: every token, waiter and holder is named alike. */
class Line {
  readonly offers: string[] = [];
  readonly state = new CounterState((waiter) => void this.offers.push(waiter));

  constructor(limits: Partial<Limits> & { readonly quota?: number } = {}) {
    const { quota = 4, ...others } = limits;
    const pools = [POOL, "tpu"].map((pool) => ({ pool, quota, projectDefault: null, namespaceDefault: null }));
    this.state.open(EPOCH, { rows: [], limits: { ...ceilings([]), pools, ...others } });
    this.state.report(EPOCH);
  }

  ask(name: string, of: Asked = {}) {
    const { amount = 1, priority = 0, pools = [POOL], caps = { project: null, namespace: null }, leaseMs = null } = of;
    const allocation = { token: name, amount, project: "p", namespace: "n", queue: null, caps, leaseMs };
    const holder = { kind: "caller", name: of.holder ?? name } as const;
    return {
      epoch: EPOCH,
      waiter: name,
      holder,
      priority,
      allocations: pools.map((pool) => ({ ...allocation, pool })),
    };
  }

  grant(name: string, of: Asked = {}) {
    const outcome = this.state.grant({ ...this.ask(name, of), waiter: null });
    assert.ok(outcome.kind === "granted");
    return { pool: POOL, token: name, fence: outcome.fence };
  }

  stand(name: string, of: Asked = {}): StandOutcome {
    const { sinceMs = 0, grants = true } = of;
    return this.state.stand({ ...this.ask(name, of), sinceMs, grants });
  }

  position(name: string, of: Asked = {}): number | string {
    const outcome = this.stand(name, of);
    return outcome.kind === "waiting" ? outcome.position : outcome.kind;
  }

  order(pool = POOL): readonly string[] {
    return this.state.waiting().flatMap((place) => (place.pool === pool ? [place.waiter] : []));
  }

  tick(elapsedMs: number) {
    this.state.report(EPOCH);
    return this.state.tick(EPOCH, { elapsedMs, unconfirmedMs: 1e9, limit: 9 });
  }

  held(): readonly string[] {
    return this.state.held(null, 99).tokens.map(({ token }) => token);
  }
}

test("a place counts from 1 and is that of the pool where most stand before it", () => {
  const allocation = new Line();
  for (const pools of [[POOL], ["tpu"]]) allocation.grant(`all ${pools}`, { amount: 4, pools });
  assert.equal(allocation.position("a"), 1);
  assert.equal(allocation.position("b", { sinceMs: 1 }), 2);
  assert.equal(allocation.position("c", { sinceMs: 2, pools: ["tpu"] }), 1);
  assert.equal(allocation.position("both", { sinceMs: 3, grants: false, pools: ["tpu", POOL] }), 3);
});

test("the higher priority stands first, then the earlier, then the first by name", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  allocation.stand("old", { sinceMs: 1 });
  allocation.stand("young", { sinceMs: 3 });
  allocation.stand("b", { sinceMs: 2 });
  allocation.stand("a", { sinceMs: 2 });
  allocation.stand("urgent", { priority: 1, sinceMs: 9 });
  assert.deepEqual(allocation.order(), ["urgent", "old", "a", "b", "young"]);
});

test("one that stands again with another priority moves, and has one place", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  for (const name of ["a", "b", "c"]) allocation.stand(name);
  assert.equal(allocation.position("c", { priority: 1 }), 1);
  assert.deepEqual(allocation.order(), ["c", "a", "b"]);
  assert.equal(allocation.position("c"), 3);
});

test("a full waiting line refuses others and keeps its places", () => {
  const allocation = new Line({ waitersMax: 2 });
  allocation.grant("all", { amount: 4 });
  assert.equal(allocation.position("a"), 1);
  assert.equal(allocation.position("b"), 2);
  assert.deepEqual(allocation.stand("c"), { kind: "lineFull", waitersMax: 2 });
  assert.equal(allocation.position("b"), 2);
  assert.deepEqual(allocation.order(), ["a", "b"]);
  assert.equal(allocation.state.leave(EPOCH, "a"), "left");
  assert.equal(allocation.position("c"), 2);
});

test("one that asks for more than the pool has is told so, and leaves its place", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 3 });
  allocation.stand("a", { amount: 2 });
  allocation.stand("b", { sinceMs: 1 });
  const outcome = allocation.stand("a", { amount: 5 });
  const scope = { kind: "pool", pool: POOL };
  const violation = { scope, used: 3, limit: 4, requested: 5, reservedForHead: 0 };
  assert.deepEqual(outcome, { kind: "never", violation });
  assert.deepEqual(allocation.offers, ["b"]);
  assert.deepEqual(allocation.held(), ["all", "b"]);
});

test("a domain without room for a token refuses who would be granted one, and lets reserving ones stand", () => {
  const allocation = new Line({ tokensMax: 1 });
  allocation.grant("all", { amount: 1 });
  assert.deepEqual(allocation.stand("a"), { kind: "full", tokensMax: 1 });
  assert.equal(allocation.position("b", { grants: false }), 1);
  assert.deepEqual(allocation.order(), ["b"]);
});

test("the domain holds exactly as many tokens as it may", () => {
  const allocation = new Line({ tokensMax: 3 });
  allocation.grant("one");
  assert.deepEqual(allocation.state.grant(allocation.ask("three", { pools: [POOL, "tpu", "none"] })), {
    kind: "full",
    tokensMax: 3,
  });
  assert.equal(allocation.state.grant(allocation.ask("two", { pools: [POOL, "tpu"] })).kind, "granted");
  assert.deepEqual(allocation.state.grant(allocation.ask("last")), { kind: "full", tokensMax: 3 });
});

test("one that fits is granted where it stands and takes no place", () => {
  const allocation = new Line();
  const outcome = allocation.stand("a", { amount: 4, leaseMs: 700 });
  assert.deepEqual(outcome, {
    kind: "granted",
    fence: 2n ** 32n + 1n,
    held: false,
    confirmed: false,
    expiresInMs: [700],
  });
  assert.deepEqual(allocation.order(), []);
});

test("one that only reserves is not granted, and hears that nothing is in its way", () => {
  const allocation = new Line();
  assert.deepEqual(allocation.stand("a", { grants: false }), { kind: "waiting", position: 1, violation: null });
  assert.deepEqual(allocation.held(), []);
  assert.deepEqual(allocation.order(), ["a"]);
});

test("one that waits hears what is in its way", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 3 });
  const scope = { kind: "pool", pool: POOL };
  const violation = { scope, used: 3, limit: 4, requested: 2, reservedForHead: 0 };
  assert.deepEqual(allocation.stand("a", { amount: 2 }), { kind: "waiting", position: 1, violation });
  const behind = { ...violation, requested: 1, reservedForHead: 2 };
  assert.deepEqual(allocation.stand("b", { sinceMs: 1 }), { kind: "waiting", position: 2, violation: behind });
});

test("one that stands for a token that it holds hears of its grant again and gives up its place", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  allocation.stand("a", { amount: 2 });
  const of = { ...allocation.ask("all", { amount: 4 }), waiter: "a", sinceMs: 0, grants: true };
  const outcome = allocation.state.stand(of);
  assert.ok(outcome.kind === "granted" && outcome.held);
  assert.deepEqual(allocation.order(), []);
});

test("one that stands for another's token conflicts and gives up its place", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  allocation.stand("a");
  const outcome = allocation.state.stand({
    ...allocation.ask("all", { holder: "a" }),
    waiter: "a",
    sinceMs: 0,
    grants: true,
  });
  assert.deepEqual(outcome, { kind: "conflict", pool: POOL, token: "all", confirmed: false });
  assert.deepEqual(allocation.order(), []);
});

test("a head that asks for less makes room for those behind it", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 2 });
  allocation.stand("head", { amount: 4, grants: false });
  allocation.stand("b", { amount: 1, sinceMs: 1 });
  assert.deepEqual(allocation.order(), ["head", "b"]);
  allocation.stand("head", { amount: 1, grants: false });
  assert.deepEqual(allocation.offers.at(0), "head", "it fits now");
  allocation.stand("head", { amount: 1, sinceMs: 2, grants: false });
  assert.ok(allocation.held().includes("b"), "it stands behind now");
});

test("a head that is granted lets those behind it be granted too", () => {
  const allocation = new Line({ quota: 6 });
  const all = allocation.grant("all", { amount: 4 });
  allocation.stand("head", { amount: 5, grants: false });
  allocation.stand("b", { amount: 1, sinceMs: 1 });
  allocation.state.free(EPOCH, [all]);
  assert.deepEqual(allocation.held(), []);
  assert.equal(allocation.stand("head", { amount: 5, grants: true }).kind, "granted");
  assert.deepEqual(allocation.held(), ["head", "b"]);
  assert.deepEqual(allocation.order(), []);
});

test("one that moves to another pool and is granted there lets those in its old waiting line be granted", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 1 });
  allocation.stand("head", { amount: 4 });
  allocation.stand("b", { amount: 3, sinceMs: 1 });
  assert.equal(allocation.stand("head", { amount: 4, pools: ["tpu"] }).kind, "granted");
  assert.deepEqual(allocation.held(), ["all", "head", "b"]);
});

test("leaving serves those behind, and says whether there was a place to leave", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 3 });
  allocation.stand("head", { amount: 2 });
  allocation.stand("b", { sinceMs: 1 });
  assert.deepEqual(allocation.held(), ["all"]);
  assert.equal(allocation.state.leave(EPOCH, "head"), "left");
  assert.deepEqual(allocation.held(), ["all", "b"]);
  assert.equal(allocation.state.leave(EPOCH, "head"), "notThere");
  assert.equal(allocation.state.leave(EPOCH, "b"), "notThere");
});

test("a grant that a waiter asks for itself ends its place; a refused one keeps it", () => {
  const allocation = new Line();
  const all = allocation.grant("all", { amount: 4 });
  allocation.stand("a", { amount: 2, grants: false });
  assert.equal(allocation.state.grant(allocation.ask("a", { amount: 2 })).kind, "exhausted");
  assert.deepEqual(allocation.order(), ["a"]);
  allocation.state.free(EPOCH, [all]);
  assert.equal(allocation.state.grant(allocation.ask("a", { amount: 2 })).kind, "granted");
  assert.deepEqual(allocation.order(), []);
});

test("a waiter that asks again for what it was granted hears of it and leaves", () => {
  const allocation = new Line();
  const { fence } = allocation.grant("a");
  allocation.grant("all", { amount: 3 });
  assert.equal(
    allocation.state.stand({ ...allocation.ask("other"), waiter: "w", sinceMs: 0, grants: true }).kind,
    "waiting",
  );
  const again = allocation.state.grant({ ...allocation.ask("a"), waiter: "w" });
  assert.ok(again.kind === "granted" && again.held && again.fence === fence);
  assert.deepEqual(allocation.order(), []);
});

test("a place that is not renewed lapses after its lease, and one that is renewed stays", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  allocation.stand("a");
  allocation.stand("b", { sinceMs: 1 });
  const half = STAND_LEASE_MS / 2;
  for (let ms = 0; ms < half; ms += 1_000) allocation.tick(1_000);
  assert.equal(allocation.position("b", { sinceMs: 1 }), 2);
  for (let ms = 0; ms < half - 1_000; ms += 1_000) allocation.tick(1_000);
  assert.deepEqual(allocation.order(), ["a", "b"]);
  allocation.tick(999);
  assert.deepEqual(allocation.order(), ["a", "b"], "one millisecond is left");
  allocation.tick(1);
  assert.deepEqual(allocation.order(), ["b"]);
});

test("a tick serves those behind a place that has lapsed", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 3 });
  allocation.stand("head", { amount: 2 });
  for (let ms = 0; ms < STAND_LEASE_MS - 1_000; ms += 1_000) allocation.tick(1_000);
  allocation.stand("b", { sinceMs: 1 });
  assert.deepEqual(allocation.held(), ["all"]);
  allocation.tick(1_000);
  assert.deepEqual(allocation.held(), ["all", "b"]);
});

test("higher limits serve the waiting, and older limits change nothing", () => {
  const allocation = new Line();
  allocation.grant("all", { amount: 4 });
  allocation.stand("a");
  const pools = [{ pool: POOL, quota: 5, projectDefault: null, namespaceDefault: null }];
  assert.equal(allocation.state.setLimits(EPOCH, { ...ceilings([]), pools, version: -1 }), "older");
  assert.deepEqual(allocation.order(), ["a"]);
  assert.equal(allocation.state.setLimits(EPOCH, { ...ceilings([]), pools, version: 1 }), "set");
  assert.deepEqual(allocation.held(), ["all", "a"]);
});

test("one that its own cap keeps from a grant is passed by those behind it", () => {
  const allocation = new Line();
  const all = allocation.grant("all", { amount: 4 });
  allocation.stand("capped", { caps: { project: 2, namespace: null } });
  allocation.stand("free", { amount: 1, sinceMs: 1 });
  allocation.state.shrink(EPOCH, [{ ...all, amount: 3 }]);
  assert.deepEqual(allocation.held(), ["all", "free"]);
  assert.deepEqual(allocation.order(), ["capped"]);
});

test("a head that is told that it fits stops the line until it takes its room", () => {
  const allocation = new Line();
  const all = allocation.grant("all", { amount: 4 });
  allocation.stand("head", { amount: 4, grants: false });
  allocation.stand("b", { sinceMs: 1 });
  allocation.state.free(EPOCH, [all]);
  assert.deepEqual(allocation.offers, ["head"]);
  assert.deepEqual(allocation.held(), []);
});

test("of a list of allocations, only those that are held with their fence are freed or shrunk", () => {
  const allocation = new Line();
  const held = allocation.grant("a", { amount: 3 });
  const stale = { ...held, fence: held.fence + 1n };
  assert.deepEqual(
    allocation.state.shrink(EPOCH, [
      { ...stale, amount: 1 },
      { ...held, amount: 2 },
      { ...held, amount: 2 },
    ]),
    ["notHeld", "shrunk", "asItIs"],
  );
  assert.deepEqual(
    allocation.state.used().map(({ used }) => used),
    [2, 2, 2],
  );
  assert.deepEqual(allocation.state.free(EPOCH, [stale, held, held]), ["notHeld", "freed", "notHeld"]);
  assert.deepEqual(allocation.state.used(), []);
});

test("a renewal reaches its holder's tokens alone, until they lapse", () => {
  const allocation = new Line();
  const { fence } = allocation.grant("a", { leaseMs: 1_000, holder: "ann" });
  const renew = (token: string, leaseMs: number | null, by = "ann") => {
    const outcomes = allocation.state.renew(EPOCH, {
      holder: { kind: "caller", name: by },
      allocations: [{ pool: POOL, token, leaseMs }],
    });
    assert.ok(outcomes !== "closed");
    return outcomes[0];
  };
  assert.deepEqual(renew("b", 5), { kind: "notHeld" });
  assert.deepEqual(renew("a", 5, "bob"), { kind: "otherHolder" });
  allocation.tick(999);
  assert.deepEqual(renew("a", 2_000), { kind: "renewed", fence, confirmed: false, expiresInMs: 2_000 });
  allocation.tick(1_999);
  const find = () => {
    const found = allocation.state.find([
      { pool: POOL, token: "a" },
      { pool: POOL, token: "b" },
    ]);
    assert.ok(found !== "closed");
    return found.map((one) => one?.expiresInMs ?? null);
  };
  assert.deepEqual(find(), [1, null]);
  const ticked = allocation.tick(1);
  assert.ok(ticked.kind === "ticked");
  assert.deepEqual(ticked.lapsed, [{ pool: POOL, token: "a", fence, holder: { kind: "caller", name: "ann" } }]);
  assert.deepEqual(renew("a", 5), { kind: "lapsed", fence });
  assert.deepEqual(allocation.stand("a", { holder: "ann" }), {
    kind: "conflict",
    pool: POOL,
    token: "a",
    confirmed: false,
  });
});

test("a token whose lease is renewed without an end never lapses", () => {
  const allocation = new Line();
  allocation.grant("a", { leaseMs: 1_000 });
  const by = { kind: "caller", name: "a" } as const;
  const allocations = [{ pool: POOL, token: "a", leaseMs: null }];
  const outcomes = allocation.state.renew(EPOCH, { holder: by, allocations });
  assert.ok(outcomes !== "closed" && outcomes[0]?.kind === "renewed");
  assert.equal(outcomes[0].expiresInMs, null);
  const ticked = allocation.tick(2_000);
  assert.ok(ticked.kind === "ticked");
  assert.deepEqual(ticked.lapsed, []);
});

test("counters of another epoch answer every verb that they are closed", () => {
  const allocation = new Line();
  const { fence } = allocation.grant("a");
  allocation.stand("w", { amount: 4 });
  const { state } = allocation;
  const at = 2;
  const ref = { pool: POOL, token: "a", fence };
  const answers = {
    free: state.free(at, [ref]),
    shrink: state.shrink(at, [{ ...ref, amount: 1 }]),
    turnOver: state.turnOver(at, []),
    confirm: state.confirm(at, [ref]),
    renew: state.renew(at, { holder: { kind: "caller", name: "a" }, allocations: [] }),
    stand: state.stand({ ...allocation.ask("b"), epoch: at, sinceMs: 0, grants: true }),
    leave: state.leave(at, "w"),
    tick: state.tick(at, { elapsedMs: 1, unconfirmedMs: 1, limit: 1 }),
    report: state.report(at),
    setLimits: state.setLimits(at, { ...ceilings([]), version: 9 }),
  };
  assert.deepEqual(answers, {
    free: "closed",
    shrink: "closed",
    turnOver: "closed",
    confirm: "closed",
    renew: "closed",
    stand: { kind: "closed" },
    leave: "closed",
    tick: { kind: "closed" },
    report: "closed",
    setLimits: "closed",
  });
  assert.deepEqual([allocation.held(), allocation.order()], [["a"], ["w"]]);
});

test("counters that were never opened hold nothing and have no waiting line", () => {
  const state = new CounterState();
  assert.deepEqual(state.used(), []);
  assert.deepEqual(state.waiting(), []);
  assert.deepEqual(state.held(null, 5), { tokens: [], next: null });
  assert.equal(state.find([]), "closed");
});

test("pages of held tokens follow each other without a gap", () => {
  const allocation = new Line();
  for (const name of ["a", "b", "c"]) allocation.grant(name);
  const first = allocation.state.held(null, 2);
  assert.deepEqual(
    first.tokens.map(({ token }) => token),
    ["a", "b"],
  );
  assert.ok(first.next !== null);
  const second = allocation.state.held(first.next, 2);
  assert.deepEqual(
    second.tokens.map(({ token }) => token),
    ["c"],
  );
  assert.equal(second.next, null);
});

test("only tokens that the ledger has not confirmed for long enough are reported, the oldest first", () => {
  const allocation = new Line();
  const a = allocation.grant("a");
  allocation.tick(10);
  allocation.grant("b");
  allocation.grant("c");
  allocation.tick(10);
  allocation.grant("d");
  const unconfirmed = (unconfirmedMs: number, limit = 9) => {
    const ticked = allocation.state.tick(EPOCH, { elapsedMs: 0, unconfirmedMs, limit });
    assert.ok(ticked.kind === "ticked");
    return ticked.unconfirmed.map(({ token }) => token);
  };
  assert.deepEqual(unconfirmed(20), ["a"]);
  assert.deepEqual(unconfirmed(21), []);
  assert.deepEqual(unconfirmed(10), ["a", "b", "c"]);
  assert.deepEqual(unconfirmed(10, 2), ["a", "b"]);
  assert.equal(allocation.state.confirm(EPOCH, [a, { ...a, token: "none" }]), "confirmed");
  assert.deepEqual(unconfirmed(0), ["b", "c", "d"]);
  const confirmed = allocation.state.held(null, 9).tokens.map((token) => token.confirmed);
  assert.deepEqual(confirmed, [true, false, false, false]);
});
