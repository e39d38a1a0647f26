import assert from "node:assert/strict";
import { test } from "node:test";
import type { PrunedKind, PrunePage } from "../../src/core/job/request/event-log.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { createPruner, type PrunerPorts } from "../../src/watch/pruner.ts";

const MIN = 60_000;
const HOUR = 60 * MIN;

type Call = { readonly kind: PrunedKind; readonly page: PrunePage; readonly atMs: number };

/** Runs a pruner for so long on a clock that moves as it sleeps. */
async function runFor(
  untilMs: number,
  prune: (call: Call, end: (tookMs: number) => void) => ReturnType<PrunerPorts["store"]["prune"]>,
  lease?: PrunerPorts["lease"],
) {
  let nowMs = 0;
  const stop = new AbortController();
  const clock: Clock = {
    nowMs: () => 1e12 + nowMs,
    monotonicMs: () => nowMs,
    sleep: async (delayMs) => {
      nowMs += Math.max(1, delayMs);
      if (nowMs >= untilMs) stop.abort();
    },
  };
  const calls: Call[] = [];
  const failed: string[] = [];
  let rows = 0;
  const pruner = createPruner(
    {
      clock,
      store: {
        prune: (kind, page) => {
          const call = { kind, page, atMs: nowMs };
          calls.push(call);
          return prune(call, (tookMs) => {
            nowMs += tookMs;
          });
        },
      },
      ...(lease === undefined ? {} : { lease }),
    },
    {
      loopFailed: ({ loop }) => void failed.push(loop),
      rowsPruned: (facts) => {
        rows += facts.rows;
      },
    },
  );
  await pruner.run(stop.signal);
  const of = (kind: PrunedKind) => calls.filter((call) => call.kind === kind);
  return { of, failed, rows: () => rows };
}

test("a kind that fails rests for a minute, then twice as long, at most an hour, and the others go on", async () => {
  const { of, failed } = await runFor(5 * HOUR, async ({ kind }) => {
    if (kind === "changes") throw new Error("canceling statement due to statement timeout");
    return { deleted: 0, next: null };
  });
  const atMs = of("changes").map((call) => call.atMs);
  const rests = atMs.slice(1).map((at, index) => Math.round((at - (atMs[index] ?? 0)) / MIN));
  assert.deepEqual(rests, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
  assert.equal(failed.length, atMs.length);
  assert.deepEqual(new Set(failed), new Set(["pruning of changes"]));
  assert.equal(of("events").length, 5);
  assert.equal(of("asks").length, 5);
  const limits = of("changes").map(({ page }) => page.limit);
  assert.deepEqual(limits.slice(0, 8), [250, 125, 62, 31, 15, 10, 10, 10]);
});

test("a pass goes on where its page ended, rests as its pages took, and begins again after an hour", async () => {
  const { of, rows } = await runFor(HOUR + MIN, async ({ kind, page }, took) => {
    if (kind !== "changes" || page.after >= 900) return { deleted: 0, next: null };
    took(100);
    return { deleted: 300, next: page.after + 300 };
  });
  const changes = of("changes");
  assert.deepEqual(
    changes.slice(0, 4).map(({ page }) => page.after),
    [0, 300, 600, 900],
  );
  const [first, second] = changes;
  assert.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 400);
  assert.equal(changes[4]?.page.after, 0);
  assert.ok((changes[4]?.atMs ?? 0) - (changes[3]?.atMs ?? 0) >= HOUR);
  assert.equal(rows(), 1_800);
});

test("after a failure a pass goes on where it was, and its pages grow again", async () => {
  let calls = 0;
  const { of } = await runFor(10 * MIN, async ({ kind, page }) => {
    if (kind !== "events") return { deleted: 0, next: null };
    calls += 1;
    if (calls === 2) throw new Error("away");
    return calls > 4 ? { deleted: 0, next: null } : { deleted: page.limit, next: page.after + 7 };
  });
  assert.deepEqual(
    of("events").map(({ page }) => [page.after, page.limit]),
    [
      [0, 250],
      [7, 250],
      [7, 125],
      [14, 250],
      [21, 250],
    ],
  );
});

test("only the process with the lease prunes", async () => {
  let epoch: number | null = null;
  const lease = { epoch: () => epoch };
  const prune = async () => ({ deleted: 0, next: null });
  assert.equal((await runFor(HOUR, prune, lease)).of("changes").length, 0);
  epoch = 1;
  assert.ok((await runFor(HOUR, prune, lease)).of("changes").length > 0);
});
