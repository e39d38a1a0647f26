import type { RoleState, Verdict } from "./kind.ts";

/** `leads`: the replica type decides the end of the job. `done`: it has succeeded. */
type Leadership = {
  readonly leads: (state: RoleState) => boolean;
  readonly done: (state: RoleState) => boolean;
};

/**
 * The verdict if some replica types lead: the job ends when they end. Checks the types in order, and success before
 * failure within one type. The first final state wins. Source: Kubeflow's UpdateJobStatus of PyTorchJob and TFJob.
 */
export function leaderVerdict(states: readonly RoleState[], { leads, done }: Leadership): Verdict {
  let verdict: Verdict = null;
  for (const state of states) {
    if (leads(state)) {
      if (done(state)) return "succeeded";
      if (state.active > 0) verdict = "running";
    }
    if (state.failedForGood > 0) return "failed";
  }
  return verdict;
}

/** The verdict without leaders: the job succeeds when every replica has succeeded. */
export function everyoneVerdict(states: readonly RoleState[]): Verdict {
  if (states.some((state) => state.failedForGood > 0)) return "failed";
  if (states.length > 0 && states.every(allSucceeded)) return "succeeded";
  return states.some((state) => state.active > 0) ? "running" : null;
}

export function allSucceeded(state: RoleState): boolean {
  return state.succeeded >= state.members;
}
