import assert from "node:assert/strict";
import { test } from "node:test";
import { podFailure } from "../../src/core/pods/failure.ts";
import { podView } from "../../src/core/pods/pod-view.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

const ended = (name: string, exitCode: number, reason = "Error") => ({
  name,
  state: { terminated: { exitCode, reason } },
});
const containers = (...containerStatuses: JsonObject[]): JsonObject => ({ containerStatuses });

const cases: Record<string, { status: JsonObject; kind: string; code: string; exitCode?: number; lost?: boolean }> = {
  "a program's own exit code": { status: containers(ended("main", 3)), kind: "USER", code: "ExitCode", exitCode: 3 },
  "a kill without OOM": { status: containers(ended("main", 137)), kind: "SYSTEM", code: "SIGKILL", exitCode: 137 },
  "a kill for memory": {
    status: containers(ended("main", 137, "OOMKilled")),
    kind: "USER",
    code: "OOMKilled",
    exitCode: 137,
  },
  "a sidecar's exit code": {
    status: containers(ended("main", 0), ended("side", 2)),
    kind: "USER",
    code: "ExitCode",
    exitCode: 2,
  },
  "an eviction": { status: { reason: "Evicted" }, kind: "SYSTEM", code: "Evicted", lost: true },
  "a lost node": { status: { reason: "NodeLost" }, kind: "SYSTEM", code: "NodeLost", lost: true },
  "a node that shuts down": { status: { reason: "Terminated" }, kind: "SYSTEM", code: "Terminated", lost: true },
  "a node that had no room after all": { status: { reason: "OutOfcpu" }, kind: "SYSTEM", code: "OutOfcpu", lost: true },
  "a disruption, whatever the exit code": {
    status: { ...containers(ended("main", 143)), conditions: [{ type: "DisruptionTarget", status: "True" }] },
    kind: "SYSTEM",
    code: "DisruptionTarget",
    exitCode: 143,
    lost: true,
  },
  "the pod's own deadline": { status: { reason: "DeadlineExceeded" }, kind: "USER", code: "DeadlineExceeded" },
  "a pod that says nothing": { status: {}, kind: "USER", code: "PodFailed" },
};

for (const [name, { status, kind, code, exitCode = null, lost = false }] of Object.entries(cases)) {
  test(`${name} is a ${kind} failure ${code}`, () => {
    const failure = podFailure(podView({ metadata: { name: "p" }, status: { phase: "Failed", ...status } }), "main");
    assert.deepEqual([failure.kind, failure.code, failure.exitCode, failure.lost], [kind, code, exitCode, lost]);
  });
}
