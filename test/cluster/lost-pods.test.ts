import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LostPods } from "../../src/adapters/cluster/lost-pods.ts";
import { podView } from "../../src/core/pods/read/pod-view.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

const AT = Date.parse("2026-01-01T00:00:00Z");
const time = (seconds: number) => new Date(AT + seconds * 1_000).toISOString();

const ended = (exitCode: number, finishedAt: string) => ({
  phase: exitCode === 0 ? "Succeeded" : "Failed",
  containerStatuses: [{ name: "main", state: { terminated: { exitCode, finishedAt } } }],
});
const deleted = (atSeconds: number, graceSeconds: number) => ({
  deletionTimestamp: time(atSeconds + graceSeconds),
  deletionGracePeriodSeconds: graceSeconds,
});
const disrupted = { conditions: [{ type: "DisruptionTarget", status: "True" }] };

type Case = {
  readonly metadata?: JsonObject;
  readonly status: JsonObject;
  readonly kept: "its end" | "disruption" | null;
};

const cases: Record<string, Case> = {
  "a pod that had succeeded, as it was listed last": { status: ended(0, time(5)), kept: "its end" },
  "a pod that had succeeded before it was deleted": {
    metadata: deleted(9, 0),
    status: ended(0, time(5)),
    kept: "its end",
  },
  "a pod that had failed before it was deleted": {
    metadata: deleted(9, 30),
    status: ended(1, time(8)),
    kept: "its end",
  },
  "a pod that ended because it was deleted": { metadata: deleted(9, 30), status: ended(0, time(12)), kept: null },
  "a pod that ended in the second of its deletion": { metadata: deleted(9, 30), status: ended(0, time(9)), kept: null },
  "a pod that failed because it was deleted": { metadata: deleted(9, 30), status: ended(143, time(20)), kept: null },
  "a pod that ran": { metadata: deleted(9, 30), status: { phase: "Running" }, kept: null },
  "a disrupted pod": { metadata: deleted(9, 0), status: { phase: "Running", ...disrupted }, kept: "disruption" },
  "a disrupted pod that failed": {
    metadata: deleted(9, 30),
    status: { ...ended(143, time(20)), ...disrupted },
    kept: "disruption",
  },
  "a disrupted pod whose program ended well": {
    metadata: deleted(9, 30),
    status: { ...ended(0, time(20)), ...disrupted },
    kept: null,
  },
  "a pod that had succeeded before it was disrupted": {
    metadata: deleted(9, 30),
    status: { ...ended(0, time(2)), ...disrupted },
    kept: "its end",
  },
};

describe("the last state of a removed pod", () => {
  for (const [name, { metadata = {}, status, kept }] of Object.entries(cases)) {
    test(`${name}: ${kept === null ? "is forgotten" : `shows ${kept}`}`, () => {
      const lost = new LostPods(() => 0);
      const view = podView({ metadata: { name: "p", ...metadata }, status });
      lost.heard({ view, jobUid: "j" } as Parameters<LostPods["heard"]>[0]);
      const [found] = lost.ofJob("j");
      assert.equal(found === undefined ? null : found.endedFirst ? "its end" : "disruption", kept);
      assert.ok(found === undefined || found.deleting);
    });
  }

  test("is forgotten after five minutes", () => {
    let nowMs = 0;
    const lost = new LostPods(() => nowMs);
    const view = podView({ metadata: { name: "p" }, status: ended(0, time(5)) });
    lost.heard({ view, jobUid: "j" } as Parameters<LostPods["heard"]>[0]);
    nowMs = 300_000;
    assert.deepEqual(lost.ofJob("j"), []);
  });
});
