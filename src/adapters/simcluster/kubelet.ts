import { LABEL } from "../../core/job/labels.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, numberAt, stringAt } from "../../runtime/json.ts";
import {
  type EndedByNode,
  endedByNodeStatus,
  type Failing,
  initFailedStatus,
  isInitFailing,
  stuckStatus,
} from "./failing.ts";
import type { Fate } from "./fate.ts";
import { exitCodeOf, failingOf, readFate } from "./fate.ts";
import type { Entry, KubeObject, PodRun } from "./kube-object.ts";
import { isTerminalPod, kubeTime } from "./kube-object.ts";
import { INIT_CONTAINER_MS, notInitialized, notReady, withContainers } from "./pod-containers.ts";
import type { ConditionChange, ContainerFate } from "./pod-status.ts";
import { startedMsOf, withConditions } from "./pod-status.ts";

/** What the kubelet does next with a pod: nothing until its run is due, report a change, or say that it is over. */
export type Step = { readonly kind: "nothing" } | { readonly kind: "gone" } | Change;

/** What a pod's annotations tell of it, and of this run. */
type Told = { readonly fate: Fate; readonly failing: Failing | null };

type Change = { readonly kind: "changed"; readonly object: KubeObject; readonly run: PodRun | null };

/** What a pod's node tells: its address, and the resource that it lacks for this pod, which only a pod bound by hand can find. */
export type Host = { readonly ip: string; readonly lacking: string | null };

const BACKOFF_MS = 1000;
const BACKOFF_MS_MAX = 10_000;
const SIGKILL_EXIT_CODE = 137;
const NOTHING: Step = { kind: "nothing" };
const TRUE: ConditionChange = { status: "True" };

/**
 * Moves one bound pod on by at most one stage. Pure; called again until it answers `nothing`.
 *
 *   initializing → pulling → starting → running → (ended) | backingOff → running …
 *   any of these → stopping → (ended) → gone, once the pod is being deleted
 */
export function stepPod({ object: pod, run }: Entry, host: Host, nowMs: number): Step {
  if (stringAt(pod.spec, "nodeName") === undefined) return NOTHING;
  const deleting = pod.metadata.deletionTimestamp !== undefined;
  if (isTerminalPod(pod)) return deleting ? { kind: "gone" } : NOTHING;
  const fate = readFate(pod.metadata.annotations ?? {});
  if (deleting) return stop(pod, run, fate, nowMs);
  const failing = failingOf(fate, runOf(pod, run));
  if (run === null) return admit(pod, { host, failing }, nowMs);
  if (run.dueMs === null || run.dueMs > nowMs) return NOTHING;
  const stuck = failBefore(pod, run, failing, run.dueMs);
  return stuck === null ? moveOn(pod, run, { fate, failing }, run.dueMs) : fail(pod, run, stuck);
}

/** The status of a pod that is told to fail before it runs, at the stage at which it does; null for others. */
function failBefore(pod: KubeObject, run: PodRun, failing: Failing | null, nowMs: number): JsonObject | null {
  if (run.stage === "initializing" && isInitFailing(failing, pod)) return initFailedStatus(pod, run, failing, nowMs);
  const isStuck = run.stage === "pulling" && failing?.kind === "stuck" && !failing.init;
  return isStuck ? stuckStatus(pod, run, failing, nowMs) : null;
}

/** The next stage of a pod whose present one is over. */
function moveOn(pod: KubeObject, run: PodRun, { fate, failing }: Told, dueMs: number): Step {
  switch (run.stage) {
    case "initializing":
      return initialize(pod, { ...run, initDone: run.initDone + 1 }, fate, dueMs);
    case "pulling":
      return {
        kind: "changed",
        object: pod,
        run: { ...run, stage: "starting", sinceMs: dueMs, dueMs: dueMs + fate.startMs },
      };
    case "starting":
      return start(pod, run, fate, dueMs);
    case "backingOff":
      return start(pod, { ...run, restarts: run.restarts + 1 }, fate, dueMs);
    case "running":
      return failing?.kind === "endedByNode"
        ? endByNode(pod, run, failing, dueMs)
        : end(pod, run, { fate, failing }, dueMs);
    case "stopping":
      return NOTHING;
  }
}

/** Why its node does not take a pod in; null if it does. */
function refusalBy({ lacking }: Host, failing: Failing | null): { reason: string; message: string } | null {
  if (failing?.kind === "refused") return { reason: failing.reason, message: failing.message };
  if (lacking === null) return null;
  return { reason: `OutOf${lacking}`, message: `Pod was rejected: Node didn't have enough resource: ${lacking}` };
}

