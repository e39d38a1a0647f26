import { DOWNLOADER, UPLOADER } from "./co-pilot.ts";
import { failureOf, lacksMemory, type PodFailure, UNKNOWN_ERROR } from "./failure.ts";
import type { ContainerEnd, PodView } from "./pod-view.ts";

/** The downloader has failed. It is the user's: the place is the template's own. */
const INPUTS_NOT_FETCHED = "InputsNotFetched";
/** The program has ended well, the uploader has not. It is the system's: the program has done what it should. */
export const OUTPUTS_NOT_TAKEN = "OutputsNotTaken";

/** A pod by its program alone: Kubernetes does not count how a sidecar ends either. */
export function withoutUploader(pod: PodView): PodView {
  return { ...pod, initContainers: pod.initContainers.filter(({ name }) => name !== UPLOADER) };
}

export type Upload = { readonly kind: "over" | "pending" } | { readonly kind: "failed"; readonly failure: PodFailure };

/**
 * How far the outputs of a pod are whose primary container has ended well. The kubelet asks the uploader to upload once every other container
 * has ended, and ends it itself when its time is up; while another container runs on, outputs are only taken when the pod is deleted, and
 * nobody waits for them.
 */
export function uploadOf(pod: PodView): Upload {
  const uploader = pod.initContainers.find(({ name }) => name === UPLOADER);
  if (uploader === undefined) return { kind: "over" };
  const end = uploader.terminated ?? (uploader.waiting === null ? null : uploader.lastTerminated);
  if (end !== null && end.exitCode !== 0) {
    return { kind: "failed", failure: failureOf(pod, uploader)("SYSTEM", OUTPUTS_NOT_TAKEN, notTaken(end)) };
  }
  const isAsked = pod.containers.every(({ terminated }) => terminated !== null);
  return { kind: end === null && isAsked && pod.phase === "Running" ? "pending" : "over" };
}

function notTaken(end: ContainerEnd): string {
  const how = lacksMemory(end) ? "ran out of memory" : `ended with exit code ${end.exitCode}`;
  return `has lost its outputs: container ${UPLOADER} ${how}`;
}

/** The failure of a pod in the words of its co-pilot, where that is what failed: its inputs never came. */
export function namedByCoPilot(pod: PodView, failure: PodFailure): PodFailure {
  if (failure.container !== DOWNLOADER || failure.code !== UNKNOWN_ERROR) return failure;
  const downloader = pod.initContainers.find(({ name }) => name === DOWNLOADER);
  const what = `has not got its inputs: container ${DOWNLOADER} ended with exit code ${failure.exitCode ?? 0}`;
  return failureOf(pod, downloader)("USER", INPUTS_NOT_FETCHED, what);
}
