import { cutText } from "../../../runtime/cut-text.ts";
import { PROBLEM_CHARS_MAX } from "../../job/pod-problems.ts";
import type { Problem } from "../../pods/read/read-problem.ts";
import { startReasonOf } from "../../pods/read/start-problem.ts";
import type { Draft } from "../decision-draft.ts";

/**
 * Notes why pods of an admission cannot start. The note stays when a pod is made anew and shows no problem for a while:
 * the start timeout may end just then.
 */
export function noteStartProblem(draft: Draft, admission: number, problems: readonly Problem[]): void {
  if (draft.status.startProblem?.admission === admission) return;
  for (const problem of problems) {
    const reason = startReasonOf(problem);
    if (reason === null) continue;
    const message = cutText(`${problem.reason} (${problem.message})`, PROBLEM_CHARS_MAX);
    draft.status = { ...draft.status, startProblem: { admission, reason, message } };
    return;
  }
}

/** Forgets a problem once the gang has reached its minimum, or its admission is no longer live. */
export function forgetStartProblem(draft: Draft): void {
  const { startProblem, ...status } = draft.status;
  if (startProblem !== undefined) draft.status = status;
}
