import { hasEndedItself, type PodView } from "../../core/pods/read/pod-view.ts";
import type { KeptPod } from "./kept-objects.ts";

/**
 * How long a removed pod is kept: longer than any step takes to come. Keeping it after its failure was counted does no
 * harm, since its attempt is over then.
 */
const KEPT_MS = 300_000;

/**
 * The last state of removed pods that their cluster has disrupted, or that had ended before. A worker often sees such
 * a pod too late: Kubernetes' collector of pods without a node marks a pod as disrupted and removes it at once, and
 * others delete pods as soon as they have ended.
 */
export class LostPods {
  readonly #nowMs: () => number;
  readonly #byJob = new Map<string, { readonly pod: PodView; readonly endMs: number }[]>();

  /** `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Keeps the last state of a pod that is gone, if its end is known. */
  heard({ view, jobUid }: KeptPod): void {
    this.#expire();
    if (view === null || jobUid === null) return;
    const endedFirst = hasEndedItself(view);
    if (!endedFirst && (!view.disrupted || view.phase === "Succeeded")) return;
    const pod = { ...view, deleting: true, endedFirst };
    this.#byJob.set(jobUid, [...(this.#byJob.get(jobUid) ?? []), { pod, endMs: this.#nowMs() + KEPT_MS }]);
  }

  ofJob(jobUid: string): readonly PodView[] {
    this.#expire();
    return (this.#byJob.get(jobUid) ?? []).map(({ pod }) => pod);
  }

  #expire(): void {
    const nowMs = this.#nowMs();
    for (const [jobUid, kept] of this.#byJob) {
      const left = kept.filter(({ endMs }) => endMs > nowMs);
      if (left.length === 0) this.#byJob.delete(jobUid);
      else if (left.length < kept.length) this.#byJob.set(jobUid, left);
    }
  }
}
