/**
 * KWOK stages for the failures of the table: the status of a pod in each, as a kubelet writes it.
 */
import type { JsonObject } from "../../src/runtime/json.ts";
import { FAILING, type Failing, nameOf } from "../worker/failure-table.ts";

/** Names the failure of a pod's first attempt. */
export const PLAYS = "test.gangway.dev/plays";

/** A first attempt that waits for the test continues once it has this annotation. */
export const LET_GO = "test.gangway.dev/let-go";

export const IMAGE = "registry.example.com/train:1";
export const MAIN = "pytorch";
export const BESIDE = "helper";

const ATTEMPT = '.metadata.labels["gangway.dev/attempt"]';
const NOW = "{{ $now }}";
const SOON = { delay: { durationMilliseconds: 200 } };

type Requirement = { readonly key: string; readonly operator: string; readonly values?: readonly string[] };

const annotated = (name: string, operator: "Exists" | "DoesNotExist"): Requirement => ({
  key: `.metadata.annotations["${name}"]`,
  operator,
});
const phaseIs = (phase: string): Requirement => ({ key: ".status.phase", operator: "In", values: [phase] });
const isStaying: Requirement = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" };
const isLeaving: Requirement = { key: ".metadata.deletionTimestamp", operator: "Exists" };
const isFirst: Requirement = { key: ATTEMPT, operator: "In", values: ["1"] };
/** A jq expression: true if some container of a list fulfils a condition. */
const some = (list: string, holds: string, operator: "Exists" | "DoesNotExist"): Requirement => ({
  key: `.status.${list}.[] | select( ${holds} ) | .name`,
  operator,
});

const container = (name: string, state: JsonObject, more: JsonObject = {}): JsonObject => ({
  name,
  image: IMAGE,
  imageID: "",
  ready: "running" in state,
  started: "running" in state,
  restartCount: 0,
  state,
  ...more,
});
const waiting = (reason: string, message = ""): JsonObject => ({ waiting: { reason, message } });
const running: JsonObject = { running: { startedAt: NOW } };
const ended = (exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): JsonObject => ({
  terminated: { exitCode, reason, startedAt: NOW, finishedAt: NOW },
});

const condition = (type: string, status: string, reason = "", message = ""): JsonObject => ({
  type,
  status,
  lastTransitionTime: NOW,
  ...(reason === "" ? {} : { reason, message }),
});
const unready = (reason: string): readonly JsonObject[] =>
  ["Ready", "ContainersReady"].map((type) =>
    condition(type, "False", reason, `containers with unready status: [${MAIN}]`),
  );

/** A pod whose container cannot be started. */
const stuck = (state: JsonObject): JsonObject => ({
  phase: "Pending",
  startTime: NOW,
  conditions: [condition("Initialized", "True"), ...unready("ContainersNotReady")],
  containerStatuses: [container(MAIN, state)],
});
/** A pod whose init container keeps the other from starting. */
const stuckBefore = (state: JsonObject, more: JsonObject = {}): JsonObject => ({
  phase: "Pending",
  startTime: NOW,
  conditions: [
    condition("Initialized", "False", "ContainersNotInitialized", `containers with incomplete status: [${BESIDE}]`),
    ...unready("ContainersNotReady"),
  ],
  initContainerStatuses: [container(BESIDE, state, more)],
  containerStatuses: [container(MAIN, waiting("PodInitializing"))],
});
const over = (phase: "Succeeded" | "Failed", containerStatuses: readonly JsonObject[], more: JsonObject = {}) => ({
  phase,
  conditions: unready(phase === "Failed" ? "PodFailed" : "PodCompleted"),
  containerStatuses,
  ...more,
});
const failed = (state: JsonObject) => over("Failed", [container(MAIN, state)]);
const failedBefore = (state: JsonObject): JsonObject => ({
  ...stuckBefore(state),
  phase: "Failed",
});
/** The status that a kubelet gives a pod that it ends because of its node. */
const endedByNode = (reason: string, message: string): JsonObject => ({
  ...failed(ended(137)),
  reason,
  message,
  conditions: [...unready("PodFailed"), condition("DisruptionTarget", "True", "TerminationByKubelet", message)],
});
/** A kubelet continues to restart. A test needs a fixed number of restarts. */
const crashing = (restarts: number): JsonObject => ({
  phase: "Running",
  conditions: unready("ContainersNotReady"),
  containerStatuses: [
    container(MAIN, waiting("CrashLoopBackOff", `back-off 20s restarting failed container=${MAIN}`), {
      restartCount: restarts,
      lastState: ended(1),
    }),
  ],
});

type Played = {
  /** The phase in which a pod gets the status. */
  readonly from: "Pending" | "Running";
  readonly status: JsonObject;
  /** Keeps a status that does not change the phase from being written again. */
  readonly unless?: Requirement;
};

const IMAGE_PULL = `Back-off pulling image "${IMAGE}": ErrImagePull: not found`;
const before = (status: JsonObject): Played => ({ from: "Pending", status });
const after = (status: JsonObject): Played => ({ from: "Running", status });
const crash = (restarts: number): Played => ({
  ...after(crashing(restarts)),
  unless: some("containerStatuses", ".restartCount > 0", "DoesNotExist"),
});
const beside = (state: JsonObject): Played => ({
  from: "Running",
  status: { phase: "Running", containerStatuses: [container(MAIN, state), container(BESIDE, running)] },
  unless: some("containerStatuses", ".state.terminated != null", "DoesNotExist"),
});
const EVICTED = endedByNode("Evicted", "The node was low on resource: memory.");

