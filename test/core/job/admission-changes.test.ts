import assert from "node:assert/strict";
import { test } from "node:test";
import { type AdmissionChanges, admissionChanges } from "../../../src/core/job/admission-changes.ts";
import type { Admission } from "../../../src/core/job/status.ts";

const NOW = 7_000;

function admission(changes: Partial<Admission> = {}): Admission {
  return {
    number: 1,
    cluster: "east",
    admitTimeMs: 0,
    members: { Worker: 4 },
    flavors: {},
    flavorLabels: {},
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: null,
    ...changes,
  };
}

const live = admission();
const smaller = admission({ members: { Worker: 3 } });
const released = admission({ state: "ended", tokensReleasedMs: 5 });
const none: AdmissionChanges = { changed: [], released: [], shrunk: [], gone: [] };

const cases: Record<
  string,
  { before: readonly Admission[]; after: readonly Admission[]; changes: Partial<AdmissionChanges> }
> = {
  "an unchanged admission is not written": { before: [live], after: [{ ...live }], changes: {} },
  "a new admission is written": { before: [], after: [live], changes: { changed: [live] } },
  "an admission with fewer members shrinks its tokens": {
    before: [live],
    after: [smaller],
    changes: { changed: [smaller], shrunk: [smaller] },
  },
  "an admission with more members shrinks nothing": { before: [smaller], after: [live], changes: { changed: [live] } },
  "tokens are released once": {
    before: [live],
    after: [released],
    changes: { changed: [released], released: [1] },
  },
  "released tokens are not released again when the objects are gone": {
    before: [released],
    after: [admission({ ...released, goneMs: 6 })],
    changes: { changed: [admission({ ...released, goneMs: 6 })], gone: [1] },
  },
  "an admission that releases its tokens shrinks none of them": {
    before: [live],
    after: [admission({ ...released, members: {} })],
    changes: { changed: [admission({ ...released, members: {} })], released: [1] },
  },
  "an admission that the record no longer names has ended, without tokens and objects": {
    before: [live],
    after: [],
    changes: {
      changed: [admission({ state: "ended", tokensReleasedMs: NOW, goneMs: NOW })],
      released: [1],
      gone: [1],
    },
  },
  "an undone admission that the record no longer names stays undone, with its own times": {
    before: [admission({ state: "undone", tokensReleasedMs: 3 })],
    after: [],
    changes: { changed: [admission({ state: "undone", tokensReleasedMs: 3, goneMs: NOW })], gone: [1] },
  },
};
for (const [name, { before, after, changes }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(admissionChanges(before, after, NOW), { ...none, ...changes }));
}
