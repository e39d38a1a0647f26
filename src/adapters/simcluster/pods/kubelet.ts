/** Serves users who try jobs out: starts, runs and ends the pods of a simulated cluster, as annotations say. */
import { LABEL } from "../../../core/job/labels.ts";
import { doublingMs } from "../../../runtime/doubling.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, numberAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject, PodRun, StoredObject } from "../objects/kube-object.ts";
import { isTerminalPod, kubeTime } from "../objects/kube-object.ts";
import { INIT_CONTAINER_MS, notInitialized, notReady, withContainers } from "./pod-containers.ts";
import type { PodScript } from "./pod-script.ts";
import { exitCodeOf, readPodScript, scriptedFailureOf } from "./pod-script.ts";
import type { ContainerState, PodConditionChange } from "./pod-status.ts";
import { startedMsOf, withConditions } from "./pod-status.ts";
import {
  type EndedByNodeFailure,
  endedByNodeStatus,
  initFailedStatus,
  isInitFailure,
  type ScriptedFailure,
  stuckStatus,
} from "./scripted-failure.ts";

/** The next step of a pod: nothing until its stage is due, a change of the pod, or the end of a deleted pod. */
export type KubeletStep = { readonly kind: "nothing" } | { readonly kind: "gone" } | PodChange;

/** The pod's script, and the failure that it has for this run. */
type ScriptedRun = { readonly script: PodScript; readonly failure: ScriptedFailure | null };

type PodChange = { readonly kind: "changed"; readonly object: KubeObject; readonly run: PodRun | null };

/**
 * A pod's node: its address, and a resource of which it has too little for its pods. Only a pod that a client bound
 * itself can be on such a node. Null: it has enough.
 */
type PodHost = { readonly ip: string; readonly exhausted: string | null };

const BACKOFF = { firstMs: 1_000, longestMs: 10_000 };
const SIGKILL_EXIT_CODE = 137;
const NOTHING: KubeletStep = { kind: "nothing" };
const TRUE: PodConditionChange = { status: "True" };

/**
 * Plays the kubelet for one bound pod: returns its next step. Gangway's users see the life of pods, so it has the
 * stages, statuses and messages of a real kubelet. Pure. The caller applies the step, and calls again until it is
 * `nothing`.
 *
 *   initializing → pulling → starting → running → (ended) | backingOff → running … each of these → stopping → (ended) →
 *   gone, once the pod is deleted
 */
export function stepPod({ object: pod, run }: StoredObject, host: PodHost, nowMs: number): KubeletStep {
  if (stringAt(pod.spec, "nodeName") === undefined) return NOTHING;
  const deleting = pod.metadata.deletionTimestamp !== undefined;
  if (isTerminalPod(pod)) return deleting ? { kind: "gone" } : NOTHING;
  const script = readPodScript(pod.metadata.annotations ?? {});
  if (deleting) return stop(pod, run, script, nowMs);
  const failure = scriptedFailureOf(script, runOf(pod, run));
  if (run === null) return admit(pod, { host, failure }, nowMs);
  if (run.dueMs === null || run.dueMs > nowMs) return NOTHING;
  const stuck = failureBeforeRun(pod, run, failure, run.dueMs);
  return stuck === null ? nextStage(pod, run, { script, failure }, run.dueMs) : fail(pod, run, stuck);
}

/** Returns the status of a pod whose script fails it at this stage, before it runs. Null: it does not fail here. */
function failureBeforeRun(
  pod: KubeObject,
  run: PodRun,
  failure: ScriptedFailure | null,
  nowMs: number,
): JsonObject | null {
  if (run.stage === "initializing" && isInitFailure(failure, pod)) return initFailedStatus(pod, run, failure, nowMs);
  const isStuck = run.stage === "pulling" && failure?.kind === "stuck" && !failure.init;
  return isStuck ? stuckStatus(pod, run, failure, nowMs) : null;
}

/** Moves a pod whose stage is over to its next stage. */
function nextStage(pod: KubeObject, run: PodRun, { script, failure }: ScriptedRun, dueMs: number): KubeletStep {
  switch (run.stage) {
    case "initializing":
      return initialize(pod, { ...run, initDone: run.initDone + 1 }, script, dueMs);
    case "pulling":
      return {
        kind: "changed",
        object: pod,
        run: { ...run, stage: "starting", sinceMs: dueMs, dueMs: dueMs + script.startMs },
      };
    case "starting":
      return start(pod, run, script, dueMs);
    case "backingOff":
      return start(pod, { ...run, restarts: run.restarts + 1 }, script, dueMs);
    case "running":
      return failure?.kind === "endedByNode"
        ? endByNode(pod, run, failure, dueMs)
        : end(pod, run, { script, failure }, dueMs);
    case "stopping":
      return NOTHING;
  }
}

