import { defaultSpec } from "../core/job/defaults.ts";
import type { Job } from "../core/job/job.ts";
import type { SentJob } from "../core/job/sent.ts";
import type { JobStatus } from "../core/job/status.ts";
import type { Kind } from "../core/kinds/kind.ts";

/** Without vowels and digits that look like letters, as Kubernetes generates names. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
export const SUFFIX_LENGTH = 6;

export type NewJobFacts = {
  readonly kind: Kind;
  readonly project: string;
  /** The namespace's own queue; null if it has none. */
  readonly namespaceQueue: string | null;
  readonly uid: string;
  readonly name: string;
  readonly createdBy: string;
  readonly nowMs: number;
  /** The trace context of the call; undefined where it is not traced. */
  readonly traceParent?: string | undefined;
};

/** The record of a job that was just submitted: fully defaulted, waiting, its condition Created true. */
export function newJob(sent: SentJob, facts: NewJobFacts): Job {
  const { kind, project, uid, name, createdBy, nowMs } = facts;
  const { namespaceQueue } = facts;
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
    spec: defaultSpec(sent.spec, { kind, labels: sent.labels, namespaceQueue, classPriority: null }),
    status: firstStatus(kind.name, name, nowMs),
    admissions: [],
  };
}

/** A name for `generateName` out of random bytes, `SUFFIX_LENGTH` of them. */
export function generatedName(prefix: string, random: Uint8Array): string {
  const letters = [...random.subarray(0, SUFFIX_LENGTH)].map((byte) => SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length]);
  return prefix + letters.join("");
}

function firstStatus(kind: string, name: string, nowMs: number): JobStatus {
  const message = `${kind} ${name} is created.`;
  const times = { lastUpdateMs: nowMs, lastTransitionMs: nowMs };
  return {
    phase: "WAITING",
    conditions: [{ type: "Created", status: "True", reason: `${kind}Created`, message, ...times }],
    replicaStatuses: {},
    startTimeMs: null,
    completionTimeMs: null,
    waiting: { reason: "NotEvaluated", message: "the planner has not looked at it yet", sinceMs: nowMs },
    failure: null,
    attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
    backoff: null,
  };
}
