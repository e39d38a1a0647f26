/**
 * Answers the question that users ask most: why does my job wait, where does it run, or why did it fail? In one
 * sentence, with the details behind it.
 */
import { cleanPodPolicyOf } from "../../core/job/clean-pod-policy.ts";
import { clusterWords } from "../../core/job/cluster-text.ts";
import { currentAdmission, type Job } from "../../core/job/job.ts";
import { problemsText } from "../../core/job/pod-problems.ts";
import type { ShownJob } from "../../core/job/request/list.ts";
import { memberCount } from "../../core/job/roles.ts";
import { isSetAside } from "../../core/job/set-aside.ts";
import { totalReplicas } from "../../core/job/spec.ts";
import { type Admission, isTerminal, type JobPhase } from "../../core/job/status.ts";
import { isService } from "../../core/kinds/kind.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { Refusal } from "../../core/plan/model/plan-types.ts";
import type { ExplainJobRequest } from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobReads } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { notFound } from "../rpc/rpc-error.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { phaseToProto } from "./convert-enums.ts";
import { toProtoAdmission, toProtoFailure } from "./convert-job.ts";
import { toProtoProblem } from "./convert-pods.ts";
import { toProtoClusterRefusal, toProtoQuotaRefusal } from "./convert-refusal.ts";
import { namespaceOf } from "./convert-sent.ts";
import { ownOf, refusalTo, sightOf, withoutOthers } from "./hide-others.ts";

/** Explains why a job waits, where it runs or why it failed, from its record and the cause of its last refusal. */
export async function explainJob(
  { reads, kinds }: { readonly reads: JobReads; readonly kinds: Registry },
  request: ExplainJobRequest,
  { signal, access }: CallContext,
) {
  const which = { namespace: namespaceOf(request), name: request.name };
  const shown = await reads.getJob(which);
  if (shown === null) throw notFound({ type: "job", name: `${which.namespace}/${which.name}` });
  const { tokens } = shown;
  const job = withoutOthers(shown.job, sightOf(access));
  const waits = job.status.phase === "WAITING";
  const found = waits && !isSetAside(job) ? await reads.refusalOf(job.uid, signal) : null;
  const refusal = found === null ? null : refusalTo(access, found.refusal, ownOf(job));
  const admission = currentAdmission(job);
  return {
    summary: summaryOf({ ...shown, job }, refusal, isService(kinds.kindOf(job.spec.kind))),
    phase: phaseToProto(job.status.phase),
    ...(waits ? placeOf(shown) : {}),
    reason: reasonOf(job, refusal),
    evaluatedAt: toTimestamp(found?.atMs ?? null),
    clusters: refusal?.clusters.map(toProtoClusterRefusal) ?? [],
    quotas: refusal?.quotas.map(toProtoQuotaRefusal) ?? [],
    admission: admission === null ? undefined : toProtoAdmission(admission, tokens),
    failure: job.status.failure === null ? undefined : toProtoFailure(job.status.failure),
    retryAt: toTimestamp(refusal?.retryAtMs ?? null),
    podProblems: job.status.podProblems?.problems.map(toProtoProblem) ?? [],
    draining: job.admissions.filter(needsCleanUp).map((undone) => toProtoAdmission(undone, [])),
  };
}

function placeOf({ job, position, effectivePriority }: ShownJob) {
  return { position: position ?? 0, effectivePriority: effectivePriority ?? job.spec.priority };
}

/** True while an admission that is over may hold tokens, or, if it was undone, may have objects in its cluster. */
function needsCleanUp(admission: Admission): boolean {
  if (admission.state === "live") return false;
  return admission.tokensReleasedMs === null || (admission.state === "undone" && admission.goneMs === null);
}

/** The phases of a job whose pods have to start. */
const BEFORE_RUNNING: readonly JobPhase[] = ["ADMITTED", "STARTING", "RESTARTING"];

