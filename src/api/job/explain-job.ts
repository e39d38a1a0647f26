/**
 * Answers the question that users ask most: why does my job wait, where does it run, or why did it fail? In one
 * sentence, with the details behind it.
 */
import { cleanPodPolicyOf } from "../../core/job/clean-pod-policy.ts";
import { clusterWords } from "../../core/job/cluster-text.ts";
import { newestAttempts } from "../../core/job/failure-logs/kept-logs.ts";
import { currentAdmission, isMoving, type Job } from "../../core/job/job.ts";
import { problemsText } from "../../core/job/pod-problems.ts";
import { type Concern, concernsOf, isSilence } from "../../core/job/request/concerns.ts";
import type { ShownJob } from "../../core/job/request/list.ts";
import { memberCount } from "../../core/job/roles.ts";
import { isSetAside } from "../../core/job/set-aside.ts";
import { totalReplicas } from "../../core/job/spec.ts";
import { type Admission, type Attempts, isTerminal, type JobPhase } from "../../core/job/status.ts";
import { isService } from "../../core/kinds/kind.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import { growsNoMore } from "../../core/plan/model/plan-gang.ts";
import type { Refusal } from "../../core/plan/model/plan-types.ts";
import { NODE_SILENT } from "../../core/pods/read/read-problem.ts";
import type { ExplainJobRequest } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JobReads, SimulateJob } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { notFound } from "../rpc/rpc-error.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { phaseToProto } from "./convert-enums.ts";
import { toProtoAdmission, toProtoConcern, toProtoFailure } from "./convert-job.ts";
import { toProtoProblem } from "./convert-pods.ts";
import { toProtoClusterRefusal, toProtoQuotaRefusal } from "./convert-refusal.ts";
import { namespaceOf } from "./convert-sent.ts";
import { growthText } from "./explain-growth.ts";
import { moveText } from "./explain-move.ts";
import { placementText } from "./explain-placement.ts";
import { shownFailureLogs } from "./failure-logs.ts";
import { ownOf, refusalTo, sightOf, withoutOthers } from "./hide-others.ts";

type ExplainPorts = {
  readonly reads: JobReads;
  readonly kinds: Registry;
  readonly simulate: SimulateJob;
  readonly clock: Pick<Clock, "nowMs">;
};

/** Explains why a job waits, where it runs or why it failed, from its record and the cause of its last refusal. */
export async function explainJob(
  { reads, kinds, simulate, clock }: ExplainPorts,
  request: ExplainJobRequest,
  { signal, access }: CallContext,
) {
  const which = { namespace: namespaceOf(request), name: request.name };
  const shown = await reads.getJob(which);
  if (shown === null) throw notFound({ type: "job", name: `${which.namespace}/${which.name}` });
  const { tokens } = shown;
  const job = withoutOthers(shown.job, sightOf(access));
  const waits = job.status.phase === "WAITING";
  const concerns = concernsOf(job, await reads.silentClusters());
  const found = waits && !isSetAside(job) ? await reads.refusalOf(job.uid, signal) : null;
  const refusal = found === null ? null : refusalTo(access, found.refusal, ownOf(job));
  const admission = currentAdmission(job);
  const kind = kinds.kindOf(job.spec.kind);
  const beside = await besideTexts(shown.job, { reads, simulate, kind, access, signal });
  const facts = { hasNoPods: isService(kind), ...beside, nowMs: clock.nowMs() };
  const failureLogs = await shownFailureLogs(reads, job, { access, choose: newestAttempts });
  return {
    summary: summaryOf({ ...shown, job, concerns }, refusal, facts),
    phase: phaseToProto(job.status.phase),
    ...(waits ? placeOf(shown) : {}),
    reason: reasonOf({ job, concerns }, refusal),
    evaluatedAt: toTimestamp(found?.atMs ?? null),
    clusters: refusal?.clusters.map(toProtoClusterRefusal) ?? [],
    quotas: refusal?.quotas.map(toProtoQuotaRefusal) ?? [],
    admission: admission === null ? undefined : toProtoAdmission(admission, tokens),
    failure: job.status.failure === null ? undefined : toProtoFailure(job.status.failure),
    retryAt: toTimestamp(refusal?.retryAtMs ?? null),
    concerns: concerns.map(toProtoConcern),
    podProblems: job.status.podProblems?.problems.map(toProtoProblem) ?? [],
    draining: job.admissions.filter(needsCleanUp).map((undone) => toProtoAdmission(undone, [])),
    ...failureLogs,
  };
}

