import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { PodReading } from "../../../../src/core/pods/read/pod-reading.ts";
import { podView } from "../../../../src/core/pods/read/pod-view.ts";
import { PENDING_LIMITS, type PendingLimits } from "../../../../src/core/pods/read/read-pending.ts";
import { readPod } from "../../../../src/core/pods/read/read-pod.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { at, NOW_MS, pods, status } from "../pod-status-arbitraries.ts";

const read = (pod: JsonObject, limits: Partial<PendingLimits> = {}, nowMs = NOW_MS): PodReading =>
  readPod(podView(pod), { defaultContainer: "main", limits: { ...PENDING_LIMITS, ...limits }, nowMs });

test("reading any status never throws, and gives the same result each time", () => {
  const kinds = ["queued", "initializing", "running", "succeeded", "unknown", "failed"];
  fc.assert(
    fc.property(pods, (pod) => {
      const reading = read(pod);
      assert.equal(kinds.filter((kind) => kind === reading.kind).length, 1);
      assert.deepEqual(read(pod), reading);
      if (reading.kind !== "failed") return;
      const { code, kind, lost, permanent } = reading.failure;
      assert.ok(code !== "" && (kind === "USER" || kind === "SYSTEM"));
      assert.ok(
        !lost || (kind === "SYSTEM" && !permanent),
        "a pod that the platform removed is a failure of the system that is retried",
      );
    }),
    { numRuns: 2_000 },
  );
});

test("a pending pod fails when its grace time ends, not before, and stays failed", () => {
  const limits = fc.record({
    createContainerErrorGraceMs: fc.nat({ max: 300_000 }),
    createContainerConfigErrorGraceMs: fc.nat({ max: 300_000 }),
    imagePullBackoffGraceMs: fc.nat({ max: 300_000 }),
    podPendingTimeoutMs: fc.nat({ max: 300_000 }),
  });
  fc.assert(
    fc.property(status, limits, fc.nat({ max: 600_000 }), (of, graces, laterMs) => {
      const pod = { metadata: { creationTimestamp: at(1) }, status: { ...of, phase: "Pending" } };
      const reading = read(pod, graces);
      if (reading.kind === "failed") return assert.equal(read(pod, graces, NOW_MS + laterMs).kind, "failed");
      assert.ok(reading.kind === "queued" || reading.kind === "initializing");
      const { recheckAtMs } = reading;
      if (recheckAtMs === null) return assert.equal(read(pod, graces, NOW_MS + laterMs).kind, reading.kind);
      assert.ok(recheckAtMs > NOW_MS);
      assert.equal(read(pod, graces, recheckAtMs - 1).kind, reading.kind);
      assert.equal(read(pod, graces, recheckAtMs).kind, "failed");
    }),
    { numRuns: 2_000 },
  );
});

const pending = (reason: string, agoS: number, of: JsonObject = {}): JsonObject => ({
  status: {
    phase: "Pending",
    conditions: [
      { type: "Initialized", status: "True", lastTransitionTime: at(agoS) },
      { type: "Ready", status: "False", reason: "ContainersNotReady", lastTransitionTime: at(agoS) },
    ],
    containerStatuses: [{ name: "main", ready: false, state: { waiting: { reason, message: "m" } } }],
    ...of,
  },
});
const stuckInit = (reason: string, agoS: number) =>
  pending("PodInitializing", agoS, {
    initContainerStatuses: [
      { name: "done", ready: true, state: { terminated: { exitCode: 0 } } },
      { name: "fetch", ready: false, state: { waiting: { reason } } },
    ],
  });
const running = (annotations: JsonObject, restartPolicy: string, containers: JsonObject, ...init: JsonObject[]) => ({
  metadata: { annotations },
  spec: { restartPolicy },
  status: {
    phase: "Running",
    initContainerStatuses: init,
    containerStatuses: Object.entries(containers).map(([name, state]) => ({ name, state: state as JsonObject })),
  },
});
const ended = (exitCode: number, reason = "Error") => ({ terminated: { exitCode, reason } });
const runs = { running: {} };
/** A pod whose program has ended, and the state of its uploader. */
const uploaded = (phase: string, state: JsonObject, exitCode = 0, lastState: JsonObject = {}): JsonObject => ({
  spec: { restartPolicy: "Never" },
  status: {
    phase,
    initContainerStatuses: [{ name: "gangway-uploader", state, lastState }],
    containerStatuses: [{ name: "main", state: ended(exitCode, exitCode === 0 ? "Completed" : "Error") }],
  },
});
const side = { primary_container_name: "side" };

const summary = (reading: PodReading) => {
  if (reading.kind !== "failed") return reading.kind;
  const { kind, code, permanent, cleanup } = reading.failure;
  return [kind, code, permanent ? "permanent" : "retryable", ...(cleanup ? ["cleanup"] : [])].join(" ");
};

