import type { PodReading } from "../pods/pod-reading.ts";
import type { PodView } from "../pods/pod-view.ts";
import { PENDING_LIMITS } from "../pods/read-pending.ts";
import { phaseOf, readPod } from "../pods/read-pod.ts";
import type { Arrangement, Slot } from "./arrange.ts";
import type { Draft, Inputs } from "./draft.ts";

/** A slot whose pod has the phase that its status comes to, which may be another than Kubernetes' (see `readPod`). */
export type JudgedSlot = Slot & {
  /** What the pod's status says; null without a pod. */
  readonly reading: PodReading | null;
};

export type JudgedArrangement = Omit<Arrangement, "slots"> & { readonly slots: readonly JudgedSlot[] };

/** Reads the status of every pod that is in its place. */
export function judge(arranged: Arrangement, inputs: Inputs): JudgedArrangement {
  return { ...arranged, slots: arranged.slots.map((slot) => judgeSlot(slot, inputs)) };
}

/** What the status of one pod says. */
export function readingOf(pod: PodView, { kind, nowMs, config }: Inputs): PodReading {
  const { pending: limits = PENDING_LIMITS } = config;
  return readPod(pod, { defaultContainer: kind.defaultContainer, limits, nowMs });
}

/** Looks again when a pod that is still within its grace is not any more. */
export function awaitGrace(draft: Draft, readings: readonly (PodReading | null)[]): void {
  for (const reading of readings) {
    if (reading === null || !("recheckAtMs" in reading) || reading.recheckAtMs === null) continue;
    draft.recheckAtMs.push(reading.recheckAtMs);
  }
}

function judgeSlot(slot: Slot, inputs: Inputs): JudgedSlot {
  if (slot.pod === null) return { ...slot, reading: null };
  const reading = readingOf(slot.pod, inputs);
  return { ...slot, reading, pod: { ...slot.pod, phase: phaseOf(slot.pod, reading) } };
}