function admit(
  pod: KubeObject,
  { host, failing }: { readonly host: Host; readonly failing: Failing | null },
  nowMs: number,
): Step {
  const refusal = refusalBy(host, failing);
  if (refusal !== null) {
    const status = { ...pod.status, phase: "Failed", ...refusal, startTime: kubeTime(nowMs) };
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
  return initialize({ ...pod, status }, run, readFate(pod.metadata.annotations ?? {}), nowMs);
}

/** Runs the next init container; after the last one the images are pulled. */
function initialize(pod: KubeObject, run: PodRun, fate: Fate, nowMs: number): Step {
  const total = arrayAt(pod.spec, "initContainers").length;
  const done = run.initDone >= total;
  const next: PodRun = done
    ? { ...run, stage: "pulling", sinceMs: nowMs, dueMs: nowMs + fate.pullMs }
    : { ...run, stage: "initializing", sinceMs: nowMs, dueMs: nowMs + INIT_CONTAINER_MS };
  const waiting: ContainerFate = {
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

function start(pod: KubeObject, run: PodRun, fate: Fate, nowMs: number): Step {
  const next: PodRun = {
    ...run,
    stage: "running",
    sinceMs: nowMs,
    dueMs: fate.runMs === null ? null : nowMs + fate.runMs,
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

/** A pod that has failed, or never will start, stays so until it is deleted. */
function fail(pod: KubeObject, run: PodRun, status: JsonObject): Step {
  return { kind: "changed", object: { ...pod, status }, run: { ...run, dueMs: null } };
}

/** Which run of the replica this is, counted from 0: those of earlier attempts come first. */
function runOf(pod: KubeObject, run: PodRun | null): number {
  const attempt = Number(pod.metadata.labels?.[LABEL.attempt] ?? "1") || 1;
  return attempt - 1 + (run?.restarts ?? 0);
}

/** The node ends the pod, whatever its policy. */
function endByNode(pod: KubeObject, run: PodRun, failing: EndedByNode, nowMs: number): Step {
  const step = finish(pod, run, terminated(run, SIGKILL_EXIT_CODE, false, nowMs), nowMs);
  return { ...step, object: { ...step.object, status: endedByNodeStatus(step.object.status, failing, nowMs) } };
}

/** A run ended by itself: the pod is over, or its containers are started again in place after a pause. */
function end(pod: KubeObject, run: PodRun, { fate, failing }: Told, nowMs: number): Step {
  const lacksMemory = failing?.kind === "oom";
  const exitCode = lacksMemory ? SIGKILL_EXIT_CODE : exitCodeOf(fate, runOf(pod, run));
  const policy = stringAt(pod.spec, "restartPolicy") ?? "Always";
  const ended = terminated(run, exitCode, fate.oom || lacksMemory, nowMs);
  if (policy === "Never" || (policy === "OnFailure" && exitCode === 0)) return finish(pod, run, ended, nowMs);
  const pauseMs = Math.min(BACKOFF_MS * 2 ** run.restarts, BACKOFF_MS_MAX);
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

/** Ends the run that goes on. */
function withRunEnded(run: PodRun, ended: ContainerFate): PodRun {
  const last = run.runs?.at(-1);
  if (last === undefined || last.endedMs !== null || ended.kind !== "terminated") return run;
  const { exitCode, finishedMs } = ended;
  return { ...run, runs: [...(run.runs ?? []).slice(0, -1), { ...last, endedMs: finishedMs, exitCode }] };
}

function terminated(run: PodRun, exitCode: number, oom: boolean, nowMs: number): ContainerFate {
  const reason = exitCode === 0 ? "Completed" : exitCode === 137 && oom ? "OOMKilled" : "Error";
  return { kind: "terminated", exitCode, reason, startedMs: run.sinceMs, finishedMs: nowMs };
}

function finish(pod: KubeObject, run: PodRun, ended: ContainerFate, nowMs: number): Change {
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

/** SIGTERM, then SIGKILL when the grace period is over: 143 or 137, as programs without a handler end. */
function stop(pod: KubeObject, run: PodRun | null, fate: Fate, nowMs: number): Step {
  const graceMs = (numberAt(pod.metadata, "deletionGracePeriodSeconds") ?? 0) * 1000;
  const before: PodRun = run ?? { stage: "initializing", sinceMs: nowMs, dueMs: nowMs, initDone: 0, restarts: 0 };
  const runs = before.stage === "running" || before.stage === "stopping";
  const sinceMs = before.stage === "stopping" ? before.sinceMs : nowMs;
  const dueMs = runs ? sinceMs + Math.min(fate.stopMs, graceMs) : nowMs;
  if (dueMs > nowMs) {
    if (before.stage === "stopping" && before.dueMs === dueMs) return NOTHING;
    return { kind: "changed", object: pod, run: { ...before, stage: "stopping", sinceMs, dueMs } };
  }
  if (!runs) return { kind: "gone" };
  const startedMs = startedMsOf(arrayAt(pod.status, "containerStatuses")[0], sinceMs);
  const exitCode = fate.stopMs <= graceMs ? 143 : 137;
  return finish(pod, before, terminated({ ...before, sinceMs: startedMs }, exitCode, false, nowMs), nowMs);
}

/** An address of its own for each pod, drawn from the version that it was created at. */
function podAddress(pod: KubeObject): string {
  const version = Number.parseInt(pod.metadata.uid.slice(-12), 16);
  return `10.${64 + ((version >> 16) & 63)}.${(version >> 8) & 255}.${version & 255}`;
}
