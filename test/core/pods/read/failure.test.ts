import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../../../src/core/pods/read/pod-view.ts";
import { PENDING_LIMITS } from "../../../../src/core/pods/read/read-pending.ts";
import { readPod } from "../../../../src/core/pods/read/read-pod.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

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
  "a kill while another container lacked memory": {
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
  "a lack of memory in the previous run": {
    status: containers({ ...ended("main", 1), lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
    kind: "USER",
    code: "OOMKilled",
    exitCode: 1,
  },
  "a kill during a node's shutdown": {
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
  "a kill for lack of memory": {
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
  "a node without room for the pod": { status: { reason: "OutOfcpu" }, kind: "SYSTEM", code: "OutOfcpu", lost: true },
  "a disruption with any exit code": {
    status: { ...containers(ended("main", 143)), conditions: [{ type: "DisruptionTarget", status: "True" }] },
    kind: "SYSTEM",
    code: "DisruptionTarget",
    exitCode: 143,
    lost: true,
  },
  "the pod's own deadline": { status: { reason: "DeadlineExceeded" }, kind: "USER", code: "DeadlineExceeded" },
  "a pod without a reason": { status: {}, kind: "USER", code: "UnknownError" },
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

const failureOf = (status: JsonObject, more: JsonObject = {}) => {
  const pod = podView({ metadata: { name: "p" }, ...more, status: { phase: "Failed", ...status } });
  const reading = readPod(pod, { defaultContainer: "main", limits: PENDING_LIMITS, nowMs: 0 });
  assert.ok(reading.kind === "failed");
  return reading.failure;
};

const SHUTDOWNS = ["NodeShutdown", "Shutdown", "Terminated"];
const LOSSES = [
  "Evicted",
  "NodeLost",
  "NodeAffinity",
  "Preempting",
  "TaintManagerEviction",
  "UnexpectedAdmissionError",
  "OutOfmemory",
];
for (const reason of [...SHUTDOWNS, ...LOSSES]) {
  test(`a pod of reason ${reason} was ended by its platform, which costs the user nothing`, () => {
    const { kind, code, lost } = failureOf({ reason, ...containers(ended("main", 1)) });
    assert.deepEqual([kind, code, lost], ["SYSTEM", SHUTDOWNS.includes(reason) ? "Interrupted" : reason, true]);
  });
}

const blamed: Record<string, { readonly status: JsonObject; readonly more?: JsonObject; container: string | null }> = {
  "the primary one, although another one failed first": {
    status: containers(ended("side", 2), ended("main", 3)),
    container: "main",
  },
  "the first that failed, if the primary one succeeded": {
    status: containers(ended("main", 0), ended("side", 2), ended("other", 4)),
    container: "side",
  },
  "an init container before the others, if the primary one succeeded": {
    status: { initContainerStatuses: [ended("fetch", 4)], ...containers(ended("main", 0), ended("side", 2)) },
    container: "fetch",
  },
  "the one that the pod names as its primary": {
    status: containers(ended("main", 2), ended("side", 3)),
    more: { metadata: { name: "p", annotations: { primary_container_name: "side" } } },
    container: "side",
  },
  "the one that lacked memory, not the primary one": {
    status: containers(ended("main", 1), ended("side", 137, "OOMKilled")),
    container: "side",
  },
  "none, if none has failed": { status: containers(ended("main", 0)), container: null },
  "none, if the cluster reports none": { status: {}, container: null },
};
for (const [name, { status, more, container }] of Object.entries(blamed)) {
  test(`a failure names ${name}`, () => assert.equal(failureOf(status, more).container, container));
}

test("a failure's message has the pod's own words, else those of the container that it names", () => {
  const end = { exitCode: 3, reason: "Error", message: "no data" };
  const status = containers({ name: "main", state: { terminated: end } });
  assert.match(failureOf(status).message, /^pod p .*exit code 3 .*main.*: no data$/);
  assert.match(failureOf({ ...status, message: "too late" }).message, /^pod p .*: too late$/);
});
