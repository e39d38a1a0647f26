import type { Job } from "../core/job/job.ts";
import type { PodView } from "../core/pods/read/pod-view.ts";
import type { Observed } from "../core/reconcile/observed.ts";

/** Stamps in the future that are remembered. Beyond it the oldest are forgotten, and count from now again. */
const STAMPS_MAX = 10_000;
/** Clocks that a time service keeps differ by less. */
const TOLERANCE_MS = 1_000;

/**
 * Reads the time stamps of pods by our clock, since those of a cluster may be wrong. A stamp in the future counts from
 * when this worker first saw it. No stamp of an admission's pod is from before that admission.
 */
export class SeenTimes {
  readonly #firstMs = new Map<string, number>();

  /** For tests. */
  get size(): number {
    return this.#firstMs.size;
  }

  /** The observed objects with times that limits can count from. Returns `observed` itself if no time changes. */
  bound(observed: Observed, { admissions }: Pick<Job, "admissions">, nowMs: number): Observed {
    const admitMs = new Map(admissions.map(({ number, admitTimeMs }) => [number, admitTimeMs]));
    const isRight = (pod: PodView) => {
      const leastMs = (admitMs.get(pod.admission) ?? 0) - TOLERANCE_MS;
      return stampsOf(pod).every((atMs) => atMs >= leastMs && atMs <= nowMs + TOLERANCE_MS && !this.#knows(pod, atMs));
    };
    if (observed.every(({ pods }) => pods.every(isRight))) return observed;
    return observed.map((cluster) => ({
      ...cluster,
      pods: cluster.pods.map((pod) => (isRight(pod) ? pod : this.#read(pod, admitMs.get(pod.admission) ?? 0, nowMs))),
    }));
  }

  #read(pod: PodView, leastMs: number, nowMs: number): PodView {
    const read = (stampMs: number) => {
      const isPast = stampMs <= nowMs + TOLERANCE_MS && !this.#knows(pod, stampMs);
      return isPast ? Math.max(stampMs, Math.min(leastMs, nowMs)) : this.#firstSeen(keyOf(pod, stampMs), nowMs);
    };
    return {
      ...pod,
      createTimeMs: pod.createTimeMs === 0 ? 0 : read(pod.createTimeMs),
      deletionTimeMs: pod.deletionTimeMs === null ? null : read(pod.deletionTimeMs),
      conditions: pod.conditions.map((one) => (one.sinceMs === null ? one : { ...one, sinceMs: read(one.sinceMs) })),
    };
  }

  #knows(pod: PodView, stampMs: number): boolean {
    return this.#firstMs.size > 0 && this.#firstMs.has(keyOf(pod, stampMs));
  }

  #firstSeen(key: string, nowMs: number): number {
    const known = this.#firstMs.get(key);
    if (known !== undefined) return known;
    const [oldest] = this.#firstMs.keys();
    if (this.#firstMs.size >= STAMPS_MAX && oldest !== undefined) this.#firstMs.delete(oldest);
    this.#firstMs.set(key, nowMs);
    return nowMs;
  }
}

function keyOf({ uid }: PodView, stampMs: number): string {
  return `${uid} ${stampMs}`;
}

function stampsOf({ createTimeMs, deletionTimeMs, conditions }: PodView): readonly number[] {
  const stamps = [createTimeMs, deletionTimeMs ?? 0, ...conditions.map(({ sinceMs }) => sinceMs ?? 0)];
  return stamps.filter((atMs) => atMs !== 0);
}
