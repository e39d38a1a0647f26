import { maxOf } from "../../../runtime/lists.ts";
import type { ContainerView, PodView } from "./pod-view.ts";

/** Why a pod does not run: a reason in CamelCase, and the cluster's own words. */
export type Problem = { readonly reason: string; readonly message: string };

/** `later`: the pod has a problem if its status is still the same at that time. */
export type ProblemReading =
  | { readonly kind: "none" }
  | ({ readonly kind: "problem" } & Problem)
  | { readonly kind: "later"; readonly atMs: number };

/** How long a scheduler may take until it first says anything about a pod. */
const SCHEDULER_SILENCE_MS = 10_000;
/** How long a node may take to create a container. Images have reasons of their own. */
const CREATING_MS = 60_000;
/** How long a deletion may take beyond the grace time of the pod. */
const DELETING_MS = 30_000;

/** A container waits for one of these in every start. */
const USUAL_WAITS: readonly string[] = ["", "ContainerCreating", "PodInitializing"];
/** The kubelet reports these two in turn for one failure. */
const IMAGE_PULL: readonly string[] = ["ErrImagePull", "ImagePullBackOff"];

const NONE: ProblemReading = { kind: "none" };

/** Reads why a pod does not run, or why its deletion takes long. A pod that has ended has no problem. Never throws. */
export function readProblem(pod: PodView, nowMs: number): ProblemReading {
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
  if (!container?.waiting) return NONE;
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
