import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { WriteLimit } from "../../src/adapters/cluster/write-limit.ts";

const BOUNDS = { min: 2, max: 50 };

/** Keeps as many writes under way as the limit allows, for a time. `tookMs` of a write when so many are under way. */
function load(limit: WriteLimit, of: { fromMs: number; forMs: number; wanted?: number; server: Server }): number {
  const ends: {
    readonly atMs: number;
    readonly begun: number;
    readonly tookMs: number;
    readonly overloaded: boolean;
  }[] = [];
  let nowMs = of.fromMs;
  while (nowMs < of.fromMs + of.forMs) {
    while (limit.inFlight < Math.min(limit.limit, of.wanted ?? 1_000)) {
      const begun = limit.begin();
      const { tookMs, overloaded } = of.server(limit.inFlight);
      ends.push({ atMs: nowMs + tookMs, begun, tookMs, overloaded });
    }
    ends.sort((a, b) => a.atMs - b.atMs);
    const next = ends.shift();
    assert.ok(next !== undefined);
    nowMs = Math.max(nowMs, next.atMs);
    limit.end(next, { begun: next.begun, nowMs });
    assert.ok(limit.limit >= BOUNDS.min && limit.limit <= BOUNDS.max);
  }
  for (const { begun, ...end } of ends) limit.end(end, { begun, nowMs });
  assert.equal(limit.inFlight, 0);
  return nowMs;
}

type Server = (inFlight: number) => { readonly tookMs: number; readonly overloaded: boolean };
const FAST: Server = () => ({ tookMs: 10, overloaded: false });

test("the limit stays within its bounds, whatever a server does", () => {
  const end = fc.option(fc.record({ tookMs: fc.nat({ max: 30_000 }), overloaded: fc.boolean() }));
  fc.assert(
    fc.property(fc.array(fc.tuple(end, fc.nat({ max: 3_000 }))), (ends) => {
      const limit = new WriteLimit(BOUNDS, 0);
      let nowMs = 0;
      for (const [one, afterMs] of ends) {
        const begun = limit.begin();
        nowMs += afterMs;
        limit.end(one, { begun, nowMs });
        assert.ok(limit.limit >= BOUNDS.min && limit.limit <= BOUNDS.max);
        assert.equal(limit.inFlight, 0);
      }
    }),
  );
});

test("a server that was never too slow gets twice as many writes at a time after each window, up to the most", () => {
  const limit = new WriteLimit(BOUNDS, 0);
  assert.equal(limit.limit, 10);
  load(limit, { fromMs: 0, forMs: 50, server: FAST });
  assert.equal(limit.limit, BOUNDS.max);
});

test("after the first sign of too much the limit rises by one a second", () => {
  const limit = new WriteLimit(BOUNDS, 0);
  let nowMs = load(limit, { fromMs: 0, forMs: 10, server: () => ({ tookMs: 10, overloaded: true }) });
  const reduced = limit.limit;
  assert.ok(reduced < 10);
  nowMs = load(limit, { fromMs: nowMs, forMs: 10_000, server: FAST });
  assert.ok(limit.limit > reduced && limit.limit <= reduced + 11, `${limit.limit} of ${reduced}`);
});

test("a limit that is not used does not rise", () => {
  const limit = new WriteLimit(BOUNDS, 0);
  load(limit, { fromMs: 0, forMs: 60_000, wanted: 5, server: FAST });
  assert.equal(limit.limit, 10);
});

test("a server that throttles beyond a number of writes gets at most a few more than it bears", () => {
  fc.assert(
    fc.property(fc.integer({ min: 3, max: 40 }), (bears) => {
      const limit = new WriteLimit(BOUNDS, 0);
      const server: Server = (inFlight) => ({ tookMs: 10, overloaded: inFlight > bears });
      let nowMs = load(limit, { fromMs: 0, forMs: 60_000, server });
      for (let at = 0; at < 20; at += 1) {
        nowMs = load(limit, { fromMs: nowMs, forMs: 1_500, server });
        assert.ok(limit.limit <= bears + 1, `${limit.limit} at a server that bears ${bears}`);
        assert.ok(limit.limit >= Math.floor(0.7 * bears) - 1, `${limit.limit} at a server that bears ${bears}`);
      }
    }),
    { numRuns: 20 },
  );
});

test("a server that slows down gets fewer, and more again once it is fast", () => {
  const limit = new WriteLimit(BOUNDS, 0);
  let nowMs = load(limit, { fromMs: 0, forMs: 50_000, server: FAST });
  const before = limit.limit;
  nowMs = load(limit, { fromMs: nowMs, forMs: 20_000, server: () => ({ tookMs: 2_000, overloaded: false }) });
  assert.ok(limit.limit < before / 2, `${limit.limit} of ${before}`);
  load(limit, { fromMs: nowMs, forMs: 90_000, server: FAST });
  assert.ok(limit.limit >= before, `${limit.limit} of ${before}`);
});
