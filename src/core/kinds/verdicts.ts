import type { RoleState, Verdict } from "./kind.ts";

/** Who decides over success, and when it has succeeded. */
export type Leadership = {
  readonly leads: (state: RoleState) => boolean;
  readonly done: (state: RoleState) => boolean;
};

/**
 * The verdict where some replica types lead: their end is the job's. Types are judged in order, success before failure within one, and the
 * first final word counts, so that a job never both succeeds and fails. Source: Kubeflow's UpdateJobStatus of PyTorchJob and TFJob.
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

/** The verdict where nobody leads: the job succeeds when every replica has. */
export function everyoneVerdict(states: readonly RoleState[]): Verdict {
  if (states.some((state) => state.failedForGood > 0)) return "failed";
  if (states.length > 0 && states.every(allSucceeded)) return "succeeded";
  return states.some((state) => state.active > 0) ? "running" : null;
}

export function allSucceeded(state: RoleState): boolean {
  return state.succeeded >= state.members;
}
