import { invariant } from "../../../runtime/assert.ts";
import { thrownText } from "../../../runtime/thrown-text.ts";
import type { Job } from "../../job/job.ts";
import { isTerminal } from "../../job/status.ts";
import type { Decision } from "../decision.ts";
import { finishDraft, type ReconcileConfig, reasonOf, startDraft } from "../decision-draft.ts";
import { finishJob } from "../finish-job.ts";
import { failedCall, NO_STATE } from "./plugin-job.ts";

/**
 * Decides about a job whose kind, a plugin that makes pods, has thrown an error. The kind is called again with backoff.
 * Once the system budget is spent the job fails, and its pods are deleted without asking the kind. A job that has ended
 * does not call its kind, so there the error is ours and is thrown again.
 */
export function kindFailed(
  job: Job,
  error: unknown,
  { nowMs, config }: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = config.kinds.kindOf(job.spec.kind);
  if (kind === undefined || isTerminal(job.status)) throw error;
  const known = job.status.plugin;
  const draft = startDraft(job);
  if (known !== undefined && nowMs < known.notBeforeMs) {
    draft.recheckAtMs.push(known.notBeforeMs);
    return finishDraft(draft, job, nowMs);
  }
  const failed = failedCall(known?.failedCalls ?? 0, thrownText(error), nowMs);
  const { failedCalls, lastFailure, notBeforeMs } = failed;
  const admission = job.admissions.at(-1)?.number ?? 0;
  const plugin = { admission, attempt: 1, stage: "handle", state: NO_STATE, ...failed } as const;
  draft.status = { ...draft.status, plugin };
  const message = `The kind ${job.spec.kind} failed: ${lastFailure}`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, "PluginFailed"), message });
  draft.recheckAtMs.push(notBeforeMs);
  const limit = job.spec.runPolicy.systemBackoffLimit;
  if (failedCalls >= limit) {
    const why = `its kind failed ${failedCalls} times (last: ${message})`;
    const ended = `${job.spec.kind} ${job.name} has failed because ${why}.`;
    const failure = { code: "PluginFailed", kind: "SYSTEM", message: ended, container: null, exitCode: null } as const;
    finishJob(
      draft,
      { job, kind, observed: [], nowMs, config, refused: null, placement: null },
      { phase: "FAILED", failure, message: ended },
    );
  }
  const decision = finishDraft(draft, job, nowMs);
  invariant(decision.record !== null, "a failure is recorded");
  return decision;
}