function reasonOf(job: Job, refusal: Refusal | null): string {
  const { status } = job;
  if (isSetAside(job) && !isTerminal(status)) return "SetAside";
  if (status.phase === "WAITING") return refusal?.reason ?? status.waiting?.reason ?? "NotEvaluated";
  if (status.info?.phase === "WAITING_FOR_RESOURCES" && status.phase === "STARTING") return "WaitingForResources";
  const [problem] = status.podProblems?.problems ?? [];
  if (problem !== undefined && BEFORE_RUNNING.includes(status.phase)) return problem.reason;
  return status.failure?.code ?? status.conditions.findLast((condition) => condition.status === "True")?.reason ?? "";
}

/** Builds one sentence that needs no context. */
function summaryOf(shown: ShownJob, refusal: Refusal | null, hasNoPods: boolean): string {
  const { job } = shown;
  const name = `${job.namespace}/${job.name}`;
  const still = stillText(job);
  const deleted = job.deleteTimeMs === null ? "" : "; it is being deleted";
  const said = predicate(shown, refusal, hasNoPods);
  const more = `${asideText(job, said)}${preemptedText(job, said)}${still}${deleted}`;
  // A message may end with a full stop of its own.
  return more === "" ? `${name} ${said}` : `${name} ${said.replace(/\.$/, "")}${more}`;
}

/** Says that a job is set aside, why, and what to do, if that is not why it waits. */
function asideText({ status }: Job, said: string): string {
  const { setAside } = status;
  if (setAside === undefined || isTerminal(status) || said.includes(setAside.message)) return "";
  return `; ${setAside.message.replace(/^It/, "it").replace(/\.$/, "")}`;
}

const UNDONE = "is undone: ";

/** Says for whom a job was preempted, until it is admitted again: it may wait for something else by then. */
function preemptedText({ status }: Job, said: string): string {
  const condition = status.conditions.find(({ type, status }) => type === "Preempted" && status === "True");
  if (condition === undefined) return "";
  const { reason, message } = condition;
  const at = message.indexOf(UNDONE);
  const why = at >= 0 && message.endsWith(".") ? message.slice(at + UNDONE.length, -1) : message;
  return said.includes(why) ? "" : `; ${why} (${reason})`;
}

function stillText(job: Job): string {
  const cleaning = [...new Set(job.admissions.filter(needsCleanUp).map((admission) => admission.cluster))];
  if (cleaning.length === 0) return "";
  if (cleaning.includes(null)) {
    return `; the work that it started at its service is still being ended${failingText(job)}`;
  }
  if (leavesPods(job)) {
    const untilTheEnd = "run until they end by themselves (clean-pod policy None) and hold its tokens until then";
    return `; its pods on ${cleaning.join(", ")} ${untilTheEnd}; deleting the job ends them`;
  }
  return `; its pods on ${cleaning.join(", ")} are still being removed`;
}

/** True if the clean-pod policy lets running pods continue. */
function leavesPods({ status, spec, admissions, deleteTimeMs }: Job): boolean {
  const hasEnded = status.phase === "SUCCEEDED" || status.phase === "FAILED";
  const isWhole =
    deleteTimeMs === null && admissions.every((admission) => admission.state === "ended" || !needsCleanUp(admission));
  return hasEnded && isWhole && cleanPodPolicyOf({ spec, status }) === "None";
}

/** Says why the end takes long: calls of the plugin are repeated until they succeed. */
function failingText({ status: { plugin } }: Job): string {
  if (plugin === undefined || plugin.failedCalls === 0) return "";
  return `: ${plugin.stage} of its plugin has failed ${timesText(plugin.failedCalls)}${lastFailureText(plugin)}`;
}

function lastFailureText(plugin: Job["status"]["plugin"]): string {
  return plugin?.lastFailure === undefined ? "" : `, most recently: ${plugin.lastFailure}`;
}

