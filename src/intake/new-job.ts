import type { Job } from "../core/job/job.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import { reasonFor } from "../core/job/reason-for.ts";
import { defaultSpec } from "../core/job/request/defaults.ts";
import type { SentJob } from "../core/job/request/sent.ts";
import type { JobSpec, ReplicaSpec } from "../core/job/spec.ts";
import type { Condition, JobStatus } from "../core/job/status.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { withWishes } from "../core/kinds/topology/sent-wishes.ts";

/** The alphabet of generated names in Kubernetes: no vowels, no digits that look like letters. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
export const SUFFIX_LENGTH = 6;

type NewJobFacts = {
  readonly kind: Kind;
  readonly project: string;
  /** The namespace's default queue. Null: it has none. */
  readonly namespaceQueue: string | null;
  readonly priorityClass: JobPriorityClass | null;
  readonly uid: string;
  readonly name: string;
  readonly createdBy: string;
  readonly templates: ShapedTemplates;
  readonly nowMs: number;
  /** The trace context of the call. Undefined: the call is not traced. */
  readonly traceParent?: string | undefined;
};

/** Makes the record of a submitted job: fully defaulted, waiting or suspended, with the condition Created. */
export function newJob(sent: SentJob, facts: NewJobFacts): Job {
  const { kind, namespaceQueue, priorityClass, templates } = facts;
  const defaulted = defaultSpec(sent.spec, { kind, labels: sent.labels, namespaceQueue, priorityClass });
  return recordOf(sent, withTemplates(withWishes(defaulted, kind), templates), facts);
}

/** The templates of a job as the platform makes pods of them, by replica type as the kind spells it. */
export type ShapedTemplates = Readonly<Record<string, Pick<ReplicaSpec, "template" | "uninterruptedTemplate">>>;

/**
 * Makes the record that a job would have, so that its pods can be judged before it exists. Templates that are not among
 * the shaped ones stay as they were sent.
 */
export function draftJob(sent: SentJob, kind: Kind, templates: ShapedTemplates): Job {
  const spec = defaultSpec(sent.spec, { kind, labels: sent.labels, namespaceQueue: null, priorityClass: null });
  const own = { project: "default", uid: "00000000-0000-7000-8000-000000000000", createdBy: "", nowMs: 0 };
  const facts = { ...own, name: wholeName(sent) };
  return recordOf(sent, withTemplates(withWishes(spec, kind), templates), facts);
}

function withTemplates(spec: JobSpec, templates: ShapedTemplates): JobSpec {
  const replicas = Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
    role,
    { ...replica, ...templates[role] },
  ]);
  return { ...spec, replicaSpecs: Object.fromEntries(replicas) };
}

function recordOf(
  sent: SentJob,
  spec: JobSpec,
  facts: Pick<NewJobFacts, "project" | "uid" | "name" | "createdBy" | "nowMs" | "traceParent">,
): Job {
  const { project, uid, name, createdBy, nowMs } = facts;
  return {
    uid,
    namespace: sent.namespace,
    name,
    project,
    labels: sent.labels,
    annotations: sent.annotations,
    createdBy,
    createTimeMs: nowMs,
    deleteTimeMs: null,
    cancel: null,
    version: 1,
    ...(facts.traceParent === undefined ? null : { traceParent: facts.traceParent }),
    spec,
    status: firstStatus({ kind: spec.kind, name, suspended: spec.runPolicy.suspend === true }, nowMs),
    admissions: [],
  };
}

/** The name of a job, or one as long as the name that is generated for it. */
export function wholeName({ name, generateName }: Pick<SentJob, "name" | "generateName">): string {
  return name || generateName + "x".repeat(SUFFIX_LENGTH);
}

/** Makes a name for `generateName` from `SUFFIX_LENGTH` random bytes. */
export function generatedName(prefix: string, random: Uint8Array): string {
  const letters = [...random.subarray(0, SUFFIX_LENGTH)].map((byte) => SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length]);
  return prefix + letters.join("");
}

function firstStatus(
  { kind, name, suspended }: { readonly kind: string; readonly name: string; readonly suspended: boolean },
  nowMs: number,
): JobStatus {
  const condition = (type: "Created" | "Suspended", what: string): Condition => ({
    type,
    status: "True",
    reason: reasonFor(kind, type),
    message: `${kind} ${name} is ${what}.`,
    lastUpdateMs: nowMs,
    lastTransitionMs: nowMs,
  });
  return {
    phase: suspended ? "SUSPENDED" : "WAITING",
    conditions: [condition("Created", "created"), ...(suspended ? [condition("Suspended", "suspended")] : [])],
    replicaStatuses: {},
    startTimeMs: null,
    completionTimeMs: null,
    waiting: suspended
      ? null
      : { reason: "NotEvaluated", message: "the planner has not evaluated it yet", sinceMs: nowMs },
    failure: null,
    attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
    backoff: null,
  };
}
