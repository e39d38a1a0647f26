import { hasEnded, type PodView } from "../pods/read/pod-view.ts";
import type { Draft, Inputs } from "./decision-draft.ts";

/** How long after a pod's own grace period its kubelet may still report that the pod is gone. */
export const FORCE_AFTER_MS = 30_000;

/**
 * Deletes pods without waiting for their kubelet if their deletion is overdue, and either their node is gone or their
 * containers have ended. A node that is only silent may still run its pods, so these are waited for: a gang never runs
 * twice.
 */
export function forceDeleteLost(draft: Draft, { job, observed, nowMs }: Inputs): void {
  for (const { cluster, pods } of observed) {
    for (const pod of pods) {
      if (pod.jobUid !== job.uid || !isUnattended(pod)) continue;
      const atMs = (pod.deletionTimeMs ?? 0) + FORCE_AFTER_MS;
      if (nowMs < atMs) draft.recheckAtMs.push(atMs);
      else {
        const { name, uid } = pod;
        draft.actions.push({ cluster, namespace: job.namespace, kind: "deletePod", name, uid, force: true });
      }
    }
  }
}

function isUnattended(pod: PodView): boolean {
  return pod.deleting && (pod.nodeGone || hasEnded(pod));
}
