import { styleText } from "node:util";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { clusterName } from "../../core/job/cluster-text.ts";
import {
  type Admission,
  CleanPodPolicy,
  CleanPodPolicySchema,
  type Job,
  JobPhase,
  JobPhaseSchema,
  PartialPolicy,
  type PodProblem,
  type TaskInfo,
  TaskPhaseSchema,
  type Token,
} from "../../gen/gangway/v1/job_pb.ts";
import { usageFailure } from "../shell/exit.ts";
import { formatSpan } from "./duration.ts";
import type { Column } from "./table.ts";

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

/** `pytorchjob/llama`: kind and name, as kubectl prints them. */
export function qualifiedName(job: Job): string {
  return `${(job.spec?.kind ?? "job").toLowerCase()}/${job.metadata?.name ?? ""}`;
}

/** WAITING, RUNNING, …; `PHASE_12` for a phase of a newer service that this program does not know. */
export function phaseWord(phase: number): string {
  return JobPhaseSchema.values.find((value) => value.number === phase)?.localName ?? `PHASE_${phase}`;
}

/** Reads a phase: `waiting`, `WAITING` and `JOB_PHASE_WAITING` are the same. */
export function parsePhase(text: string): JobPhase {
  const word = text.toUpperCase().replace(/^JOB_PHASE_/, "");
  const words = Object.keys(JobPhase).filter((name) => name !== "UNSPECIFIED");
  if (!words.includes(word))
    throw usageFailure(`there is no phase ${text}; use one of ${words.join(", ").toLowerCase()}`);
  return JobPhase[word as keyof typeof JobPhase];
}

/** `h100-east`, or `h100-east (simulated)`; empty for a job that is in no cluster. */
export function clusterCell({ status }: Job): string {
  return status?.admission === undefined ? "" : clusterText(status.admission);
}

