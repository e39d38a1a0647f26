import type { PodReading } from "./pod-reading.ts";
import { containerRestarts, type PodView } from "./pod-view.ts";
import { readProblem } from "./read-problem.ts";

/** The facts that users ask about each pod. */
type ShownFacts = {
  readonly node: string;
  readonly ready: boolean;
  /** How often containers of this pod were restarted, init containers included. */
  readonly restarts: number;
  /** Why the pod failed or does not run. Empty: it runs, starts or has succeeded. */
  readonly reason: string;
  readonly message: string;
};

/** Reads the facts of a pod from its status, and from how Gangway judges it. */
export function podFacts(pod: PodView, reading: PodReading | null, nowMs: number): ShownFacts {
  const { reason, message } = whyOf(pod, reading, nowMs);
  return { node: pod.nodeName, ready: pod.ready, restarts: containerRestarts(pod), reason, message };
}

function whyOf(pod: PodView, reading: PodReading | null, nowMs: number): Pick<ShownFacts, "reason" | "message"> {
  if (reading?.kind === "failed") return { reason: reading.failure.code, message: reading.failure.message };
  const found = readProblem(pod, nowMs);
  return found.kind === "problem" ? found : { reason: "", message: "" };
}
