/** How the place of a job in the order of admission improves while it waits. Preemption compares plain priorities. */
import type { Ageing } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";

/** The ageing of a queue's jobs, with the values of all priority classes, the lowest first. */
export type AgeingInBands = Ageing & { readonly classValues: readonly number[] };

/** How the jobs of a queue age. Null: they do not. */
export function ageingOf(queue: PlanQueue | undefined): AgeingInBands | null {
  const ageing = queue?.policy?.ageing ?? null;
  return ageing === null ? null : { ...ageing, classValues: queue?.classValues ?? [] };
}

type Ageable = {
  readonly priority: number;
  /** When the job was created, or when its last admission ended. */
  readonly waitsSinceMs: number;
};

/** Priorities are 32-bit integers. */
const PRIORITY_MAX = 2 ** 31 - 1;

/**
 * The priority that counts in the order of admission. It grows by a step for each interval that has passed, and stays
 * within the band of the job's priority class: below the value of the next higher class.
 */
export function effectivePriority(gang: Ageable, ageing: AgeingInBands, nowMs: number): number {
  const intervals = Math.max(0, Math.floor((nowMs - gang.waitsSinceMs) / ageing.intervalMs));
  return Math.min(gang.priority + ageing.step * intervals, highestPriority(gang.priority, ageing));
}

/** When a job's effective priority grows next. Infinite: it has grown as far as it may. */
export function nextStepMs(gang: Ageable, ageing: AgeingInBands, nowMs: number): number {
  const { intervalMs } = ageing;
  if (effectivePriority(gang, ageing, nowMs) >= highestPriority(gang.priority, ageing)) return Number.POSITIVE_INFINITY;
  const intervals = Math.max(0, Math.floor((nowMs - gang.waitsSinceMs) / intervalMs));
  return gang.waitsSinceMs + (intervals + 1) * intervalMs;
}

function highestPriority(priority: number, { limit, classValues }: AgeingInBands): number {
  const nextClass = classValues.find((value) => value > priority) ?? PRIORITY_MAX + 1;
  return Math.max(priority, Math.min(priority + limit, nextClass - 1, PRIORITY_MAX));
}
