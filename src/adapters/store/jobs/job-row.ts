import type { FlavorLabels } from "../../../core/job/flavor-labels.ts";
import { currentAdmission, isHistory, type Job } from "../../../core/job/job.ts";
import type { JobView } from "../../../core/job/request/list.ts";
import { bareSpec, type JobSpec } from "../../../core/job/spec.ts";
import type { Admission, AdmissionState, JobPhase, JobStatus } from "../../../core/job/status.ts";

/** A job as `JOB_COLUMNS` selects it. */
export type JobRow = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly labels: Job["labels"];
  readonly annotations: Job["annotations"];
  readonly created_by: string;
  readonly create_ms: number;
  readonly delete_ms: number | null;
  readonly cancel: Job["cancel"];
  readonly version: number;
  readonly bucket: number;
  readonly phase: JobPhase;
  readonly completion_ms: number | null;
  readonly trace_parent: string | null;
  readonly spec: JobSpec;
  readonly status: StatusDocument;
  readonly admissions: readonly AdmissionRow[];
};

/** The part of a status that is stored as a document. Phase and completion time are columns, with checks. */
type StatusDocument = Omit<JobStatus, "phase" | "completionTimeMs">;

export type AdmissionRow = {
  readonly number: number;
  /** Empty: none. */
  readonly cluster: string;
  readonly simulated: boolean;
  readonly state: AdmissionState;
  readonly members: Admission["members"];
  readonly flavors: Admission["flavors"];
  /** Of all flavors together, for programs of the version before. */
  readonly node_labels: Readonly<Record<string, string>>;
  /** Null: a program of the version before wrote the row. */
  readonly flavor_labels: FlavorLabels | null;
  readonly admit_ms: number;
  readonly tokens_released_ms: number | null;
  readonly gone_ms: number | null;
  readonly below_min_since_ms: number | null;
  /** Null: none, or a program of the version before wrote the row. */
  readonly details: AdmissionDetails | null;
};

/** The members of an admission that have no column of their own. */
type AdmissionDetails = Omit<Admission, keyof AdmissionColumns>;

/** The members of an admission that columns hold. */
type AdmissionColumns = Pick<
  Admission,
  | "number"
  | "cluster"
  | "admitTimeMs"
  | "members"
  | "flavors"
  | "flavorLabels"
  | "state"
  | "tokensReleasedMs"
  | "goneMs"
  | "belowMinSinceMs"
> & { readonly simulated: boolean };

const columns = (spec: string) => `
  j.uid, j.namespace, j.name, j.project, j.labels, j.annotations, j.created_by, j.create_ms, j.delete_ms, j.cancel,
  j.version, j.bucket, j.phase, j.completion_ms, j.trace_parent, ${spec} as spec, j.status,
  coalesce((
    select json_agg(a order by a.number) from (
      select number, cluster, simulated, state, members, flavors, node_labels, flavor_labels, admit_ms,
             tokens_released_ms, gone_ms, below_min_since_ms, details
        from admissions where job_uid = j.uid and not finished
    ) a
  ), '[]') as admissions`;

/** Selects a `JobRow` from `jobs j`, without admissions that are history. */
export const JOB_COLUMNS = columns("j.spec");

/** The same without templates; `outlineOf` reads it. Rows of the version before have no outline. */
const OUTLINE_COLUMNS = columns("coalesce(j.outline, j.spec)");

/** The planned nodes of the live admission of a job `j`. Null: none are planned. */
export const LIVE_PLACEMENT =
  "(select placement from admissions where job_uid = j.uid and state = 'live') as placement";

/** The columns that a step reads. Leaves out the templates of a job that is set aside. */
export const STEP_COLUMNS = columns(
  "case when j.set_aside_ms is null then j.spec else coalesce(j.outline, j.spec) end",
);

/** How a view reads jobs: its columns, the bytes that they have as JSON, and the job that a row is. */
export const JOB_READING: Readonly<
  Record<JobView, { readonly columns: string; readonly bytes: string; readonly jobOf: (row: JobRow) => Job }>
