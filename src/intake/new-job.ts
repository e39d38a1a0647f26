import { defaultSpec } from "../core/job/defaults.ts";
import type { Job } from "../core/job/job.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import type { SentJob } from "../core/job/sent.ts";
import type { JobSpec, ReplicaSpec } from "../core/job/spec.ts";
import type { Condition, JobStatus } from "../core/job/status.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { knownTemplate } from "../core/pods/template-fields.ts";
import { invariant } from "../runtime/assert.ts";
import { canonicalJson, type JsonObject } from "../runtime/json.ts";

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
  readonly podConfig: PodConfig;
  /** Whether templates keep members that Gangway does not know. */
  readonly keepsUnknown: boolean;
  readonly nowMs: number;
  /** The trace context of the call. Undefined: the call is not traced. */
  readonly traceParent?: string | undefined;
};

/** Makes the record of a submitted job: fully defaulted, waiting or suspended, with the condition Created. */
export function newJob(sent: SentJob, facts: NewJobFacts): Job {
  const { kind, project, uid, name, createdBy, nowMs } = facts;
  const { namespaceQueue, priorityClass } = facts;
  const defaulted = defaultSpec(sent.spec, { kind, labels: sent.labels, namespaceQueue, priorityClass });
  const spec = shaped(defaulted, sent.namespace, facts);
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

/** Applies the platform's settings to the templates, so that the record shows the pods that will run. */
function shaped(spec: JobSpec, namespace: string, { kind, podConfig: config, keepsUnknown }: NewJobFacts): JobSpec {
  const interruptible = spec.runPolicy.interruptible === true;
  const replicas = Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => {
    const sent = keepsUnknown ? replica.template : knownTemplate(replica.template);
    const shape = (interrupted: boolean): JsonObject => {
      const outcome = shapeReplica(sent, { kind, namespace, interruptible: interrupted, config });
      invariant(outcome.kind === "shaped", "the templates of a validated job can be shaped");
      return outcome.template;
    };
    const template = shape(interruptible);
    const later = interruptible ? shape(false) : template;
    const same = later === template || canonicalJson(later) === canonicalJson(template);
    return [role, { ...replica, template, ...(same ? {} : { uninterruptedTemplate: later }) }];
  });
  return { ...spec, replicaSpecs: Object.fromEntries(replicas) };
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
    reason: `${kind}${type}`,
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
