import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../src/core/pods/pod-view.ts";
import { PENDING_LIMITS } from "../../src/core/pods/read-pending.ts";
import { readPod } from "../../src/core/pods/read-pod.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

const ended = (name: string, exitCode: number, reason = "Error") => ({
  name,
  state: { terminated: { exitCode, reason } },
});
const containers = (...containerStatuses: JsonObject[]): JsonObject => ({ containerStatuses });

const cases: Record<string, { status: JsonObject; kind: string; code: string; exitCode?: number; lost?: boolean }> = {
  "a program's own exit code": { status: containers(ended("main", 3)), kind: "USER", code: "ExitCode", exitCode: 3 },
  "a kill without OOM": { status: containers(ended("main", 137)), kind: "SYSTEM", code: "Interrupted", exitCode: 137 },
  "a kill of a sidecar without OOM": {
    status: containers(ended("main", 1), ended("side", 137)),
    kind: "USER",
    code: "Interrupted",
    exitCode: 1,
  },
  "a kill beside a container that lacked memory": {
    status: containers(ended("main", 137), ended("side", 137, "OOMKilled")),
    kind: "USER",
    code: "OOMKilled",
    exitCode: 137,
  },
  "an init container that lacks memory": {
    status: { initContainerStatuses: [ended("fetch", 137, "OOMKilled")] },
    kind: "USER",
    code: "OOMKilled",
    exitCode: 137,
  },
  "an init container's exit code": {
    status: { initContainerStatuses: [ended("fetch", 4)] },
    kind: "USER",
    code: "ExitCode",
    exitCode: 4,
  },
  "a run before the present one that lacked memory": {
    status: containers({ ...ended("main", 1), lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
    kind: "USER",
    code: "OOMKilled",
    exitCode: 1,
  },
  "a shutdown that kills": {
    status: { reason: "NodeShutdown", ...containers(ended("main", 137)) },
    kind: "SYSTEM",
    code: "Interrupted",
    exitCode: 137,
    lost: true,
  },
  "a program that ends on SIGTERM": {
    status: containers(ended("main", 143)),
    kind: "USER",
    code: "ExitCode",
    exitCode: 143,
  },
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
  "a node that shuts down": { status: { reason: "Terminated" }, kind: "SYSTEM", code: "Interrupted", lost: true },
  "a node that had no room after all": { status: { reason: "OutOfcpu" }, kind: "SYSTEM", code: "OutOfcpu", lost: true },
  "a disruption, whatever the exit code": {
    status: { ...containers(ended("main", 143)), conditions: [{ type: "DisruptionTarget", status: "True" }] },
    kind: "SYSTEM",
    code: "DisruptionTarget",
    exitCode: 143,
    lost: true,
  },
  "the pod's own deadline": { status: { reason: "DeadlineExceeded" }, kind: "USER", code: "DeadlineExceeded" },
  "a pod that says nothing": { status: {}, kind: "USER", code: "UnknownError" },
};

for (const [name, { status, kind, code, exitCode = null, lost = false }] of Object.entries(cases)) {
  test(`${name} is a ${kind} failure ${code}`, () => {
    const pod = podView({ metadata: { name: "p" }, status: { phase: "Failed", ...status } });
    const reading = readPod(pod, { defaultContainer: "main", limits: PENDING_LIMITS, nowMs: 0 });
    assert.ok(reading.kind === "failed");
    const { failure } = reading;
    assert.deepEqual([failure.kind, failure.code, failure.exitCode, failure.lost], [kind, code, exitCode, lost]);
    assert.deepEqual([failure.permanent, failure.cleanup], [false, false]);
  });
}