> = {
  BASIC: {
    columns: OUTLINE_COLUMNS,
    bytes: bytesWith("octet_length(coalesce(j.outline, j.spec)::text)"),
    jobOf: outlineOf,
  },
  FULL: { columns: JOB_COLUMNS, bytes: bytesWith("coalesce(j.spec_bytes, octet_length(j.spec::text))"), jobOf },
};

function bytesWith(specBytes: string): string {
  const rest = ["labels", "annotations", "status"].map((column) => `octet_length(j.${column}::text)`);
  return [specBytes, ...rest].join(" + ");
}

function outlineOf(row: JobRow): Job {
  return jobOf({ ...row, spec: bareSpec(row.spec) });
}

export function jobOf(row: JobRow): Job {
  const job = untraced(row);
  return row.trace_parent === null ? job : { ...job, traceParent: row.trace_parent };
}

function untraced(row: JobRow): Job {
  return {
    uid: row.uid,
    namespace: row.namespace,
    name: row.name,
    project: row.project,
    labels: row.labels,
    annotations: row.annotations,
    createdBy: row.created_by,
    createTimeMs: row.create_ms,
    deleteTimeMs: row.delete_ms,
    cancel: row.cancel,
    version: row.version,
    spec: row.spec,
    status: { ...row.status, phase: row.phase, completionTimeMs: row.completion_ms },
    admissions: row.admissions.map(admissionOf),
  };
}

function admissionOf(row: AdmissionRow): Admission {
  return {
    ...row.details,
    number: row.number,
    cluster: row.cluster || null,
    ...(row.simulated ? { simulated: true } : {}),
    admitTimeMs: row.admit_ms,
    members: row.members,
    flavors: row.flavors,
    flavorLabels: flavorLabelsOf(row),
    state: row.state,
    tokensReleasedMs: row.tokens_released_ms,
    goneMs: row.gone_ms,
    belowMinSinceMs: row.below_min_since_ms,
  };
}

/** An admission as its row holds it. */
export function admissionColumns(admission: Admission): {
  columns: AdmissionColumns;
  details: AdmissionDetails | null;
} {
  const {
    number,
    cluster,
    simulated = false,
    admitTimeMs,
    members,
    flavors,
    flavorLabels,
    state,
    tokensReleasedMs,
    goneMs,
    belowMinSinceMs,
    ...details
  } = admission;
  const times = { admitTimeMs, tokensReleasedMs, goneMs, belowMinSinceMs };
  const columns = { number, cluster, simulated, members, flavors, flavorLabels, state, ...times };
  return { columns, details: Object.keys(details).length === 0 ? null : details };
}

/** The labels of each flavor. In rows of the version before, each resource has those of all flavors. */
export function flavorLabelsOf(row: Pick<AdmissionRow, "flavors" | "flavor_labels" | "node_labels">): FlavorLabels {
  const { flavors, flavor_labels: byResource, node_labels: all } = row;
  return byResource ?? Object.fromEntries(Object.keys(flavors).map((resource) => [resource, all]));
}

export function statusDocument(status: JobStatus): StatusDocument {
  const { phase: _phase, completionTimeMs: _completionTimeMs, ...document } = status;
  return document;
}

/** The job as it will be read again: without admissions that are history. */
export function settled(job: Job): Job {
  return { ...job, admissions: job.admissions.filter((admission) => !isHistory(admission)) };
}

/** The cluster of a job's current admission as the column `cluster` holds it: empty while it is in none. */
export function clusterOf(job: Job): string {
  return currentAdmission(settled(job))?.cluster ?? "";
}

/** A job as the log keeps it: without replica templates. An admission in no cluster has an empty cluster there. */
export type JobDocument = Omit<Job, "admissions"> & {
  readonly admissions: readonly (Omit<Admission, "cluster"> & { readonly cluster: string })[];
};

export function documentOf(job: Job): JobDocument {
  const admissions = job.admissions.map((admission) => ({ ...admission, cluster: admission.cluster ?? "" }));
  return { ...job, spec: bareSpec(job.spec), admissions };
}

export function jobOfDocument(document: JobDocument): Job {
  const admissions = document.admissions.map((admission) => ({ ...admission, cluster: admission.cluster || null }));
  return { ...document, admissions };
}