/** What an admitted job says beside its phase: each text is empty if there is nothing of its kind. */
async function besideTexts(
  job: Job,
  of: Pick<ExplainPorts, "reads"> & Parameters<typeof growthText>[1],
): Promise<Pick<SummaryFacts, "growth" | "move" | "placement">> {
  const growth = isMoving(job) ? "" : await growthText(job, of);
  return { growth, move: await moveText(job, of), placement: await placementText(of.reads, job) };
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

function reasonOf(
  { job, concerns }: { readonly job: Job; readonly concerns: readonly Concern[] },
  refusal: Refusal | null,
): string {
  const { status } = job;
  if (isSetAside(job) && !isTerminal(status)) return "SetAside";
  const silence = awaitsCluster(job, refusal) ? silentReason(job, concerns) : null;
  if (silence !== null) return silence;
  if (status.phase === "WAITING") return refusal?.reason ?? status.waiting?.reason ?? "NotEvaluated";
  return runningReason(job);
}

/** The reason of a job whose pods nobody hears of. Null: they are heard of, or it has ended. */
function silentReason(job: Job, concerns: readonly Concern[]): string | null {
  if (isTerminal(job.status)) return null;
  const silence = concerns.find(isSilence);
  if (silence !== undefined) return silence.reason;
  return job.status.phase === "WAITING" && hasSilentNode(job) ? NODE_SILENT : null;
}

function runningReason({ status }: Job): string {
  if (status.info?.phase === "WAITING_FOR_RESOURCES" && status.phase === "STARTING") return "WaitingForResources";
  const [problem] = status.podProblems?.problems ?? [];
  if (problem !== undefined && BEFORE_RUNNING.includes(status.phase)) return problem.reason;
  return status.failure?.code ?? status.conditions.findLast((condition) => condition.status === "True")?.reason ?? "";
}

/** True for a job with pods, and for one that waits for nothing but the end of pods of an earlier admission. */
function awaitsCluster(job: Job, refusal: Refusal | null): boolean {
  if (job.status.phase !== "WAITING") return true;
  const reason = refusal?.reason ?? job.status.waiting?.reason ?? "";
  return ["Draining", "Backoff"].includes(reason) && job.admissions.some(needsCleanUp);
}

function hasSilentNode({ status }: Job): boolean {
  return status.podProblems?.problems.some(({ reason }) => reason === NODE_SILENT) === true;
}

type SummaryFacts = {
  readonly hasNoPods: boolean;
  readonly growth: string;
  /** Why it has not left a lost cluster. Empty: it is not to leave one. */
  readonly move: string;
  /** About pods that are not on their planned nodes. Empty: all are. */
  readonly placement: string;
  readonly nowMs: number;
};

/** Builds one sentence that needs no context. */
function summaryOf(shown: ShownJob, refusal: Refusal | null, facts: SummaryFacts): string {
  const { job, concerns = [] } = shown;
  const name = `${job.namespace}/${job.name}`;
  const still = stillText(job);
  const said = predicate(shown, refusal, facts);
  const concerned = [...concerns.map(({ message }) => message), facts.move, facts.placement]
    .filter((text) => text !== "")
    .map((text) => `; ${text}`)
    .join("");
  const more = `${asideText(job, said)}${preemptedText(job, said)}${still}${concerned}`;
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

/** `2 failures of its program and 1 of the system counted, the last 3m ago: OOMKilled (…)`. */
function countedText({ user, system, last }: Attempts, nowMs: number): string {
  const counts = [
    { count: user, whose: "of its program" },
    { count: system, whose: "of the system" },
  ].filter(({ count }) => count > 0);
  if (counts.length === 0) return "no failure counted yet";
  const [first, second] = counts.map(({ count, whose }) => ({ count, text: `${count} ${failures(count)} ${whose}` }));
  const both = second === undefined ? "" : ` and ${second.text.replace(/ failures? /, " ")}`;
  const why = last === undefined ? "" : `, the last ${agoText(nowMs - last.atMs)}: ${last.code} (${last.message})`;
  return `${first?.text}${both} counted${why}`;
}

function failures(count: number): string {
  return count === 1 ? "failure" : "failures";
}

function agoText(spanMs: number): string {
  return `${Math.max(0, Math.round(spanMs / 1000))} s ago`;
}

/** Says when the next of the failed pods starts. Empty: none waits for its time. */
function nextStartText({ notBeforeMs }: Attempts, nowMs: number): string {
  const later = Object.entries(notBeforeMs).filter(([, atMs]) => atMs > nowMs);
  const [first] = later.sort(([, a], [, b]) => a - b);
  if (first === undefined) return "";
  const others = later.length === 1 ? "" : `, ${later.length - 1} more later`;
  return `; ${first[0]} starts again at ${new Date(first[1]).toISOString()}${others}`;
}

/** The failures of a job that runs while failed pods wait for their next start. */
function restartText(attempts: Attempts, nowMs: number): string {
  return nextStartText(attempts, nowMs) === "" ? "" : `, ${failuresText(attempts, nowMs)}`;
}

function failuresText(attempts: Attempts, nowMs: number): string {
  return `${countedText(attempts, nowMs)}${nextStartText(attempts, nowMs)}`;
}

function predicate(shown: ShownJob, refusal: Refusal | null, { hasNoPods, growth, nowMs }: SummaryFacts): string {
  const { job, position, effectivePriority } = shown;
  const { status, spec } = job;
  const task = hasNoPods ? taskText(job, nowMs) : null;
  if (task !== null) return task;
  const admission = currentAdmission(job);
  const on = admission?.cluster ? ` on ${clusterWords({ ...admission, name: admission.cluster })}` : "";
  const problems = podProblemsText(status);
  const part = `${partText(job)}${growth}`;
  const { queue, minAvailable } = spec.runPolicy.schedulingPolicy;
  switch (status.phase) {
    case "WAITING": {
      const place = position === null ? "" : `, position ${position}${agedText(job, effectivePriority ?? null)}`;
      const why = refusal?.message || status.waiting?.message || "the planner has not evaluated it yet";
      return `waits in queue ${queue}${place}: ${why}${problems}`;
    }
    case "ADMITTED":
      return `was admitted${on}; its pods are about to be created${problems}`;
    case "STARTING":
      return `starts${on}: ${podsOf(shown)}, at least ${minAvailable} must run together${part}${problems}`;
    case "RUNNING":
      return `runs${on}: ${podsOf(shown)}${restartText(status.attempts, nowMs)}${part}${problems}`;
    case "RESTARTING":
      return `restarts failed pods${on}: ${podsOf(shown)}, ${failuresText(status.attempts, nowMs)}${problems}`;
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
function taskText({ status }: Job, nowMs: number): string | null {
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
  return `${verb} at its service: ${said}${why}${since}${counted === 0 ? "" : `, ${countedText(attempts, nowMs)}`}`;
}

/** Says what a part of a gang does until it has the other members. */
function partText(job: Job): string {
  const { partial, members = {} } = currentAdmission(job) ?? {};
  if (partial === undefined) return "";
  const all = totalReplicas(job.spec);
  const part = `; it has ${memberCount(members)} of ${all} members`;
  if (partial === "KEEP") return `${part}, is told ${all}, and waits for the others (partial KEEP)`;
  const grows = growsNoMore(job)
    ? "does not grow: members that have ended would run again"
    : "restarts with all once they fit";
  return `${part}, is told its own number, and ${grows} (partial RESTART)`;
}

function podsOf({ job, tokens }: ShownJob): string {
  const members = memberCount(currentAdmission(job)?.members ?? {});
  const counts = Object.values(job.status.replicaStatuses);
  const active = counts.reduce((sum, count) => sum + count.active, 0);
  const succeeded = counts.reduce((sum, count) => sum + count.succeeded, 0);
  const up = `${active} of ${members} pods active${succeeded > 0 ? `, ${succeeded} succeeded` : ""}`;
  return `${up}${returnedText(job, tokens)}`;
}

/** Says how many members hold no tokens any more, and which tokens the others hold. */
function returnedText(job: Job, tokens: ShownJob["tokens"]): string {
  const count = Object.values(currentAdmission(job)?.returned ?? {}).flat().length;
  if (count === 0) return "";
  const back = count === 1 ? "has ended and gave back its" : "have ended and gave back their";
  const held = [...Map.groupBy(tokens, ({ pool }) => pool)].map(([pool, own]) => {
    return `${own.reduce((sum, { amount }) => sum + amount, 0)} of ${pool}`;
  });
  return `, ${count} ${back} tokens, so the job holds ${held.join(", ") || "none"} now`;
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
