/** Says in short words how a job is. Pure, so that the command line and the console say the same. */
import {
  type Admission,
  CleanPodPolicy,
  type Job,
  JobPhase,
  JobPhaseSchema,
  PartialPolicy,
  type PodProblem,
  type TaskInfo,
  TaskPhaseSchema,
  type Token,
} from "../../gen/gangway/v1/job_pb.ts";

export const TERMINAL: readonly number[] = [JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.CANCELLED];

/** The phases of a job that has not ended. */
export const NOT_ENDED: readonly JobPhase[] = [
  JobPhase.WAITING,
  JobPhase.ADMITTED,
  JobPhase.STARTING,
  JobPhase.RUNNING,
  JobPhase.RESTARTING,
  JobPhase.SUSPENDED,
];

/** WAITING, RUNNING, …; `PHASE_12` for a phase of a newer service that this program does not know. */
export function phaseWord(phase: number): string {
  return JobPhaseSchema.values.find((value) => value.number === phase)?.localName ?? `PHASE_${phase}`;
}

/** `3/4`: pods that run or have succeeded and still exist, of all pods; `-` for a job without pods. */
export function podsCell(job: Job): string {
  if (job.status?.totalReplicas === 0) return "-";
  return `${upCount(job)}/${job.status?.totalReplicas ?? 0}`;
}

/** Of an ended job, the pods that its clean-pod policy leaves. */
function upCount({ metadata, status }: Job): number {
  const { phase = 0, replicaStatuses = {}, cleanPodPolicy, admission } = status ?? {};
  const counts = Object.values(replicaStatuses);
  const succeeded = counts.reduce((sum, count) => sum + count.succeeded, 0);
  const active = counts.reduce((sum, count) => sum + count.active, 0);
  if (!TERMINAL.includes(phase)) return active + succeeded;
  const isGone = admission?.goneTime !== undefined || metadata?.deleteTime !== undefined;
  if (isGone || cleanPodPolicy === CleanPodPolicy.ALL) return 0;
  const leavesActive = cleanPodPolicy === CleanPodPolicy.NONE && phase !== JobPhase.CANCELLED;
  const activeAtEnd = counts.reduce((sum, count) => sum + count.activeAtEnd, 0);
  return leavesActive ? active + succeeded : succeeded - activeAtEnd;
}

/** In these phases the last report of a plugin is outdated. */
const STOPPED_PHASES: readonly number[] = [JobPhase.CANCELLED, JobPhase.SUSPENDED];

/** Why the job waits or failed, or the report of its plugin for a job without pods; and which tokens it holds still. */
export function reasonCell(job: Job): string {
  return [ownReason(job), drainingText(job), returnedText(job)].filter((text) => text !== "").join("; ");
}

function drainingText({ metadata, status }: Job): string {
  if (status?.draining !== true) return "";
  const hasEnded = status.phase === JobPhase.SUCCEEDED || status.phase === JobPhase.FAILED;
  const keepsPods = status.cleanPodPolicy === CleanPodPolicy.NONE && metadata?.deleteTime === undefined;
  if (hasEnded && keepsPods)
    return "draining: its pods run on and hold its tokens until they end; delete it to end them";
  return "draining: pods that are being removed hold its tokens";
}

/** `3 ended pods gave back their tokens, holds 2 gpu/h100`, while the others run. */
function returnedText({ status }: Job): string {
  const count = TERMINAL.includes(status?.phase ?? 0) ? 0 : returnedCount(status?.admission);
  if (count === 0) return "";
  const held = tokensText(status?.admission?.tokens ?? []);
  const back = `${count} ended ${count === 1 ? "pod gave back its" : "pods gave back their"} tokens`;
  return held === "" ? back : `${back}, holds ${held}`;
}

/** A gang that restarts as it grows does not grow any more after members gave back their tokens. */
function growsNoMore(admission: Admission): boolean {
  return admission.partial === PartialPolicy.RESTART && returnedCount(admission) > 0;
}

/** How many members of an admission gave back their tokens. */
export function returnedCount(admission: Pick<Admission, "returned"> | undefined): number {
  return Object.values(admission?.returned ?? {}).reduce((sum, count) => sum + count, 0);
}

