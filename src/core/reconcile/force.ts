import type { PodView } from "../pods/pod-view.ts";
import type { Draft, Inputs } from "./draft.ts";

/** So long after a pod's own grace its kubelet may still be about to say that it has gone. */
export const FORCE_AFTER_MS = 30_000;

/**
 * Deletes pods without waiting for their kubelet where there is none to wait for: their deletion is overdue, and either their node is there no
 * more or their containers have ended. A node that is only silent may run them on, so those are waited for: a gang never runs twice.
 */
export function forceLost(draft: Draft, { job, observed, nowMs }: Inputs): void {
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

function isUnattended({ deleting, nodeGone, phase }: PodView): boolean {
  return deleting && (nodeGone || phase === "Succeeded" || phase === "Failed");
}
