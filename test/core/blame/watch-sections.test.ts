import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { judge } from "../../../src/core/blame/judge.ts";
import type { StepNote } from "../../../src/core/blame/step-note.ts";
import {
  fillBytesOf,
  LOOK_MS,
  type Look,
  type Section,
  sectionOfText,
  sectionText,
  type Watched,
  type WatchOutcome,
  watchSections,
} from "../../../src/core/blame/watch-sections.ts";

const MIB = 1024 * 1024;
const LIMITS = { blockedMs: 1_000, endMs: 4_000, fillBytes: 256 * MIB };
const STEP: Section = { jobUid: "j", of: "step", name: "" };

/** What happened between two looks. */
type Passed = {
  readonly ms: number;
  readonly cpuMs: number | null;
  readonly sleeps?: boolean;
  readonly grewMib?: number;
};

/** Looks at one section, which lasts for all of these times, and at its end if `ends`. */
function watchAll(passed: readonly Passed[], { ends = false, sequence = 7 } = {}): readonly WatchOutcome[] {
  let look: Look = { monotonicMs: 0, sequence, section: STEP, cpuMs: 0, sleeps: false, processBytes: 300 * MIB };
  let watched: Watched | null = null;
  const outcomes: WatchOutcome[] = [];
  const take = () => {
    const outcome = watchSections(watched, look, LIMITS);
    ({ watched } = outcome);
    outcomes.push(outcome);
  };
  take();
  for (const { ms, cpuMs, sleeps = false, grewMib = 0 } of passed) {
    const next = { monotonicMs: look.monotonicMs + ms, processBytes: look.processBytes + grewMib * MIB, sleeps };
    look = { ...look, ...next, cpuMs: cpuMs === null ? null : (look.cpuMs ?? 0) + cpuMs };
    take();
  }
  if (ends) {
    look = { ...look, sequence: 0, section: null };
    take();
  }
  return outcomes;
}

const notesOf = (outcomes: readonly WatchOutcome[]) => outcomes.flatMap(({ notes }) => notes.map(({ what }) => what));
const times = (count: number, passed: Passed) => Array.from({ length: count }, () => passed);

test("code that uses the CPU for longer than the limit is noted once, and the process is ended later", () => {
  const outcomes = watchAll(times(100, { ms: LOOK_MS, cpuMs: LOOK_MS }));
  assert.deepEqual(notesOf(outcomes), ["blocked"]);
  assert.equal(
    outcomes.findIndex(({ end }) => end),
    LIMITS.endMs / LOOK_MS + 1,
  );
});

test("code that sleeps, as in a call that waits, is noted although it uses no CPU", () => {
  assert.deepEqual(notesOf(watchAll(times(30, { ms: LOOK_MS, cpuMs: 0, sleeps: true }))), ["blocked"]);
});

test("where the system does not tell CPU times, the time that passed counts", () => {
  assert.deepEqual(notesOf(watchAll(times(30, { ms: LOOK_MS, cpuMs: null }))), ["blocked"]);
});

test("a section in which the process grows too much is noted, and its note is void once it has ended", () => {
  const outcomes = watchAll([{ ms: LOOK_MS, cpuMs: LOOK_MS, grewMib: 300 }], { ends: true });
  assert.deepEqual(notesOf(outcomes), ["filled"]);
  assert.equal(outcomes.at(-1)?.survived, true);
});

test("a new section begins anew", () => {
  const before = watchAll(times(8, { ms: LOOK_MS, cpuMs: LOOK_MS })).at(-1)?.watched ?? null;
  const look = { monotonicMs: 900, sequence: 8, section: STEP, cpuMs: 900, sleeps: false, processBytes: 900 * MIB };
  const outcome = watchSections(before, look, LIMITS);
  assert.deepEqual(outcome.notes, []);
  assert.equal(outcome.watched.ranMs, 0);
});

test("the growth that is noted is half of the heap's limit, and at least 256 MiB", () => {
  assert.equal(fillBytesOf(64 * MIB), 256 * MIB);
  assert.equal(fillBytesOf(1024 * MIB), 512 * MIB);
  assert.equal(fillBytesOf(8192 * MIB), 1024 * MIB);
});

test("a section's text tells the section", () => {
  for (const section of [
    STEP,
    { jobUid: null, of: "cluster", name: "a b" } as const,
    { ...STEP, of: "plugin", name: "@x/y" } as const,
  ])
    assert.deepEqual(sectionOfText(sectionText(section)), section);
  assert.equal(sectionOfText("what else"), null);
});

/**
 * Lives of workers of an innocent job: its section is short or long in time, but it uses little CPU and memory, however
 * busy, paused or small the machine is. The worker may be killed, or end for lack of memory, at any moment.
 */
const innocentLife = fc.record({
  passed: fc.array(
    fc.record({
      ms: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 200, max: 3_600_000 })),
      cpuMs: fc.integer({ min: 0, max: 20 }),
      sleeps: fc.constant(false),
      grewMib: fc.integer({ min: -50, max: 5 }),
    }),
    { maxLength: 40 },
  ),
  isKilled: fc.boolean(),
  isAlone: fc.boolean(),
});

test("law: kills, load, pauses and a small memory set no job aside whose own code is short", () => {
  fc.assert(
    fc.property(fc.array(innocentLife, { maxLength: 30 }), (lives) => {
      const notes = lives.flatMap(({ passed, isKilled, isAlone }, at): readonly StepNote[] => {
        const outcomes = watchAll(passed, { ends: !isKilled });
        return notesOf(outcomes).map((what) => {
          return { jobUid: "j", worker: `w${at}`, atMs: at, what, plugin: null, alone: isAlone, ended: isKilled };
        });
      });
      assert.equal(judge(notes, { resumedMs: null }, lives.length), null);
    }),
  );
});

test("law: a job whose own code blocks every worker is set aside after two of them", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: LOOK_MS }), fc.integer({ min: 2, max: 5 }), (cpuMs, workers) => {
      const looks = Math.ceil(LIMITS.blockedMs / cpuMs) + 1;
      const notes = Array.from({ length: workers }).flatMap((_, at): readonly StepNote[] =>
        notesOf(watchAll(times(looks, { ms: LOOK_MS, cpuMs }))).map((what) => {
          return { jobUid: "j", worker: `w${at}`, atMs: at + 1, what, plugin: null, alone: false, ended: true };
        }),
      );
      assert.equal(notes.length, workers);
      assert.equal(judge(notes, { resumedMs: null }, workers + 1)?.reason, "BlocksWorkers");
    }),
  );
});