const cases: Record<string, readonly [JsonObject, string, Partial<PendingLimits>?]> = {
  "an image that is being pulled": [pending("ContainerCreating", 1e6), "initializing"],
  "an image that could not be pulled yet": [pending("ErrImagePull", 1e6), "initializing"],
  "an image that cannot be pulled": [
    pending("ImagePullBackOff", 180),
    "USER ContainersNotReady|ImagePullBackOff retryable cleanup",
  ],
  "an image that cannot be pulled, within its grace time": [pending("ImagePullBackOff", 179), "initializing"],
  "an image name that cannot exist": [
    pending("InvalidImageName", 0),
    "USER ContainersNotReady|InvalidImageName permanent cleanup",
  ],
  "a missing config map": [
    pending("CreateContainerConfigError", 0),
    "USER ContainersNotReady|CreateContainerConfigError permanent cleanup",
  ],
  "a missing config map, within its grace time": [
    pending("CreateContainerConfigError", 10),
    "initializing",
    { createContainerConfigErrorGraceMs: 11_000 },
  ],
  "a container that cannot be created": [
    pending("CreateContainerError", 181),
    "USER ContainersNotReady|CreateContainerError permanent cleanup",
  ],
  "an unknown reason": [pending("Whatever", 0), "SYSTEM ContainersNotReady|Whatever retryable cleanup"],
  "a container that waits without a reason": [pending("", 1e6), "initializing"],
  "an init container whose image cannot be pulled": [
    stuckInit("ImagePullBackOff", 200),
    "USER ContainersNotReady|ImagePullBackOff retryable cleanup",
  ],
  "an init container that crashes again and again": [
    stuckInit("CrashLoopBackOff", 0),
    "USER ContainersNotReady|CrashLoopBackOff retryable cleanup",
  ],
  "inputs that cannot be downloaded": [
    {
      status: {
        phase: "Failed",
        initContainerStatuses: [{ name: "gangway-downloader", state: ended(1) }],
        containerStatuses: [{ name: "main", state: { waiting: { reason: "PodInitializing" } } }],
      },
    },
    "USER InputsNotFetched retryable",
  ],
  "outputs that could not be uploaded": [uploaded("Succeeded", ended(1)), "SYSTEM OutputsNotTaken retryable"],
  "an uploader that lacked memory": [
    uploaded("Succeeded", ended(137, "OOMKilled")),
    "SYSTEM OutputsNotTaken retryable",
  ],
  "an uploader past its time limit, in a pod that still shows as running": [
    uploaded("Running", ended(137)),
    "SYSTEM OutputsNotTaken retryable",
  ],
  "an uploader that crashed before the program ended": [
    uploaded("Succeeded", { waiting: { reason: "CrashLoopBackOff" } }, 0, ended(1)),
    "SYSTEM OutputsNotTaken retryable",
  ],
  "outputs that were uploaded": [uploaded("Succeeded", ended(0, "Completed")), "succeeded"],
  "an uploader without a status": [uploaded("Succeeded", {}), "succeeded"],
  "outputs that are being uploaded": [uploaded("Running", runs), "running"],
  "outputs that are not uploaded while another container runs": [
    running({}, "Never", { main: ended(0), side: runs }, { name: "gangway-uploader", state: runs }),
    "succeeded",
  ],
  "a program and an uploader that both failed": [uploaded("Failed", ended(137), 3), "USER ExitCode retryable"],
  "a program that failed while its outputs are being uploaded": [uploaded("Running", runs, 3), "USER Error retryable"],
  "a pod without conditions that waits for too long": [
    { metadata: { creationTimestamp: at(61) }, status: { phase: "Pending" } },
    "USER PodPendingTimeout retryable cleanup",
    { podPendingTimeoutMs: 60_000 },
  ],
  "a success despite a lack of memory": [
    { status: { phase: "Succeeded", containerStatuses: [{ name: "side", state: ended(0, "OOMKilled") }] } },
    "USER OOMKilled retryable",
  ],
  "a primary container that succeeded while a sidecar runs": [
    running({}, "Never", { main: ended(0, "Completed"), side: runs }),
    "succeeded",
  ],
  "another primary container than the kind's": [running(side, "Never", { main: runs, side: ended(0) }), "succeeded"],
  "a primary container that failed while a sidecar runs": [
    running({}, "Never", { main: ended(3), side: runs }),
    "USER Error retryable",
  ],
  "a primary container that was killed while a sidecar runs": [
    running({}, "Never", { main: ended(137), side: runs }),
    "SYSTEM Interrupted retryable",
  ],
  "a primary container that the kubelet restarts": [
    running({}, "OnFailure", { main: ended(3), side: runs }),
    "running",
  ],
  "a primary container that succeeded and is always restarted": [running({}, "Always", { main: ended(0) }), "running"],
  "a primary container that does not exist": [
    running({ primary_container_name: "trainer" }, "Never", { main: runs }),
    "USER PrimaryContainerNotFound permanent",
  ],
  "no container with the kind's name": [running({}, "Never", { first: ended(0), side: runs }), "running"],
};

for (const [name, [pod, expected, limits = {}]] of Object.entries(cases)) {
  test(`${name}: ${expected}`, () => assert.equal(summary(read(pod, limits)), expected));
}
