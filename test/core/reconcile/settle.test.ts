import assert from "node:assert/strict";
import { test } from "node:test";
import type { Admission } from "../../../src/core/job/status.ts";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import type { ObjectView, ObservedCluster } from "../../../src/core/reconcile/observed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { admit, CONFIG, jobOf, recorded, START_MS, template } from "./world.ts";

const SETTLED_MS = START_MS + OUTSTANDING_MS;
const NOTHING: ObservedCluster = { cluster: "c", pods: [], services: [], configMaps: [] };
const SERVICE: ObjectView = {
  name: "j-worker-0",
  uid: "s",
  labels: {},
  controllerUid: null,
  admission: 1,
  deleting: true,
};

type Case = {
  readonly atMs?: number;
  readonly seen?: ObservedCluster;
  readonly admission?: Partial<Admission>;
  /** When its tokens are released, and when nothing is left of it. */
  readonly is: readonly [releasedMs: number | null, goneMs: number | null];
  readonly tells: boolean;
  readonly recheckAtMs?: number;
};

const cases: Record<string, Case> = {
  "releases its tokens once no unseen pod can exist": { is: [SETTLED_MS, SETTLED_MS], tells: true },
  "keeps its tokens while a create may be under way": {
    atMs: SETTLED_MS - 1,
    is: [null, null],
    tells: false,
    recheckAtMs: SETTLED_MS,
  },
  "keeps its tokens while its cluster is not seen": {
    seen: { ...NOTHING, cluster: "other" },
    is: [null, null],
    tells: false,
  },
  "is not gone while an object is left": {
    seen: { ...NOTHING, services: [SERVICE] },
    is: [SETTLED_MS, null],
    tells: true,
  },
  "is gone once its last object is, and tells of its tokens once only": {
    admission: { tokensReleasedMs: START_MS },
    is: [START_MS, SETTLED_MS],
    tells: false,
  },
  "stays gone since the first time": {
    admission: { tokensReleasedMs: START_MS, goneMs: START_MS + 1 },
    is: [START_MS, START_MS + 1],
    tells: false,
  },
};
for (const [name, { atMs = SETTLED_MS, seen = NOTHING, admission, is, tells, recheckAtMs }] of Object.entries(cases)) {
  test(`an ended admission ${name}`, () => {
    const sent = { kind: "Job", replicaSpecs: { Worker: { template: template("main") } }, runPolicy: {} };
    const job = admit(jobOf(sent), { cluster: "c", nowMs: START_MS, number: 1 });
    const ended = { ...job.admissions[0]!, state: "ended", belowMinSinceMs: START_MS, ...admission } as const;
    const status = { ...job.status, phase: "SUCCEEDED", completionTimeMs: START_MS } as const;
    const before = { ...job, status, admissions: [ended] };
    const decision = reconcile(before, [seen], atMs, CONFIG);
    const [after] = recorded(before, decision).admissions;
    assert.deepEqual([after?.tokensReleasedMs, after?.goneMs], is);
    const told = decision.record?.events.filter(({ reason }) => reason === "TokensReleased") ?? [];
    assert.equal(told.length, tells ? 1 : 0);
    if (recheckAtMs !== undefined) assert.equal(decision.recheckAtMs, recheckAtMs);
  });
}
