import { invariant } from "../../runtime/assert.ts";
import { thrownText } from "../../runtime/thrown-text.ts";
import type { Job } from "../job/job.ts";
import { isTerminal } from "../job/status.ts";
import { kindOf } from "../kinds/registry.ts";
import type { Decision } from "./decision.ts";
import { finishDraft, type ReconcileConfig, reasonOf, startDraft } from "./draft.ts";
import { failedCall } from "./failed-call.ts";
import { finish } from "./finish.ts";
import { NO_STATE } from "./service.ts";

/**
 * What comes of a kind of pods that throws instead of saying how its gang is made or doing. It is asked again with backoff, and fails its job
 * with the system's budget; what runs is taken away then without it. A job that has ended asks its kind nothing, so its own error is thrown on.
 */
export function kindFailed(
  job: Job,
  error: unknown,
  { nowMs, config }: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = kindOf(job.spec.kind);
  if (kind === undefined || isTerminal(job.status)) throw error;
  const known = job.status.plugin;
  const draft = startDraft(job);
  if (known !== undefined && nowMs < known.notBeforeMs) {
    draft.recheckAtMs.push(known.notBeforeMs);
    return finishDraft(draft, job);
  }
  const failed = failedCall(known?.failedCalls ?? 0, thrownText(error), nowMs);
  const { failedCalls, lastFailure, notBeforeMs } = failed;
  const admission = job.admissions.at(-1)?.number ?? 0;
  const plugin = { admission, attempt: 1, stage: "handle", state: NO_STATE, ...failed } as const;
  draft.status = { ...draft.status, plugin };
  const message = `The kind ${job.spec.kind} failed: ${lastFailure}`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, "PluginFailed"), message });
  draft.recheckAtMs.push(notBeforeMs);
  const limit = Math.max(job.spec.runPolicy.systemBackoffLimit, 1);
  if (failedCalls >= limit) {
    const ended = `${job.spec.kind} ${job.name} has failed because its kind failed ${failedCalls} times (last: ${message}).`;
    const failure = { code: "PluginFailed", kind: "SYSTEM", message: ended, container: null, exitCode: null } as const;
    finish(
      draft,
      { job, kind, observed: [], nowMs, config, refused: null },
      { phase: "FAILED", failure, message: ended },
    );
  }
  const decision = finishDraft(draft, job);
  invariant(decision.record !== null, "a failure is recorded");
  return decision;
}
