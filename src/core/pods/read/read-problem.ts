import { maxOf } from "../../../runtime/lists.ts";
import { type ContainerView, hasEnded, type PodView } from "./pod-view.ts";

/** Why a pod does not run: a reason in CamelCase, and the cluster's own words. */
export type Problem = { readonly reason: string; readonly message: string };

/** `later`: the pod has a problem if its status is still the same at that time. */
export type ProblemReading =
  | { readonly kind: "none" }
  /** `untilMs`: it is over at that time unless the status changes. Omitted: that is not known. */
  | ({ readonly kind: "problem"; readonly untilMs?: number } & Problem)
  | { readonly kind: "later"; readonly atMs: number };

/** How long a scheduler may take until it first says anything about a pod. */
const SCHEDULER_SILENCE_MS = 10_000;
/** How long a node may take to create a container. Images have reasons of their own. */
const CREATING_MS = 60_000;
/** A container that has run for so long is healthy again: the kubelet then forgets that it crashed. */
const HEALTHY_MS = 600_000;
/** A container that was restarted so often crashes again and again. */
const CRASHES_MIN = 2;
/** How long a deletion may take beyond the grace time of the pod. */
const DELETING_MS = 30_000;

/** A container waits for one of these in every start. */
const USUAL_WAITS: readonly string[] = ["", "ContainerCreating", "PodInitializing"];
/** The kubelet reports these two in turn for one failure. */
const IMAGE_PULL: readonly string[] = ["ErrImagePull", "ImagePullBackOff"];

/** The reason of pods whose node has stopped to report. */
export const NODE_SILENT = "NodeSilent";

const NONE: ProblemReading = { kind: "none" };

/** Reads why a pod does not run, or why its deletion takes long. A pod that has ended has no problem. Never throws. */
export function readProblem(pod: PodView, nowMs: number): ProblemReading {
  if (pod.nodeSilent !== null && !hasEnded(pod)) return nodeSilent(pod.nodeName, pod.nodeSilent.sinceMs);
  if (pod.deleting) return readDeletion(pod, nowMs);
  if (pod.phase !== "Pending" && pod.phase !== "Running") return NONE;
  const refusal = pod.conditions.find(
    ({ type, status }) => type === "Unschedulable" || (type === "PodScheduled" && status === "False"),
  );
  if (refusal !== undefined) return problem(refusal.reason || "Unschedulable", refusal.message);
  const scheduled = pod.conditions.find(({ type }) => type === "PodScheduled");
  if (pod.phase === "Pending" && pod.nodeName === "" && scheduled === undefined) return readSilence(pod, nowMs);
  return readContainers(pod, nowMs);
}

function readDeletion({ deletionTimeMs, nodeName }: PodView, nowMs: number): ProblemReading {
  if (deletionTimeMs === null) return NONE;
  const node = nodeName === "" ? "its cluster" : `its node ${nodeName}`;
  return unlessBefore(deletionTimeMs + DELETING_MS, nowMs, {
    reason: "Terminating",
    message: `the pod is being deleted, and ${node} does not confirm that it has ended`,
  });
}

function readSilence({ createTimeMs, schedulerName }: PodView, nowMs: number): ProblemReading {
  const scheduler = schedulerName === "" ? "no scheduler" : `no scheduler of the name ${schedulerName}`;
  return unlessBefore(createTimeMs + SCHEDULER_SILENCE_MS, nowMs, {
    reason: "NotScheduled",
    message: `${scheduler} has looked at the pod: check schedulerName in the template, and that this scheduler runs`,
  });
}

/** Init containers come first, because the others wait for them. */
function readContainers(pod: PodView, nowMs: number): ProblemReading {
  const init = pod.initContainers.find(({ ready, terminated }) => !ready && terminated === null);
  const container = init ?? pod.containers.find(({ waiting }) => waiting !== null);
  if (!container?.waiting) return readCrashes(pod, nowMs);
  const { reason, message } = container.waiting;
  if (!USUAL_WAITS.includes(reason)) return problem(wordOf(reason), said(container, message));
  const sinceMs = maxOf(
    pod.conditions.map((condition) => condition.sinceMs ?? 0),
    pod.createTimeMs,
  );
  return unlessBefore(sinceMs + CREATING_MS, nowMs, {
    reason: "ContainerCreating",
    message:
      `${said(container, message)} is not created yet: node ${pod.nodeName} still pulls its image, or lacks ` +
      `a volume, a secret or the network; kubectl describe pod ${pod.name} shows which`,
  });
}

/**
 * A container that crashes again and again runs for a moment between two waits. It has the reason of the waits then
 * too, so that the pod does not look healthy in turn.
 */
function readCrashes({ containers }: PodView, nowMs: number): ProblemReading {
  for (const container of containers) {
    const { restarts, runningSinceMs, lastTerminated } = container;
    if (restarts < CRASHES_MIN || runningSinceMs === null || !lastTerminated?.exitCode) continue;
    const untilMs = runningSinceMs + HEALTHY_MS;
    if (nowMs >= untilMs) continue;
    const message = said(container, `restarted ${restarts} times, the last run ended with ${lastTerminated.exitCode}`);
    return { kind: "problem", reason: "CrashLoopBackOff", message, untilMs };
  }
  return NONE;
}

function nodeSilent(node: string, sinceMs: number | null): ProblemReading {
  const since =
    sinceMs === null ? "does not report to its cluster" : `is silent since ${new Date(sinceMs).toISOString()}`;
  return problem(NODE_SILENT, `node ${node} ${since}; nobody knows whether the pod still runs`);
}

/** One word for reasons that come in turn, so that no record is written for each turn. */
function wordOf(reason: string): string {
  return IMAGE_PULL.includes(reason) ? "ImagePullBackOff" : reason;
}

function said({ name }: ContainerView, message: string): string {
  return `container ${name}${message === "" ? "" : `: ${message}`}`;
}

function problem(reason: string, message: string): ProblemReading {
  return { kind: "problem", reason, message };
}

function unlessBefore(atMs: number, nowMs: number, of: Problem): ProblemReading {
  return nowMs < atMs ? { kind: "later", atMs } : { kind: "problem", ...of };
}
