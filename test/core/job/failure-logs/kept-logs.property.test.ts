import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  FAILURE_LOG_LIMITS,
  type MeasuredLog,
  runKey,
  withinLimits,
} from "../../../../src/core/job/failure-logs/kept-logs.ts";
import { LogTail } from "../../../../src/core/job/failure-logs/log-tail.ts";

const limits = FAILURE_LOG_LIMITS;

const measured: fc.Arbitrary<MeasuredLog> = fc
  .record({
    index: fc.nat(12),
    attempt: fc.integer({ min: 1, max: 7 }),
    container: fc.constantFrom("main", "sidecar", "init"),
    restarts: fc.nat(5),
    bytes: fc.oneof(fc.nat(limits.containerBytesMax), fc.constant(limits.containerBytesMax)),
  })
  .map(({ index, attempt, ...log }) => ({
    ...log,
    attempt,
    replica: `Worker/${index}` as const,
    podUid: `pod-${index}-${attempt}`,
  }));

const batches = fc.array(fc.array(measured, { maxLength: 40 }), { maxLength: 8 });

test("whatever is written, a job keeps no more than its limits, each run once, and of new logs the first", () => {
  fc.assert(
    fc.property(batches, fc.boolean(), (written, gang) => {
      let kept: readonly MeasuredLog[] = [];
      for (const fresh of written) {
        const { stay, add } = withinLimits({ kept, fresh }, { gang });
        assert.ok(stay.every((log) => kept.includes(log)) && add.every((log) => fresh.includes(log)));
        kept = [...stay, ...add];
        assert.equal(new Set(kept.map(runKey)).size, kept.length);
        assert.ok(kept.reduce((sum, { bytes }) => sum + bytes, 0) <= limits.jobBytesMax);
        for (const [, same] of Map.groupBy(kept, ({ attempt }) => attempt)) {
          const containers = new Set(same.map(({ podUid, container }) => `${podUid}/${container}`));
          assert.ok(containers.size <= limits.containersMax);
        }
        for (const [, own] of Map.groupBy(kept, ({ replica }) => (gang ? "" : replica))) {
          const attempts = own.map(({ attempt }) => attempt);
          assert.ok(Math.max(...attempts) - Math.min(...attempts) < limits.attemptsMax);
        }
        const again = withinLimits({ kept, fresh: [] }, { gang });
        assert.deepEqual(again.stay, kept, "what is kept is within the limits");
      }
    }),
  );
});

test("of a job's bytes the oldest go, and the newest stay whole", () => {
  const log = (attempt: number, index: number): MeasuredLog => ({
    podUid: `${index}-${attempt}`,
    container: "main",
    restarts: 0,
    replica: `Worker/${index}`,
    attempt,
    bytes: limits.containerBytesMax,
  });
  const all = (attempt: number) => Array.from({ length: 20 }, (_, index) => log(attempt, index));
  const first = withinLimits({ kept: [], fresh: all(1) }, { gang: true });
  assert.deepEqual(first.add, all(1).slice(0, limits.containersMax), "the first sixteen containers of an attempt");
  const second = withinLimits({ kept: first.add, fresh: all(2) }, { gang: true });
  assert.deepEqual([second.stay, second.add], [[], all(2).slice(0, limits.containersMax)]);
});

test("the last attempts are those of each replica, or of the gang", () => {
  const of = (replica: `Worker/${number}`, attempt: number): MeasuredLog => {
    return { podUid: `${replica}-${attempt}`, container: "main", restarts: 0, replica, attempt, bytes: 1 };
  };
  const kept = [of("Worker/1", 1), of("Worker/0", 3), of("Worker/0", 4)];
  const fresh = [of("Worker/0", 5)];
  assert.deepEqual(withinLimits({ kept, fresh }, { gang: false }), { stay: kept, add: fresh });
  assert.deepEqual(withinLimits({ kept, fresh }, { gang: true }), { stay: kept.slice(1), add: fresh });
});

/** Lines with characters of one to four bytes, NUL and halves of characters. */
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.string({ unit: fc.constantFrom("a", "é", "€", "😀", "\0", "\ud800"), maxLength: 40 }),
  fc.integer({ min: 1, max: 30_000 }).map((length) => "é€😀".repeat(length / 3)),
);

test("the tail of any log is a whole end of it: at most 200 lines and 16 KiB, and no character is split", () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 300 }), fc.integer({ min: 1, max: 9_000 }), (lines, piece) => {
      const clean = lines.map((line) => line.replaceAll("\n", " ").replaceAll("\r", " "));
      const tail = new LogTail();
      for (const line of clean) for (const part of piecesOf(line, piece)) tail.add(part);
      const { text: kept, cut } = tail.last;
      assert.ok(Buffer.byteLength(kept) <= limits.containerBytesMax);
      assert.ok(kept.split("\n").length <= limits.linesMax);
      assert.ok(kept.isWellFormed() && !kept.includes("\0"));
      const whole = clean.map((line) => line.toWellFormed().replaceAll("\0", "\ufffd")).join("\n");
      assert.ok(whole.endsWith(kept));
      assert.equal(cut, kept.length < whole.length);
      const isLine = kept === whole || whole.at(-kept.length - 1) === "\n";
      const last = clean.at(-1) ?? "";
      assert.ok(isLine || (!kept.includes("\n") && Buffer.byteLength(last) > limits.containerBytesMax - 4));
    }),
    { numRuns: 60 },
  );
});

function piecesOf(line: string, size: number): readonly { readonly text: string; readonly partial: boolean }[] {
  const characters = [...line];
  const pieces: { text: string; partial: boolean }[] = [];
  for (let at = 0; at === 0 || at < characters.length; at += size) {
    pieces.push({ text: characters.slice(at, at + size).join(""), partial: at + size < characters.length });
  }
  return pieces;
}