/** Returns why the node rejects a pod. Null: it accepts the pod. */
function rejectionBy(
  { exhausted }: PodHost,
  failure: ScriptedFailure | null,
): { reason: string; message: string } | null {
  if (failure?.kind === "refused") return { reason: failure.reason, message: failure.message };
  if (exhausted === null) return null;
  return { reason: `OutOf${exhausted}`, message: `Pod was rejected: Node didn't have enough resource: ${exhausted}` };
}

function admit(
  pod: KubeObject,
  { host, failure }: { readonly host: PodHost; readonly failure: ScriptedFailure | null },
  nowMs: number,
): KubeletStep {
  const rejection = rejectionBy(host, failure);
  if (rejection !== null) {
    const status = { ...pod.status, phase: "Failed", ...rejection, startTime: kubeTime(nowMs) };
    return { kind: "changed", object: { ...pod, status }, run: null };
  }
  const status = {
    ...pod.status,
    phase: "Pending",
    hostIP: host.ip,
    hostIPs: [{ ip: host.ip }],
    startTime: kubeTime(nowMs),
  };
  const run: PodRun = { stage: "initializing", sinceMs: nowMs, dueMs: nowMs, initDone: 0, restarts: 0 };
  return initialize({ ...pod, status }, run, readPodScript(pod.metadata.annotations ?? {}), nowMs);
}

/** Starts the next init container, or the pull of the images after the last one. */
function initialize(pod: KubeObject, run: PodRun, script: PodScript, nowMs: number): KubeletStep {
  const total = arrayAt(pod.spec, "initContainers").length;
  const done = run.initDone >= total;
  const next: PodRun = done
    ? { ...run, stage: "pulling", sinceMs: nowMs, dueMs: nowMs + script.pullMs }
    : { ...run, stage: "initializing", sinceMs: nowMs, dueMs: nowMs + INIT_CONTAINER_MS };
  const waiting: ContainerState = {
    kind: "waiting",
    reason: total > 0 && !done ? "PodInitializing" : "ContainerCreating",
  };
  const status = withConditions(
    withContainers(pod, next, waiting, nowMs),
    {
      PodScheduled: TRUE,
      Initialized: done ? TRUE : notInitialized(pod, run.initDone),
      ...notReady(pod, "ContainersNotReady"),
    },
    nowMs,
  );
  return { kind: "changed", object: { ...pod, status }, run: next };
}

function start(pod: KubeObject, run: PodRun, script: PodScript, nowMs: number): KubeletStep {
  const next: PodRun = {
    ...run,
    stage: "running",
    sinceMs: nowMs,
    dueMs: script.runMs === null ? null : nowMs + script.runMs,
    runs: [...(run.runs ?? []).slice(-1), { startedMs: nowMs, endedMs: null, exitCode: null }],
  };
  const containers = withContainers(pod, next, { kind: "running", startedMs: nowMs }, nowMs);
  const podIP = podAddress(pod);
  const status = withConditions(
    { ...containers, phase: "Running", podIP, podIPs: [{ ip: podIP }] },
    { Initialized: TRUE, Ready: TRUE, ContainersReady: TRUE },
    nowMs,
  );
  return { kind: "changed", object: { ...pod, status }, run: next };
}

/** Fails a pod, or blocks its start, until it is deleted. */
function fail(pod: KubeObject, run: PodRun, status: JsonObject): KubeletStep {
  return { kind: "changed", object: { ...pod, status }, run: { ...run, dueMs: null } };
}

/** The number of this run of the replica, from 0. The runs of earlier attempts count too. */
function runOf(pod: KubeObject, run: PodRun | null): number {
  const attempt = Number(pod.metadata.labels?.[LABEL.attempt] ?? "1") || 1;
  return attempt - 1 + (run?.restarts ?? 0);
}

/** Ends the pod as its node does, without a restart. */
function endByNode(pod: KubeObject, run: PodRun, failure: EndedByNodeFailure, nowMs: number): KubeletStep {
  const step = finish(pod, run, terminated(run, SIGKILL_EXIT_CODE, false, nowMs), nowMs);
  return { ...step, object: { ...step.object, status: endedByNodeStatus(step.object.status, failure, nowMs) } };
}

