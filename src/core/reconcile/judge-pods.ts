import type { PodReading } from "../pods/read/pod-reading.ts";
import type { PodView } from "../pods/read/pod-view.ts";
import { PENDING_LIMITS } from "../pods/read/read-pending.ts";
import { phaseOf, readPod } from "../pods/read/read-pod.ts";
import type { Arrangement, Slot } from "./arrange-gang.ts";
import type { Draft, Inputs } from "./decision-draft.ts";

/** A slot whose pod has the phase that we read from its status, which may differ from Kubernetes' (see `readPod`). */
export type JudgedSlot = Slot & {
  /** How the pod's status is read. Null: there is no pod. */
  readonly reading: PodReading | null;
};

export type JudgedArrangement = Omit<Arrangement, "slots"> & { readonly slots: readonly JudgedSlot[] };

/** Reads the status of every pod that has a slot. */
export function judgePods(arranged: Arrangement, inputs: Inputs): JudgedArrangement {
  return { ...arranged, slots: arranged.slots.map((slot) => judgeSlot(slot, inputs)) };
}

/** Reads the status of one pod. */
export function readingOf(pod: PodView, { kind, nowMs, config }: Inputs): PodReading {
  const { pending: limits = PENDING_LIMITS } = config;
  return readPod(pod, { defaultContainer: kind.defaultContainer, limits, nowMs });
}

/** Looks again when the grace period of a pod that is not ready yet has passed. */
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
