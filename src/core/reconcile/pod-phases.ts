import type { PodPhases } from "../job/status.ts";
import { PODS_TOLD_MAX, type TaskPhase } from "../job/task-info.ts";
import type { JudgedSlot } from "./judge.ts";

/**
 * How the pods of an admission's first members are. Told are only phases that change what is counted, too, so that nothing is recorded for them
 * alone; `forGood` says of which failed pods nothing restarts.
 */
export function podPhases(
  admission: number,
  slots: readonly JudgedSlot[],
  forGood: (slot: JudgedSlot) => boolean,
): PodPhases {
  const told = slots.slice(0, PODS_TOLD_MAX).flatMap((slot) => {
    const phase = phaseOf(slot, forGood);
    return phase === null ? [] : [[slot.key, phase] as const];
  });
  return { admission, phases: Object.fromEntries(told) };
}

function phaseOf(slot: JudgedSlot, forGood: (slot: JudgedSlot) => boolean): TaskPhase | null {
  const { pod } = slot;
  if (pod?.phase === "Succeeded") return "SUCCESS";
  if (pod === null || pod.deleting) return null;
  if (pod.phase === "Running") return "RUNNING";
  if (pod.phase !== "Failed") return null;
  return forGood(slot) ? "PERMANENT_FAILURE" : "RETRYABLE_FAILURE";
}
