import { DOWNLOADER, UPLOADER } from "../co-pilot.ts";
import { failureOf, lacksMemory, type PodFailure, UNKNOWN_ERROR } from "./failure.ts";
import type { ContainerEnd, PodView } from "./pod-view.ts";

/** The downloader failed. This is a failure of the user, because the template names the place. */
const INPUTS_NOT_FETCHED = "InputsNotFetched";
/** The uploader failed after the program succeeded. This is a failure of the system. */
export const OUTPUTS_NOT_TAKEN = "OutputsNotTaken";

/** A pod without its co-pilot. Kubernetes ignores how a sidecar ends, too. */
export function withoutUploader(pod: PodView): PodView {
  return { ...pod, initContainers: pod.initContainers.filter(({ name }) => name !== UPLOADER) };
}

type Upload = { readonly kind: "over" | "pending" } | { readonly kind: "failed"; readonly failure: PodFailure };

/**
 * The upload of a pod whose primary container succeeded. The kubelet signals the uploader after all other containers
 * have ended, and stops it when its time is up. While another container runs, the upload waits until the pod is
 * deleted, and the job does not wait for it.
 */
export function uploadOf(pod: PodView): Upload {
  const uploader = pod.initContainers.find(({ name }) => name === UPLOADER);
  if (uploader === undefined) return { kind: "over" };
  const end = uploader.terminated ?? (uploader.waiting === null ? null : uploader.lastTerminated);
  if (end !== null && end.exitCode !== 0) {
    return { kind: "failed", failure: failureOf(pod, uploader)("SYSTEM", OUTPUTS_NOT_TAKEN, uploadFailure(end)) };
  }
  const mayUpload = pod.containers.every(({ terminated }) => terminated !== null);
  return { kind: end === null && mayUpload && pod.phase === "Running" ? "pending" : "over" };
}

function uploadFailure(end: ContainerEnd): string {
  const how = lacksMemory(end) ? "ran out of memory" : `ended with exit code ${end.exitCode}`;
  return `could not upload its outputs: container ${UPLOADER} ${how}`;
}

/** The failure of a pod whose co-pilot failed to fetch the inputs. */
export function namedByCoPilot(pod: PodView, failure: PodFailure): PodFailure {
  if (failure.container !== DOWNLOADER || failure.code !== UNKNOWN_ERROR) return failure;
  const downloader = pod.initContainers.find(({ name }) => name === DOWNLOADER);
  const what = `could not download its inputs: container ${DOWNLOADER} ended with exit code ${failure.exitCode ?? 0}`;
  return failureOf(pod, downloader)("USER", INPUTS_NOT_FETCHED, what);
}
