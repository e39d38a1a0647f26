/**
 * Decides when a job ends without a request: at its deadline, by the verdict of its kind, if its cluster refuses a pod
 * for good, or if a budget of failures is spent. It serves users who must see why their job failed, and which pods
 * failed it.
 */

import { isInterruptible } from "../job/interruptible.ts";
import type { Attempts, Failure, GangAdmission } from "../job/status.ts";
import type { KindRules } from "../kinds/kind-rules.ts";
import { POD_BYTES_MAX } from "../pods/pod-size.ts";
import type { Slot } from "./arrange-gang.ts";
import { countFailures, roleStates } from "./count-failures.ts";
import { type Draft, type Inputs, reasonOf } from "./decision-draft.ts";
import { failureWithoutPod, finishJob } from "./finish-job.ts";
import type { SlotFailure } from "./member-ends.ts";
import type { TooLargePod } from "./objects/sync-objects.ts";
import { gangState } from "./rules/kind-rules.ts";
import { keepEnds } from "./rules/work-parts.ts";

/** How many pods a message names. */
const NAMES_MAX = 5;

type Ending = {
  readonly admission: GangAdmission;
  readonly slots: readonly Slot[];
  readonly failures: readonly SlotFailure[];
};

/**
 * Ends the job if its kind's verdict on the replicas is an end, or if a failure is permanent. Returns true if it did.
 */
