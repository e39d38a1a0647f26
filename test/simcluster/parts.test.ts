import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { jsonPatch, mergePatch } from "../../src/adapters/simcluster/api/patch.ts";
import { fieldMatcher, labelMatcher } from "../../src/adapters/simcluster/api/selectors.ts";
import type { KubeObject } from "../../src/adapters/simcluster/objects/kube-object.ts";
import { StatusError } from "../../src/adapters/simcluster/objects/status-error.ts";
import { DueQueue } from "../../src/adapters/simcluster/pods/due-queue.ts";
import { exitCodeOf, readPodScript } from "../../src/adapters/simcluster/pods/pod-script.ts";
import { SCRIPTED_FAILURES } from "../../src/adapters/simcluster/pods/scripted-failure.ts";
import type { Json, JsonObject } from "../../src/runtime/json.ts";

test("a queue gives its keys by time, and by name within one time", () => {
  const entries = fc.array(fc.tuple(fc.nat({ max: 20 }), fc.string({ minLength: 1, maxLength: 3 })), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(entries, (pushed) => {
      const queue = new DueQueue();
      for (const [dueMs, key] of pushed) queue.push(dueMs, key);
      const popped: [number, string][] = [];
      for (let dueMs = queue.nextMs(); dueMs !== null; dueMs = queue.nextMs()) {
        assert.equal(queue.pop(dueMs - 1), null);
        popped.push([dueMs, queue.pop(dueMs) ?? ""]);
      }
      const sorted = [...pushed].sort(([a, x], [b, y]) => a - b || (x < y ? -1 : x > y ? 1 : 0));
      assert.deepEqual(popped, sorted);
    }),
  );
});

const labels = { app: "train", tier: "gpu", "gangway.dev/admission": "2" };
const pod: KubeObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: "", labels },
  spec: { nodeName: "n1" },
  status: { phase: "Running" },
};

const labelSelectors: Record<string, boolean> = {
  "": true,
  "app=train": true,
  "app==train,tier=gpu": true,
  "app=other": false,
  "app!=other": true,
  "missing!=x": true,
  "app in (other, train)": true,
  "app in (other)": false,
  "app notin (other)": true,
  "missing notin (x)": true,
  "app notin (train,other),tier": false,
  app: true,
  missing: false,
  "!missing": true,
  "!app": false,
  "gangway.dev/admission in (1,2),app": true,
};

for (const [selector, expected] of Object.entries(labelSelectors)) {
  test(`the label selector "${selector}" ${expected ? "matches" : "does not match"}`, () => {
    assert.equal(labelMatcher(selector)(pod), expected);
  });
}

const fieldSelectors: Record<string, boolean> = {
  "metadata.name=p": true,
  "metadata.name!=p": false,
  "status.phase=Running,spec.nodeName=n1": true,
  "spec.nodeName=": false,
};

for (const [selector, expected] of Object.entries(fieldSelectors)) {
  test(`the field selector "${selector}" ${expected ? "matches" : "does not match"}`, () => {
    assert.equal(fieldMatcher("pods", selector)(pod), expected);
  });
}

test("a merge patch sets, replaces and removes", () => {
  const target = { a: 1, b: { c: 2, d: 3 }, e: [1, 2] };
  assert.deepEqual(mergePatch(target, { a: null, b: { c: 4 }, e: [3], f: { g: null } }), {
    b: { c: 4, d: 3 },
    e: [3],
    f: {},
  });
});

const jsonPatches: Record<string, { patch: Json; result: Json | "refused" }> = {
  "add puts before an index, and at the end": {
    patch: [
      { op: "add", path: "/list/0", value: 0 },
      { op: "add", path: "/list/-", value: 3 },
    ],
    result: { a: { "x/y": 1 }, list: [0, 1, 2, 3] },
  },
  "pointers are unescaped": {
    patch: [{ op: "replace", path: "/a/x~1y", value: 2 }],
    result: { a: { "x/y": 2 }, list: [1, 2] },
  },
  "move and copy": {
    patch: [
      { op: "copy", from: "/list", path: "/b" },
      { op: "move", from: "/a", path: "/c" },
    ],
    result: { b: [1, 2], c: { "x/y": 1 }, list: [1, 2] },
  },
  "a test that fails refuses all": {
    patch: [
      { op: "remove", path: "/list/0" },
      { op: "test", path: "/list/0", value: 1 },
    ],
    result: "refused",
  },
  "a missing member cannot be removed": { patch: [{ op: "remove", path: "/nothing" }], result: "refused" },
  "no patch at all": { patch: { op: "add" }, result: "refused" },
};

for (const [name, { patch, result }] of Object.entries(jsonPatches)) {
  test(`a JSON patch: ${name}`, () => {
    const target: JsonObject = { a: { "x/y": 1 }, list: [1, 2] };
    if (result === "refused") assert.throws(() => jsonPatch(target, patch), StatusError);
    else assert.deepEqual(jsonPatch(target, patch), result);
    assert.deepEqual(target, { a: { "x/y": 1 }, list: [1, 2] });
  });
}

test("annotations decide the life of a pod", () => {
  const annotations = {
    "sim.gangway.dev/pull": "1.5s",
    "sim.gangway.dev/start": "1m30s",
    "sim.gangway.dev/run": "forever",
    "sim.gangway.dev/exit-code": "1, 137,0",
    "sim.gangway.dev/termination-grace": "5ms",
    "sim.gangway.dev/oom": "maybe",
    "sim.gangway.dev/fails": "OOMKilled, none,Evicted",
  };
  const script = readPodScript(annotations);
  assert.deepEqual(script, {
    pullMs: 1500,
    startMs: 90_000,
    runMs: null,
    exitCodes: [1, 137, 0],
    stopMs: 5,
    logEveryMs: 1000,
    oom: false,
    failures: [SCRIPTED_FAILURES["OOMKilled"], null, SCRIPTED_FAILURES["Evicted"]],
    malformed: ["sim.gangway.dev/oom"],
  });
  assert.deepEqual(
    [0, 1, 2, 3].map((run) => exitCodeOf(script, run)),
    [1, 137, 0, 0],
  );
});