/** Why a job is as it is. */
export type JobReason = {
  /** CamelCase, such as NoCapacity. Empty: `message` says it all. */
  readonly reason: string;
  readonly message: string;
  /** Its place in its queue, from 1. 0: it has none, or none was computed. */
  readonly position: number;
};

/** Null: its phase says all. */
export function jobReason(job: Job): JobReason | null {
  const { waiting, failure, phase = 0, podProblems = [], conditions = [], concerns = [] } = job.status ?? {};
  const because = (reason: string, message: string, position = 0) => ({ reason, message, position });
  const [concern] = concerns;
  if (concern !== undefined) return because(concern.reason, concern.message);
  const aside = conditions.find(({ type, status }) => type === "SetAside" && status === "True");
  if (aside !== undefined && !TERMINAL.includes(phase)) return because("SetAside", aside.message);
  if (failure !== undefined) return because(failure.code, failure.message);
  if (podProblems.length > 0) return problemOf(podProblems);
  if (waiting !== undefined) return because(waiting.reason, waiting.message, waiting.position);
  if (STOPPED_PHASES.includes(phase)) return null;
  const text = job.status?.totalReplicas === 0 ? taskCell(job.status.info) : growthCell(job);
  return text === "" ? null : because("", text);
}

function ownReason(job: Job): string {
  const why = jobReason(job);
  if (why === null) return "";
  const place = why.position > 0 ? `#${why.position} ` : "";
  return place + (why.reason === "" ? why.message : sentence(why.reason, why.message));
}

/** Says of a gang that was admitted in part to how many pods it would grow. */
function growthCell({ status }: Job): string {
  const { phase = 0, admission, totalReplicas = 0 } = status ?? {};
  if (admission === undefined || TERMINAL.includes(phase) || growsNoMore(admission)) return "";
  const members = Object.values(admission.members).reduce((sum, count) => sum + count, 0);
  if (members === 0 || members >= totalReplicas) return "";
  const all = `it has ${members} of ${totalReplicas} pods`;
  return `${all}, and grows once others fit, without preempting; explain says what is in the way`;
}

/** `Unschedulable (4 pods)`, and why most of the pods that do not run are stuck. */
function problemOf(problems: readonly PodProblem[]): JobReason {
  const [{ reason = "", message = "" } = {}] = problems;
  const pods = problems.filter((one) => one.reason === reason).reduce((sum, one) => sum + one.pods, 0);
  const counted = `${reason} (${pods} ${pods === 1 ? "pod" : "pods"})`;
  return { reason: counted, message: withoutCounts(message), position: 0 };
}

/** Why a pod does not run, without the beginning that schedulers always write: the end of a narrow line is cut. */
export function podSentence(reason: string, message: string): string {
  return sentence(reason, withoutCounts(message));
}

function withoutCounts(message: string): string {
  return message.replace(/^0\/\d+ nodes are (un)?available: /, "");
}

/** `running: 3 of 7 parts`: the progress of a job that runs at an external service. */
function taskCell(info: TaskInfo | undefined): string {
  return info === undefined ? "" : sentence(taskPhaseWord(info.phase), info.reason);
}

/** `waiting for resources`, `running`, …; `phase 12` for a phase that this program does not know. */
function taskPhaseWord(phase: number): string {
  const name = TaskPhaseSchema.values.find((value) => value.number === phase)?.localName;
  if (name === "UNSPECIFIED") return "unknown";
  return name?.toLowerCase().replaceAll("_", " ") ?? `phase ${phase}`;
}

function sentence(reason: string, message: string): string {
  return message === "" ? reason : `${reason}: ${message}`;
}

export function queueOf(job: Job): string {
  return job.spec?.runPolicy?.schedulingPolicy?.queue ?? "";
}

/** The tokens of an admission, one amount for each pool: `8 gpu/h100, 2 gpu/a100`. */
export function tokensText(tokens: readonly Pick<Token, "pool" | "amount">[]): string {
  const sums = new Map<string, bigint>();
  for (const { pool, amount } of tokens) sums.set(pool, (sums.get(pool) ?? 0n) + amount);
  return [...sums].map(([pool, amount]) => `${amount} ${pool}`).join(", ");
}
