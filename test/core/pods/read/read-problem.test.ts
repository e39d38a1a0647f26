import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { podView } from "../../../../src/core/pods/read/pod-view.ts";
import { readProblem } from "../../../../src/core/pods/read/read-problem.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { at, NOW_MS, pods } from "../pod-status-arbitraries.ts";

type Of = { readonly status?: JsonObject; readonly spec?: JsonObject; readonly metadata?: JsonObject };

const pod = ({ status = {}, spec = {}, metadata = {} }: Of): JsonObject => ({
  metadata: { name: "j-worker-0", creationTimestamp: at(300), ...metadata },
  spec: { nodeName: "gpu-1", ...spec },
  status: { phase: "Pending", ...status },
});
const condition = (type: string, status: string, of: JsonObject = {}) => ({ type, status, ...of });
const scheduled = (agoS: number) => condition("PodScheduled", "True", { lastTransitionTime: at(agoS) });
const waits = (name: string, reason: string, message = "") => ({
  name,
  ready: false,
  state: { waiting: { reason, message } },
});
const unseen = (agoS: number, spec: JsonObject = {}) =>
  pod({ metadata: { creationTimestamp: at(agoS) }, spec: { nodeName: "", ...spec } });
const creating = (agoS: number, ...containers: JsonObject[]) =>
  pod({ status: { conditions: [scheduled(agoS)], containerStatuses: containers } });
const deleting = (agoS: number, spec: JsonObject = {}) =>
  pod({ metadata: { deletionTimestamp: at(agoS) }, spec, status: { phase: "Running" } });

const crashing = (of: { readonly restarts: number; readonly ranS: number; readonly exitCode: number }) =>
  pod({
    status: {
      phase: "Running",
      conditions: [scheduled(900)],
      containerStatuses: [
        {
          name: "main",
          ready: true,
          restartCount: of.restarts,
          state: { running: { startedAt: at(of.ranS) } },
          lastState: { terminated: { exitCode: of.exitCode, finishedAt: at(of.ranS + 5) } },
        },
      ],
    },
  });

const NO_NODE = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu.";
const crashes: Record<string, { readonly pod: JsonObject; readonly says: string; readonly inS?: number }> = {
  "a container crashes again and again, and runs just now": {
    pod: crashing({ restarts: 5, ranS: 20, exitCode: 1 }),
    says: "CrashLoopBackOff: container main: restarted 5 times, the last run ended with 1",
    inS: 580,
  },
  "it was restarted once": { pod: crashing({ restarts: 1, ranS: 20, exitCode: 1 }), says: "none" },
  "its last run succeeded": { pod: crashing({ restarts: 5, ranS: 20, exitCode: 0 }), says: "none" },
  "it has run for ten minutes": { pod: crashing({ restarts: 5, ranS: 601, exitCode: 1 }), says: "none" },
};
for (const [name, { pod: json, says, inS }] of Object.entries(crashes)) {
  test(`crashes: ${name}`, () => {
    const reading = readProblem(podView(json), NOW_MS);
    assert.equal(reading.kind === "problem" ? `${reading.reason}: ${reading.message}` : reading.kind, says);
    if (inS !== undefined) {
      assert.ok(reading.kind === "problem" && reading.untilMs !== undefined);
      assert.ok(Math.abs(reading.untilMs - NOW_MS - inS * 1000) < 1000);
      assert.equal(readProblem(podView(json), reading.untilMs).kind, "none");
    }
  });
}

test("a pod whose node is silent has that problem, also while it is deleted, unless it has ended", () => {
  const nodeSilent = { sinceMs: Date.UTC(2026, 0, 2) };
  for (const json of [
    crashing({ restarts: 0, ranS: 20, exitCode: 0 }),
    deleting(900),
    creating(10, waits("main", "")),
  ]) {
    const reading = readProblem({ ...podView(json), nodeSilent }, NOW_MS);
    assert.ok(reading.kind === "problem");
    assert.equal(reading.reason, "NodeSilent");
    const since = "is silent since 2026-01-02T00:00:00.000Z; nobody knows whether the pod still runs";
    assert.equal(reading.message, `node gpu-1 ${since}`);
  }
  const ended = podView(pod({ status: { phase: "Succeeded" } }));
  assert.equal(readProblem({ ...ended, nodeSilent }, NOW_MS).kind, "none");
});

