import type { CancelOutcome, IntakePorts } from "./ports.ts";

export type Which = { readonly namespace: string; readonly name: string };

/** Asks for a job's end; its worker carries it out. What waited for its tokens may go. */
export async function cancel(ports: IntakePorts, which: Which, reason: string): Promise<CancelOutcome> {
  return wake(ports, await ports.store.requestCancel(which, reason, ports.clock.nowMs()));
}

/** Asks for a job's end and for everything of it to be removed. */
export async function remove(ports: IntakePorts, which: Which): Promise<CancelOutcome> {
  return wake(ports, await ports.store.requestDelete(which, ports.clock.nowMs()));
}

function wake(ports: IntakePorts, outcome: CancelOutcome): CancelOutcome {
  if (outcome.kind === "cancelled" || outcome.kind === "deleting") {
    ports.wakeJob(outcome.job.uid);
    ports.wakePlanner();
  }
  return outcome;
}