export function endByVerdict(draft: Draft, inputs: Inputs, of: Ending): boolean {
  const { job, kind } = inputs;
  if (kind.rules !== undefined) return endByRules(draft, inputs, { ...of, rules: kind.rules });
  const verdict = kind.verdict(roleStates(of.slots, of.failures, inputs), job.spec.kindSpec);
  if (verdict === "succeeded") {
    finishJob(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} successfully completed.` });
    return true;
  }
  // A pod that would fail again in the same way ends every job, even if the kind forgives failures.
  const ended = verdict === "failed" || of.failures.some(({ failure }) => failure.permanent);
  if (ended) failForGood(draft, inputs, of.failures);
  return ended;
}

/** The same for a kind with rules of its own. */
function endByRules(draft: Draft, inputs: Inputs, of: Ending & { readonly rules: KindRules }): boolean {
  const { job, nowMs } = inputs;
  const { admission, slots, failures, rules } = of;
  const { attempts, last } = countFailures(slots, failures, inputs);
  const verdict = rules.judge(gangState(slots, { rules, job, admission, nowMs, attempts, failures }));
  const isEnd = verdict?.kind === "succeeded" || verdict?.kind === "failed";
  if (isEnd) keepEnds(draft, inputs, { slots, failures, rules });
  if (verdict?.kind === "succeeded") {
    const message = `${job.spec.kind} ${job.name} successfully completed: ${verdict.message}.`;
    finishJob(draft, inputs, { phase: "SUCCEEDED", message });
    return true;
  }
  if (verdict?.kind === "failed") {
    draft.status = { ...draft.status, attempts };
    const why = `${verdict.message}${last === null ? "" : ` (last: ${last.message})`}`;
    const message = `${job.spec.kind} ${job.name} has failed: ${why}.`;
    const { container = null, exitCode = null } = last ?? {};
    const failure: Failure = { code: verdict.code, kind: "USER", message, container, exitCode };
    finishJob(draft, inputs, { phase: "FAILED", failure, message });
    return true;
  }
  const permanent = failures.filter(({ failure }) => failure.permanent);
  if (permanent.length === 0) return false;
  failForGood(
    draft,
    inputs,
    permanent.map((one) => ({ ...one, retried: false })),
  );
  return true;
}

/** Ends the job if its cluster has refused a pod for good and the job still needs that pod. Returns true if it did. */
export function endByRefusal(
  draft: Draft,
  inputs: Inputs,
  { admission, slots }: { readonly admission: GangAdmission; readonly slots: readonly Slot[] },
): boolean {
  const { job, refused } = inputs;
  if (refused === null || refused.code === null || refused.admission !== admission.number) return false;
  const wanted = slots.some(
    ({ name, attempt, pod }) => name === refused.name && attempt === refused.attempt && pod === null,
  );
  if (!wanted) return false;
  const { code } = refused;
  const message =
    `${job.spec.kind} ${job.name} has failed because ${admission.cluster} refuses pod ${refused.name}: ` +
    refused.message;
  finishJob(draft, inputs, { phase: "FAILED", failure: failureWithoutPod(code, message), message });
  return true;
}

/** Fails a job with a pod that no API server would read. The pod was measured and not built. */
export function endBySize(draft: Draft, inputs: Inputs, { name, bytes }: TooLargePod): void {
  const { kind } = inputs.job.spec;
  const message =
    `${kind} ${inputs.job.name} has failed because pod ${name} would have ${bytes} bytes of JSON, with its ` +
    `placeholders filled in: at most ${POD_BYTES_MAX} are allowed.`;
  finishJob(draft, inputs, { phase: "FAILED", failure: failureWithoutPod("EntityTooLarge", message), message });
}

/** Counts the new failures, and fails the job if they use up a budget. Returns true if they did. */
export function endByBudget(
  draft: Draft,
  inputs: Inputs,
  of: { readonly slots: readonly Slot[]; readonly failures: readonly SlotFailure[] },
): boolean {
  const { job } = inputs;
  const { backoffLimit, systemBackoffLimit } = job.spec.runPolicy;
  const before = draft.status.attempts;
  const { attempts, last } = countFailures(of.slots, of.failures, inputs);
  draft.status = { ...draft.status, attempts };
  noteInterruptibleEnd(draft, inputs, before);
  const spent = attempts.user > before.user && backoffLimit !== null && attempts.user >= backoffLimit;
  const spentBySystem = attempts.system > before.system && attempts.system >= systemBackoffLimit;
  if (!spent && !spentBySystem) return false;
  const why = last === null ? "" : ` (last: ${last.message})`;
  const what = spent ? "backoff limit" : "system backoff limit";
  const message = `${job.spec.kind} ${job.name} has failed because it has reached the specified ${what}${why}.`;
  const failure: Failure = {
    code: spent ? "BackoffLimitExceeded" : "SystemBackoffLimitExceeded",
    kind: spent ? "USER" : "SYSTEM",
    message,
    container: last?.container ?? null,
    exitCode: last?.exitCode ?? null,
    limit: true,
  };
  finishJob(draft, inputs, { phase: "FAILED", failure, message });
  return true;
}

/** `2 Worker replica(s) failed: j-worker-0, j-worker-1`. */
export function failedText(role: string, failures: readonly SlotFailure[]): string {
  const names = failures.slice(0, NAMES_MAX).map(({ pod }) => pod.name);
  const more = failures.length > names.length ? ` and ${failures.length - names.length} more` : "";
  return `${failures.length} ${role} replica(s) failed: ${names.join(", ")}${more}`;
}

function failForGood(draft: Draft, inputs: Inputs, failures: readonly SlotFailure[]): void {
  const { job } = inputs;
  const permanent = failures.filter(({ retried }) => !retried);
  const first = permanent.find(({ failure }) => failure.permanent) ?? permanent[0];
  const role = first?.slot.role ?? "";
  const own = permanent.filter(({ slot }) => slot.role === role);
  const message = `${job.spec.kind} ${job.name} has failed because ${failedText(role, own)}.`;
  finishJob(draft, inputs, { phase: "FAILED", failure: recordedFailure(first, message), message });
}

function recordedFailure(first: SlotFailure | undefined, message: string): Failure {
  if (first === undefined) return failureWithoutPod("PodFailed", message);
  const { failure } = first;
  return {
    code: failure.code,
    kind: failure.kind,
    message: failure.message,
    container: failure.container,
    exitCode: failure.exitCode,
  };
}

/** Adds an event, once, when system failures make later attempts of the job not interruptible. */
function noteInterruptibleEnd(draft: Draft, { job }: Inputs, before: Attempts): void {
  const { attempts } = draft.status;
  if (!isInterruptible(job.spec, before) || isInterruptible(job.spec, attempts)) return;
  const message =
    `${job.spec.kind} ${job.name} is no longer interruptible: ` +
    `the system has failed it ${attempts.system} time(s).`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "NotInterruptible"), message });
}