/** Ends a run: the pod ends too, or its containers restart in place after a pause. */
function end(pod: KubeObject, run: PodRun, { script, failure }: ScriptedRun, nowMs: number): KubeletStep {
  const isOutOfMemory = failure?.kind === "oom";
  const exitCode = isOutOfMemory ? SIGKILL_EXIT_CODE : exitCodeOf(script, runOf(pod, run));
  const policy = stringAt(pod.spec, "restartPolicy") ?? "Always";
  const ended = terminated(run, exitCode, script.oom || isOutOfMemory, nowMs);
  if (policy === "Never" || (policy === "OnFailure" && exitCode === 0)) return finish(pod, run, ended, nowMs);
  const pauseMs = doublingMs(BACKOFF, run.restarts);
  const next: PodRun = { ...withRunEnded(run, ended), stage: "backingOff", sinceMs: nowMs, dueMs: nowMs + pauseMs };
  const { namespace, name, uid } = pod.metadata;
  const crashed: KubeObject = { ...pod, status: withContainers(pod, run, ended, nowMs) };
  const containers = withContainers(
    crashed,
    next,
    {
      kind: "waiting",
      reason: "CrashLoopBackOff",
      message: `back-off ${pauseMs / 1000}s restarting failed container pod=${name}_${namespace}(${uid})`,
    },
    nowMs,
  );
  const status = withConditions({ ...containers, phase: "Running" }, notReady(pod, "ContainersNotReady"), nowMs);
  return { kind: "changed", object: { ...pod, status }, run: next };
}

/** Records the end of the current run. */
function withRunEnded(run: PodRun, ended: ContainerState): PodRun {
  const last = run.runs?.at(-1);
  if (last === undefined || last.endedMs !== null || ended.kind !== "terminated") return run;
  const { exitCode, finishedMs } = ended;
  return { ...run, runs: [...(run.runs ?? []).slice(0, -1), { ...last, endedMs: finishedMs, exitCode }] };
}

function terminated(run: PodRun, exitCode: number, oom: boolean, nowMs: number): ContainerState {
  const reason = exitCode === 0 ? "Completed" : exitCode === 137 && oom ? "OOMKilled" : "Error";
  return { kind: "terminated", exitCode, reason, startedMs: run.sinceMs, finishedMs: nowMs };
}

function finish(pod: KubeObject, run: PodRun, ended: ContainerState, nowMs: number): PodChange {
  const succeeded = ended.kind === "terminated" && ended.exitCode === 0;
  const reason = succeeded ? "PodCompleted" : "PodFailed";
  const over: PodRun = { ...withRunEnded(run, ended), dueMs: null };
  const status = withConditions(
    { ...withContainers(pod, over, ended, nowMs, true), phase: succeeded ? "Succeeded" : "Failed" },
    {
      ...(succeeded ? { Initialized: { status: "True", reason } } : {}),
      Ready: { status: "False", reason },
      ContainersReady: { status: "False", reason },
    },
    nowMs,
  );
  return { kind: "changed", object: { ...pod, status }, run: over };
}

/** Stops a pod: SIGTERM (exit code 143), or SIGKILL after the grace period (137). */
function stop(pod: KubeObject, run: PodRun | null, script: PodScript, nowMs: number): KubeletStep {
  const graceMs = (numberAt(pod.metadata, "deletionGracePeriodSeconds") ?? 0) * 1000;
  const before: PodRun = run ?? { stage: "initializing", sinceMs: nowMs, dueMs: nowMs, initDone: 0, restarts: 0 };
  const isRunning = before.stage === "running" || before.stage === "stopping";
  const sinceMs = before.stage === "stopping" ? before.sinceMs : nowMs;
  const dueMs = isRunning ? sinceMs + Math.min(script.stopMs, graceMs) : nowMs;
  if (dueMs > nowMs) {
    if (before.stage === "stopping" && before.dueMs === dueMs) return NOTHING;
    return { kind: "changed", object: pod, run: { ...before, stage: "stopping", sinceMs, dueMs } };
  }
  if (!isRunning) return { kind: "gone" };
  const startedMs = startedMsOf(arrayAt(pod.status, "containerStatuses")[0], sinceMs);
  const exitCode = script.stopMs <= graceMs ? 143 : 137;
  return finish(pod, before, terminated({ ...before, sinceMs: startedMs }, exitCode, false, nowMs), nowMs);
}

/** Makes an address of the version of the pod's creation, so that no two pods share one. */
function podAddress(pod: KubeObject): string {
  const version = Number.parseInt(pod.metadata.uid.slice(-12), 16);
  return `10.${64 + ((version >> 16) & 63)}.${(version >> 8) & 255}.${version & 255}`;
}