export function clusterText({ cluster, simulated }: Pick<Admission, "cluster" | "simulated">): string {
  return clusterName({ name: cluster, simulated });
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

/** `Running`: the clean-pod policy in effect, as manifests spell it. */
function cleanPodsCell({ status }: Job): string {
  const word = CleanPodPolicySchema.values.find(({ number }) => number === status?.cleanPodPolicy)?.localName ?? "";
  return word === "UNSPECIFIED" ? "" : word.charAt(0) + word.slice(1).toLowerCase();
}

function ownReason(job: Job): string {
  const { waiting, failure, phase = 0, podProblems = [], conditions = [], concerns = [] } = job.status ?? {};
  const [concern] = concerns;
  if (concern !== undefined) return sentence(concern.reason, concern.message);
  const aside = conditions.find(({ type, status }) => type === "SetAside" && status === "True");
  if (aside !== undefined && !TERMINAL.includes(phase)) return sentence("SetAside", aside.message);
  if (failure !== undefined) return sentence(failure.code, failure.message);
  if (podProblems.length > 0) return problemCell(podProblems);
  if (waiting === undefined && STOPPED_PHASES.includes(phase)) return "";
  if (waiting === undefined) return job.status?.totalReplicas === 0 ? taskCell(job.status.info) : growthCell(job);
  const place = waiting.position > 0 ? `#${waiting.position} ` : "";
  return place + sentence(waiting.reason, waiting.message);
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

/** `Unschedulable (4 pods): …`: why most of the pods that do not run are stuck. */
function problemCell(problems: readonly PodProblem[]): string {
  const [{ reason = "", message = "" } = {}] = problems;
  const pods = problems.filter((one) => one.reason === reason).reduce((sum, one) => sum + one.pods, 0);
  return podSentence(`${reason} (${pods} ${pods === 1 ? "pod" : "pods"})`, message);
}

/** Why a pod does not run, without the beginning that schedulers always write: the end of a narrow line is cut. */
export function podSentence(reason: string, message: string): string {
  return sentence(reason, message.replace(/^0\/\d+ nodes are (un)?available: /, ""));
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

export function ageCell(time: Timestamp | undefined, nowMs: number): string {
  return time === undefined ? "" : formatSpan(nowMs - timestampMs(time));
}

export function queueOf(job: Job): string {
  return job.spec?.runPolicy?.schedulingPolicy?.queue ?? "";
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

/** How often the job failed and was started again. */
function restartsCell({ status }: Job): string {
  return String((status?.attempts?.user ?? 0) + (status?.attempts?.system ?? 0));
}

/** From the start of the job to its end, or until now. */
function ranForCell({ status }: Job, nowMs: number): string {
  if (status?.startTime === undefined) return "";
  const endMs = status.completionTime === undefined ? nowMs : timestampMs(status.completionTime);
  return formatSpan(endMs - timestampMs(status.startTime));
}

const PHASE_STYLE = {
  WAITING: "yellow",
  RESTARTING: "yellow",
  SUSPENDED: "gray",
  RUNNING: "cyan",
  SUCCEEDED: "green",
  FAILED: "red",
  CANCELLED: "gray",
} as const;

/** Colours a phase, padded or not. */
export function paintPhase(cell: string): string {
  const style = PHASE_STYLE[cell.trim() as keyof typeof PHASE_STYLE];
  return style === undefined ? cell : styleText(style, cell, { validateStream: false });
}

/** A column of a table of jobs, and the function that fills its cells. `wide`: only with `-o wide`. */
type JobColumn = Column & { readonly cell: (job: Job, nowMs: number) => string; readonly wide?: true };

const CLUSTER = "CLUSTER";
const NODES = "NODES";
/** So many nodes stand in a cell. */
const NODES_MAX = 8;

const JOB_COLUMNS: readonly JobColumn[] = [
  { title: "NAME", cell: (job) => job.metadata?.name ?? "" },
  { title: "KIND", drop: 4, cell: (job) => job.spec?.kind ?? "" },
  { title: "QUEUE", drop: 3, cell: queueOf },
  { title: "PRIORITY", align: "right", drop: 5, cell: (job) => String(job.spec?.priority ?? 0) },
  {
    title: "PHASE",
    paint: paintPhase,
    cell: (job) => phaseWord(job.status?.phase ?? 0),
  },
  { title: CLUSTER, drop: 1, cell: clusterCell },
  { title: "PODS", align: "right", cell: podsCell },
  { title: "AGE", align: "right", drop: 2, cell: (job, nowMs) => ageCell(job.metadata?.createTime, nowMs) },
  { title: "MIN", align: "right", wide: true, cell: (job) => String(job.status?.minAvailable ?? 0) },
  { title: "ADMISSION", align: "right", wide: true, cell: (job) => String(job.status?.admission?.number ?? "") },
  { title: "RESTARTS", align: "right", wide: true, cell: restartsCell },
  { title: "RAN FOR", align: "right", wide: true, cell: ranForCell },
  { title: "CLEAN PODS", wide: true, cell: cleanPodsCell },
  { title: NODES, wide: true, cell: nodesCell },
  { title: "BY", wide: true, cell: (job) => job.metadata?.createdBy ?? "" },
  { title: "LABELS", wide: true, cell: (job) => labelsText(job.metadata?.labels ?? {}) },
  { title: "REASON", cell: reasonCell },
];
const NAMESPACE_COLUMN: JobColumn = { title: "NAMESPACE", cell: (job) => job.metadata?.namespace ?? "" };

/**
 * `n0 (8), n3 (1, planned on n2), n5 (4 planned)`: how many pods are on each node, and those that are not there yet.
 * Only answers about one job name nodes.
 */
function nodesCell({ status }: Job): string {
  const counts = new Map<string, number>();
  for (const { node, plannedNode } of status?.pods ?? []) {
    if (node === "" && plannedNode === "") continue;
    const where = node === "" ? `${plannedNode} (# planned)` : `${node} (#${offPlanNote(node, plannedNode)})`;
    counts.set(where, (counts.get(where) ?? 0) + 1);
  }
  const named = [...counts].slice(0, NODES_MAX).map(([where, count]) => where.replace("#", String(count)));
  const more = counts.size > NODES_MAX ? [`and ${counts.size - NODES_MAX} more`] : [];
  return [...named, ...more].join(", ");
}

function offPlanNote(node: string, planned: string): string {
  return planned === "" || planned === node ? "" : `, planned on ${planned}`;
}

/** `h100-east*`: a mark for simulated clusters that takes less room. */
function markedCluster({ status }: Job): string {
  return `${status?.admission?.cluster ?? ""}${isSimulated({ status }) ? "*" : ""}`;
}

function isSimulated({ status }: Pick<Job, "status">): boolean {
  return status?.admission?.simulated === true;
}

/** Explains the mark, once below a table. */
export const MARK_TEXT = "* simulated cluster: no program runs there";

/** Columns and rows of a table of jobs. `hasMarks`: a row has a mark, which MARK_TEXT explains. */
export function jobsTable(
  jobs: readonly Job[],
  options: {
    readonly nowMs: number;
    readonly withNamespace: boolean;
    readonly wide: boolean;
    /** True: for a terminal, whose lines are short. Omitted: false. */
    readonly marks?: boolean;
  },
): {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  readonly hasMarks: boolean;
} {
  const all = options.withNamespace ? [NAMESPACE_COLUMN, ...JOB_COLUMNS] : JOB_COLUMNS;
  const columns = all.filter(({ title, cell, wide }) => {
    if (wide === true && !options.wide) return false;
    return title !== NODES || jobs.some((job) => cell(job, options.nowMs) !== "");
  });
  const { marks = false } = options;
  const cellOf = (job: Job, { title, cell }: JobColumn) =>
    marks && title === CLUSTER ? markedCluster(job) : cell(job, options.nowMs);
  return {
    columns,
    rows: jobs.map((job) => columns.map((column) => cellOf(job, column))),
    hasMarks: marks && jobs.some(isSimulated),
  };
}

/** The tokens of an admission, one amount for each pool: `8 gpu/h100, 2 gpu/a100`. */
export function tokensText(tokens: readonly Pick<Token, "pool" | "amount">[]): string {
  const sums = new Map<string, bigint>();
  for (const { pool, amount } of tokens) sums.set(pool, (sums.get(pool) ?? 0n) + amount);
  return [...sums].map(([pool, amount]) => `${amount} ${pool}`).join(", ");
}

/** The same of one pool is its name: `gpu/h100`. */
export function heldText(tokens: readonly Pick<Token, "pool" | "amount">[]): string {
  const pools = [...new Set(tokens.map(({ pool }) => pool))];
  return pools.length > 1 ? tokensText(tokens) : (pools[0] ?? "");
}