function timesText(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

function countedText(count: number): string {
  return count === 1 ? "1 failure counted" : `${count} failures counted`;
}

function predicate(shown: ShownJob, refusal: Refusal | null, hasNoPods: boolean): string {
  const { job, position, effectivePriority } = shown;
  const { status, spec } = job;
  const task = hasNoPods ? taskText(job) : null;
  if (task !== null) return task;
  const admission = currentAdmission(job);
  const on = admission?.cluster ? ` on ${clusterWords({ ...admission, name: admission.cluster })}` : "";
  const problems = podProblemsText(status);
  const { queue, minAvailable } = spec.runPolicy.schedulingPolicy;
  switch (status.phase) {
    case "WAITING": {
      const place = position === null ? "" : `, position ${position}${agedText(job, effectivePriority ?? null)}`;
      const why = refusal?.message || status.waiting?.message || "the planner has not evaluated it yet";
      return `waits in queue ${queue}${place}: ${why}`;
    }
    case "ADMITTED":
      return `was admitted${on}; its pods are about to be created${problems}`;
    case "STARTING":
      return `starts${on}: ${podsOf(job)}, at least ${minAvailable} must run together${partText(job)}${problems}`;
    case "RUNNING":
      return `runs${on}: ${podsOf(job)}${partText(job)}${problems}`;
    case "RESTARTING":
      return `restarts failed pods${on}: ${podsOf(job)}, ${countedText(status.attempts.user)}${problems}`;
    case "SUSPENDED":
      return "is suspended: it is not admitted until it is resumed";
    case "SUCCEEDED":
      return `succeeded${on}`;
    case "FAILED":
      return `failed: ${failureText(job)}`;
    case "CANCELLED":
      return `was cancelled${job.cancel?.reason ? `: ${job.cancel.reason}` : ""}`;
  }
}

/** Says by how much a job's priority has grown: `, effective priority 12 (10, grown by 2)`. */
function agedText({ spec: { priority } }: Job, effective: number | null): string {
  if (effective === null || effective === priority) return "";
  return `, effective priority ${effective} (${priority}, grown by ${effective - priority})`;
}

/** Describes a job without pods by its plugin's last report. Null: the job is not at its service now. */
function taskText({ status }: Job): string | null {
  const verb = { ADMITTED: "was admitted", STARTING: "starts", RUNNING: "runs", RESTARTING: "restarts" }[
    status.phase as string
  ];
  if (verb === undefined) return null;
  const { info, plugin, attempts } = status;
  const said = info === undefined ? "its plugin has not reported yet" : info.phase.toLowerCase().replaceAll("_", " ");
  const why = info?.reason ? `: ${info.reason}` : "";
  const failed = plugin?.failedCalls ?? 0;
  const since = failed === 0 ? "" : `; since then its plugin has failed ${timesText(failed)}${lastFailureText(plugin)}`;
  const counted = attempts.user + attempts.system;
  return `${verb} at its service: ${said}${why}${since}${counted === 0 ? "" : `, ${countedText(counted)}`}`;
}

/** Says what a part of a gang does until it has the other members. */
function partText(job: Job): string {
  const { partial, members = {} } = currentAdmission(job) ?? {};
  if (partial === undefined) return "";
  const all = totalReplicas(job.spec);
  const part = `; it has ${memberCount(members)} of ${all} members`;
  return partial === "KEEP"
    ? `${part}, is told ${all}, and waits for the others (partial KEEP)`
    : `${part}, is told its own number, and restarts with all once they fit (partial RESTART)`;
}

function podsOf(job: Job): string {
  const members = memberCount(currentAdmission(job)?.members ?? {});
  const counts = Object.values(job.status.replicaStatuses);
  const active = counts.reduce((sum, count) => sum + count.active, 0);
  const succeeded = counts.reduce((sum, count) => sum + count.succeeded, 0);
  return `${active} of ${members} pods active${succeeded > 0 ? `, ${succeeded} succeeded` : ""}${returnedText(job)}`;
}

/** Says how many members hold no tokens any more. */
function returnedText(job: Job): string {
  const count = Object.values(currentAdmission(job)?.returned ?? {}).flat().length;
  return count === 0
    ? ""
    : `, ${count} ${count === 1 ? "has ended and gave back its" : "have ended and gave back their"} tokens`;
}

/** Why pods do not run. */
function podProblemsText({ podProblems }: Job["status"]): string {
  return podProblems === undefined ? "" : `; ${problemsText(podProblems.problems)}`;
}

function failureText(job: Job): string {
  const { failure } = job.status;
  if (failure === null) return "no reason was recorded";
  const whose = failure.kind === "USER" ? "the program's failure" : "the system's failure";
  return `${failure.code} (${whose}): ${failure.message}`;
}
