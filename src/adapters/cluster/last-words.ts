import type { PodView } from "../../core/pods/pod-view.ts";
import type { KeptPod } from "./kept-objects.ts";

/** Longer than a step is away. A word that has been counted is of an attempt that is over, so keeping it longer does no harm. */
const KEPT_MS = 300_000;

/**
 * What was last seen of pods that their cluster has taken away. Who is told by a watch that a pod is gone has often not looked at it since it was
 * said why: the collector of pods whose node is gone says so and removes them in one go.
 */
export class LastWords {
  readonly #nowMs: () => number;
  readonly #byJob = new Map<string, { readonly pod: PodView; readonly endMs: number }[]>();

  /** `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Hears of a pod that is gone. */
  heard({ view, jobUid }: KeptPod): void {
    this.#expire();
    if (view === null || jobUid === null || !view.disrupted || view.phase === "Succeeded") return;
    const pod = { ...view, deleting: true };
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