const cases: Record<string, { readonly pod: JsonObject; readonly says: string | RegExp | { readonly inS: number } }> = {
  "no node takes the pod": {
    pod: pod({
      spec: { nodeName: "" },
      status: { conditions: [condition("PodScheduled", "False", { reason: "Unschedulable", message: NO_NODE })] },
    }),
    says: `Unschedulable: ${NO_NODE}`,
  },
  "the pod has a scheduling gate": {
    pod: pod({ status: { conditions: [condition("PodScheduled", "False", { reason: "SchedulingGated" })] } }),
    says: "SchedulingGated: ",
  },
  "an older scheduler says Unschedulable as a condition": {
    pod: pod({ status: { conditions: [condition("Unschedulable", "True", { message: "no room" })] } }),
    says: "Unschedulable: no room",
  },
  "no scheduler has looked at the pod yet, after 9 s": { pod: unseen(9), says: { inS: 1 } },
  "no scheduler has looked at the pod, after 10 s": {
    pod: unseen(10, { schedulerName: "nobody" }),
    says: /^NotScheduled: no scheduler of the name nobody has looked at the pod: check schedulerName/,
  },
  "no scheduler has looked at a pod without a scheduler's name": {
    pod: unseen(10),
    says: /^NotScheduled: no scheduler has looked at the pod/,
  },
  "a pod that its template has bound to a node needs no scheduler": { pod: pod({}), says: "" },
  "an image that cannot be pulled": {
    pod: creating(5, waits("main", "ImagePullBackOff", "Back-off pulling image")),
    says: "ImagePullBackOff: container main: Back-off pulling image",
  },
  "the first failure to pull an image has the same reason as later ones": {
    pod: creating(5, waits("main", "ErrImagePull", "not found")),
    says: "ImagePullBackOff: container main: not found",
  },
  "a missing secret": {
    pod: creating(5, waits("main", "CreateContainerConfigError", 'secret "key" not found')),
    says: 'CreateContainerConfigError: container main: secret "key" not found',
  },
  "a reason without a message": {
    pod: creating(5, waits("main", "CrashLoopBackOff")),
    says: "CrashLoopBackOff: container main",
  },
  "a container that is just being created": {
    pod: creating(59, waits("main", "ContainerCreating")),
    says: { inS: 1 },
  },
  "a container that is not created for a minute": {
    pod: creating(60, waits("main", "ContainerCreating")),
    says: /^ContainerCreating: container main is not created yet: node gpu-1 .* kubectl describe pod j-worker-0/,
  },
  "the minute begins anew when the init containers have ended": {
    pod: pod({
      status: {
        conditions: [scheduled(200), condition("Initialized", "True", { lastTransitionTime: at(10) })],
        initContainerStatuses: [{ name: "fetch", ready: true, state: { terminated: { exitCode: 0 } } }],
        containerStatuses: [waits("main", "PodInitializing")],
      },
    }),
    says: { inS: 50 },
  },
  "containers wait for an init container that runs": {
    pod: pod({
      status: {
        conditions: [scheduled(200)],
        initContainerStatuses: [{ name: "fetch", ready: false, state: { running: {} } }],
        containerStatuses: [waits("main", "PodInitializing")],
      },
    }),
    says: "",
  },
  "an init container that cannot start": {
    pod: pod({
      status: {
        conditions: [scheduled(20)],
        initContainerStatuses: [
          { name: "done", ready: true, state: { terminated: { exitCode: 0 } } },
          waits("fetch", "CreateContainerError", "no such device"),
        ],
        containerStatuses: [waits("main", "PodInitializing")],
      },
    }),
    says: "CreateContainerError: container fetch: no such device",
  },
  "a sidecar that crashes in a running pod": {
    pod: pod({
      status: {
        phase: "Running",
        conditions: [scheduled(20)],
        containerStatuses: [
          { name: "main", ready: false, state: { running: {} } },
          waits("log", "CrashLoopBackOff", "back-off 10s"),
        ],
      },
    }),
    says: "CrashLoopBackOff: container log: back-off 10s",
  },
  "a pod that runs": {
    pod: pod({
      status: { phase: "Running", containerStatuses: [{ name: "main", ready: true, state: { running: {} } }] },
    }),
    says: "",
  },
  "the first of two containers has ended, and the second cannot start": {
    pod: pod({
      status: {
        phase: "Running",
        containerStatuses: [
          { name: "main", ready: false, state: { terminated: { exitCode: 0 } } },
          waits("log", "CreateContainerError", "m"),
        ],
      },
    }),
    says: "CreateContainerError: container log: m",
  },
  "an init container has ended badly, and the next one cannot start": {
    pod: pod({
      status: {
        initContainerStatuses: [
          { name: "first", ready: false, state: { terminated: { exitCode: 1 } } },
          waits("second", "CreateContainerError", "m"),
        ],
      },
    }),
    says: "CreateContainerError: container second: m",
  },
  "a pod that has failed and whose conditions stay": {
    pod: pod({ status: { phase: "Failed", conditions: [condition("PodScheduled", "False", { reason: "R" })] } }),
    says: "",
  },
  "a deletion whose time cannot be read": {
    pod: pod({ metadata: { deletionTimestamp: "soon" }, status: { phase: "Running" } }),
    says: "",
  },
  "a pod that has failed": { pod: pod({ status: { phase: "Failed", reason: "Evicted" } }), says: "" },
  "a deletion within its time": { pod: deleting(29), says: { inS: 1 } },
  "a deletion that is overdue": {
    pod: deleting(30),
    says: "Terminating: the pod is being deleted, and its node gpu-1 does not confirm that it has ended",
  },
  "an overdue deletion of a pod without a node": {
    pod: deleting(30, { nodeName: "" }),
    says: /^Terminating: the pod is being deleted, and its cluster does not confirm/,
  },
};
for (const [name, { pod, says }] of Object.entries(cases)) {
  test(name, () => {
    const reading = readProblem(podView(pod), NOW_MS);
    if (typeof says === "object" && "inS" in says) {
      assert.deepEqual(reading, { kind: "later", atMs: NOW_MS + says.inS * 1000 });
    } else {
      const text = reading.kind === "problem" ? `${reading.reason}: ${reading.message}` : "";
      assert.notEqual(reading.kind, "later");
      if (typeof says === "string") assert.equal(text, says);
      else assert.match(text, says);
    }
  });
}

test("a pod has a problem exactly from the time on that an earlier reading names", () => {
  fc.assert(
    fc.property(pods, (pod) => {
      const view = podView(pod);
      const reading = readProblem(view, NOW_MS);
      if (reading.kind !== "later") return assert.equal(readProblem(view, NOW_MS + 86_400_000).kind, reading.kind);
      assert.ok(reading.atMs > NOW_MS);
      assert.equal(readProblem(view, reading.atMs - 1).kind, "later");
      assert.equal(readProblem(view, reading.atMs).kind, "problem");
    }),
    { numRuns: 2_000 },
  );
});
