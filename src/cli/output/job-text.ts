import { styleText } from "node:util";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { clusterName } from "../../core/job/cluster-text.ts";
import { type Admission, CleanPodPolicySchema, type Job, JobPhase, type Token } from "../../gen/gangway/v1/job_pb.ts";
import { usageFailure } from "../shell/exit.ts";
import { formatSpan } from "./duration.ts";
import { phaseWord, podsCell, queueOf, reasonCell, tokensText } from "./job-words.ts";
import type { Column } from "./table.ts";

/** `pytorchjob/llama`: kind and name, as kubectl prints them. */
export function qualifiedName(job: Job): string {
  return `${(job.spec?.kind ?? "job").toLowerCase()}/${job.metadata?.name ?? ""}`;
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

/** `Running`: the clean-pod policy in effect, as manifests spell it. */
function cleanPodsCell({ status }: Job): string {
  const word = CleanPodPolicySchema.values.find(({ number }) => number === status?.cleanPodPolicy)?.localName ?? "";
  return word === "UNSPECIFIED" ? "" : word.charAt(0) + word.slice(1).toLowerCase();
}

export function ageCell(time: Timestamp | undefined, nowMs: number): string {
  return time === undefined ? "" : formatSpan(nowMs - timestampMs(time));
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

/** The same of one pool is its name: `gpu/h100`. */
export function heldText(tokens: readonly Pick<Token, "pool" | "amount">[]): string {
  const pools = [...new Set(tokens.map(({ pool }) => pool))];
  return pools.length > 1 ? tokensText(tokens) : (pools[0] ?? "");
}