/** The stages by failure. The test itself causes a failure that is not here, on a running pod. */
const PLAYED: Readonly<Partial<Record<Failing, Played>>> = {
  ImagePullBackOff: before(stuck(waiting("ImagePullBackOff", IMAGE_PULL))),
  "ImagePullBackOff of an init container": before(stuckBefore(waiting("ImagePullBackOff", IMAGE_PULL))),
  "CrashLoopBackOff of an init container": before(
    stuckBefore(waiting("CrashLoopBackOff", "back-off 20s"), { restartCount: 2, lastState: ended(1) }),
  ),
  CreateContainerConfigError: before(stuck(waiting("CreateContainerConfigError", 'configmap "settings" not found'))),
  CreateContainerError: before(stuck(waiting("CreateContainerError", "context deadline exceeded"))),
  InvalidImageName: before(stuck(waiting("InvalidImageName", "couldn't parse image reference"))),
  RunContainerError: before(stuck(waiting("RunContainerError", "failed to start containerd task"))),
  "pending for too long": before(stuck(waiting("ContainerCreating"))),

  "exit code 1": after(failed(ended(1))),
  "exit code 137": after(failed(ended(137))),
  "exit code 143": after(failed(ended(143))),
  OOMKilled: after(failed(ended(137, "OOMKilled"))),
  "exit code 2 of an init container": before(failedBefore(ended(2))),
  "OOMKilled of an init container": before(failedBefore(ended(137, "OOMKilled"))),
  "success despite OOMKilled": after(over("Succeeded", [container(MAIN, ended(0, "OOMKilled"))])),
  "success despite OOMKilled of a sidecar": after(
    over("Succeeded", [container(MAIN, ended(0)), container(BESIDE, ended(0, "OOMKilled"))]),
  ),

  "exit code 1 of one of a gang": after(failed(ended(1))),
  "exit code 1 under Never": after(failed(ended(1))),
  "exit code 137 under Never": after(failed(ended(137))),
  "a container restarted once": {
    from: "Running",
    status: {
      phase: "Running",
      containerStatuses: [container(MAIN, running, { restartCount: 1, lastState: ended(1) })],
    },
    unless: some("containerStatuses", ".restartCount > 0", "DoesNotExist"),
  },
  "CrashLoopBackOff under OnFailure": crash(2),
  "CrashLoopBackOff under Always": crash(2),

  "the primary container ends well while a sidecar runs": beside(ended(0)),
  "the primary container fails while a sidecar runs": beside(ended(1)),
  "a sidecar is restarted while the primary container runs": {
    from: "Running",
    status: {
      phase: "Running",
      initContainerStatuses: [container(BESIDE, running, { restartCount: 1, lastState: ended(1) })],
    },
    unless: some("initContainerStatuses", ".restartCount > 0", "DoesNotExist"),
  },

  "eviction by the node": after(EVICTED),
  "eviction by the node under Never": after(EVICTED),
  "eviction by the node that spends the last of the budget": after(EVICTED),
  "node shutdown": after(endedByNode("Terminated", "Pod was terminated in response to imminent node shutdown.")),
  "preemption by the node": after(endedByNode("Preempting", "Preempted in order to admit critical pod")),
  "a node that refuses the pod": before({
    phase: "Failed",
    reason: "OutOfcpu",
    message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 1000, capacity: 1000",
    startTime: NOW,
  }),
};

export const FAILURE_STAGES = [
  ...FAILING.map((failing) => {
    const played = PLAYED[failing];
    return played === undefined ? heldStage(failing) : playedStage(failing, played);
  }),
  trained("trained", [annotated(PLAYS, "DoesNotExist")]),
  trained("trained-at-last", [annotated(PLAYS, "Exists"), { ...isFirst, operator: "NotIn" }]),
  trained("let-go", [annotated(PLAYS, "Exists"), isFirst, annotated(LET_GO, "Exists")]),
].join("\n---\n");

/** A pod of ours that runs to its end. */
function trained(name: string, of: readonly Requirement[]): string {
  const isOurs: Requirement = { key: ATTEMPT, operator: "Exists" };
  const status = over("Succeeded", [container(MAIN, ended(0))]);
  return stage(name, [isStaying, phaseIs("Running"), isOurs, ...of], {
    weight: 1,
    ...SOON,
    next: statusOf(status, "Now"),
  });
}

function playedStage(failing: Failing, { from, status, unless }: Played): string {
  const guard = unless === undefined ? [] : [unless];
  // A pod that stays pending keeps its times, so that its status is written once.
  const now = from === "Pending" ? "or .status.startTime Now" : "Now";
  const next = statusOf(status, now);
  return stage(nameOf(failing), [isStaying, phaseIs(from), isFirst, plays(failing), ...guard], {
    weight: 1,
    ...SOON,
    next,
  });
}

/** A kubelet that ends a pod slowly, so that others see the pod while it is being deleted. */
function heldStage(failing: Failing): string {
  const isHeld = annotated(LET_GO, "DoesNotExist");
  const of = [isLeaving, phaseIs("Running"), isFirst, plays(failing), isHeld];
  return stage(nameOf(failing), of, { weight: 1, delay: { durationMilliseconds: 3_600_000 }, next: { delete: true } });
}

function plays(failing: Failing): Requirement {
  return { key: `.metadata.annotations["${PLAYS}"]`, operator: "In", values: [failing] };
}

function statusOf(status: JsonObject, now: string): JsonObject {
  return { statusTemplate: `{{ $now := ${now} }}\n${JSON.stringify(status)}` };
}

/** KWOK's own stages have no weight, so a stage with a weight precedes them. */
function stage(name: string, matchExpressions: readonly Requirement[], spec: JsonObject): string {
  return JSON.stringify({
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: { resourceRef: { apiGroup: "v1", kind: "Pod" }, selector: { matchExpressions }, ...spec },
  });
}
