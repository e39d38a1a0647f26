import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { judge, NOTES_COUNT_MS } from "../../../src/core/blame/judge.ts";
import type { StepNote } from "../../../src/core/blame/step-note.ts";

const NOW_MS = 1_700_000_000_000;
const MINUTE_MS = 60_000;

function noteOf(change: Partial<StepNote> = {}): StepNote {
  const made = { jobUid: "j", worker: "w1", atMs: NOW_MS - MINUTE_MS, what: "blocked", plugin: null } as const;
  return { ...made, alone: false, ended: false, ...change };
}

const alone = { alone: true, ended: true };
const cases: Readonly<Record<string, { notes: readonly StepNote[]; resumedMs?: number; reason: string | null }>> = {
  "one note blames no job": { notes: [noteOf(alone)], reason: null },
  "two steps of a job's own code that block set it aside": {
    notes: [noteOf(), noteOf({ worker: "w2" })],
    reason: "BlocksWorkers",
  },
  "a job that fills two workers, alone under way when they end, is set aside": {
    notes: [noteOf({ what: "filled", ...alone }), noteOf({ what: "filled", worker: "w2", ...alone })],
    reason: "FillsWorkers",
  },
  "memory that filled beside other steps blames no job": {
    notes: [1, 2, 3].map((at) => noteOf({ what: "filled", worker: `w${at}`, ended: true })),
    reason: null,
  },
  "memory that filled, while the worker lived on, blames no job": {
    notes: [1, 2, 3].map((at) => noteOf({ what: "filled", worker: `w${at}`, alone: true })),
    reason: null,
  },
  "a plugin that blocks workers that live on is not its job's fault": {
    notes: [1, 2, 3].map((at) => noteOf({ plugin: "p", worker: `w${at}`, alone: true })),
    reason: null,
  },
  "a job whose plugin ends two workers while they step it alone is set aside": {
    notes: [noteOf({ plugin: "p", ...alone }), noteOf({ plugin: "p", worker: "w2", ...alone })],
    reason: "BlocksWorkers",
  },
  "two notes that are more than an hour apart blame no job": {
    notes: [noteOf({ atMs: NOW_MS - NOTES_COUNT_MS }), noteOf({ worker: "w2" })],
    reason: null,
  },
  "notes from before the job was resumed do not count": {
    notes: [noteOf(), noteOf({ worker: "w2" })],
    resumedMs: NOW_MS - MINUTE_MS,
    reason: null,
  },
};

for (const [name, { notes, resumedMs = null, reason }] of Object.entries(cases)) {
  test(name, () => assert.equal(judge(notes, { resumedMs }, NOW_MS)?.reason ?? null, reason));
}

test("the message names the plugin whose code ran, and what to do", () => {
  const notes = [noteOf({ plugin: "p", ...alone }), noteOf({ plugin: "p", worker: "w2", ...alone })];
  const { message = "" } = judge(notes, { resumedMs: null }, NOW_MS) ?? {};
  assert.match(message, /the plugin p in its step blocked a worker 2 times within an hour/);
  assert.match(message, /gangway resume/);
});

/** How a worker ends, or goes on, after it has stepped a job. */
const innocentNote = fc.record({
  worker: fc.constantFrom("w1", "w2", "w3", "w4"),
  agoMs: fc.integer({ min: 0, max: 2 * NOTES_COUNT_MS }),
  what: fc.constantFrom("blocked" as const, "filled" as const),
  alone: fc.boolean(),
  ended: fc.boolean(),
  plugin: fc.constantFrom(null, "p"),
});

test("law: no job is set aside by fewer than two notes that count within an hour, whatever else is noted", () => {
  fc.assert(
    fc.property(fc.array(innocentNote, { maxLength: 12 }), (all) => {
      const notes = all.map(({ agoMs, ...note }): StepNote => ({ ...note, jobUid: "j", atMs: NOW_MS - agoMs }));
      const counts = notes.filter(({ atMs, what, plugin, alone, ended }) => {
        const proven = (what === "blocked" && plugin === null) || (alone && ended);
        return proven && atMs > NOW_MS - NOTES_COUNT_MS;
      });
      assert.equal(judge(notes, { resumedMs: null }, NOW_MS) !== null, counts.length >= 2);
    }),
  );
});
