/**
 * Decides changes of jobs that exist: priority and its class, numbers of replicas, suspension and labels. It serves
 * users who must not resubmit a job to change it.
 */

import { canonicalJson, type JsonObject } from "../../runtime/json.ts";
import { setCondition } from "../job/conditions.ts";
import { type Job, liveAdmission } from "../job/job.ts";
import { withoutNomination } from "../job/nomination.ts";
import { copiedClass, type JobPriorityClass } from "../job/priority-class.ts";
import { reasonFor } from "../job/reason-for.ts";
import type { FieldError, SentSpec } from "../job/request/sent.ts";
import { rolesOf } from "../job/roles.ts";
import { isSetAside, RESUMES_A_DAY, resumesOfDay, withoutSetAside } from "../job/set-aside.ts";
import { type JobSpec, type ReplicaSpec, totalReplicas } from "../job/spec.ts";
import { isTerminal, type JobStatus } from "../job/status.ts";
import { checkSent } from "./check-sent.ts";
import { elasticRolesOf, type Kind } from "./kind.ts";

/** A change of a job as a caller asks for it. Empty class name: the job has no priority class any more. */
export type AskedChange = Omit<WantedChange, "priorityClass" | "templates"> & {
  readonly priorityClassName?: string;
  /** By replica type, in any case: members of pod templates that take the place of those that the job has. */
  readonly templates?: Readonly<Record<string, JsonObject>>;
};

/** A requested change of a job. Omitted members stay unchanged. */
export type WantedChange = {
  /** The version that the change expects. Null: any version. */
  readonly version: number | null;
  /** Another priority than the job has takes its priority class away, unless that is wanted too. */
  readonly priority?: number;
  /** Its value becomes the priority. Null: none, and the priority stays. */
  readonly priorityClass?: JobPriorityClass | null;
  /** False also clears that the job was set aside. */
  readonly suspend?: boolean;
  /** True: the caller may resume a job that was set aside any number of times. Omitted: `RESUMES_A_DAY` times a day. */
  readonly mayReinstate?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  /** By replica type, in any case. */
  readonly replicas?: Readonly<Record<string, number>>;
  /** By replica type: the templates as the platform makes pods of them. Omitted: they stay. */
  readonly templates?: Readonly<Record<string, Pick<ReplicaSpec, "template" | "uninterruptedTemplate">>>;
};

/** The decision on a change. Paths of errors are those of the API. */
type ChangeDecision =
  | {
      readonly kind: "changed";
      readonly job: Job;
      readonly event: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string };
    }
  /** The job already is as requested. */
  | { readonly kind: "unchanged"; readonly job: Job }
  | { readonly kind: "stale" }
  /** `terminal`: the job has ended. `ending`: it is being cancelled or deleted. */
  | { readonly kind: "terminal" | "ending"; readonly job: Job }
  /** The job was set aside, and was resumed as often within a day as the caller may. */
  | { readonly kind: "resumedTooOften" }
  /** The job is admitted, and its kind cannot resize this replica type until it waits again. */
  | { readonly kind: "fixedSize"; readonly role: string }
  /** The job may run, or pods of it are left: its templates stay until it is suspended. */
  | { readonly kind: "fixedTemplates" }
  | { readonly kind: "invalid"; readonly errors: readonly FieldError[] };

/**
 * Decides a change of a job's priority, numbers of replicas, suspension or labels: all of it or nothing. If the minimum
 * was all replicas, it stays all replicas. The minimum of an admitted gang never rises, because no room is reserved for
 * more members.
 */
export function changeJob(job: Job, kind: Kind, wanted: WantedChange, nowMs: number): ChangeDecision {
  if (isTerminal(job.status)) return { kind: "terminal", job };
  if (job.cancel !== null || job.deleteTimeMs !== null) return { kind: "ending", job };
  if (wanted.version !== null && wanted.version !== job.version) return { kind: "stale" };
  const roleErrors = wrongRoles(job, kind, wanted);
  if (roleErrors.length > 0) return { kind: "invalid", errors: roleErrors };
  const rests = job.spec.runPolicy.suspend === true && liveAdmission(job) === null;
  if (wanted.templates !== undefined && !rests) return { kind: "fixedTemplates" };
  const spec = changedSpec(job, kind, wanted);
  const errors = wrongNumbers(job, kind, spec);
  if (errors.length > 0) return { kind: "invalid", errors };
  const fixed = fixedRole(job, kind, spec);
  if (fixed !== null) return { kind: "fixedSize", role: fixed };
  return changeTo(job, { spec, labels: wanted.labels ?? job.labels }, wanted, nowMs);
}

/** Decides a change whose spec is right. */
function changeTo(
  job: Job,
  { spec, labels }: Pick<Job, "spec" | "labels">,
  wanted: WantedChange,
  nowMs: number,
): ChangeDecision {
  const clears = isSetAside(job) && wanted.suspend === false;
  const isBeyond = wanted.mayReinstate !== true && resumesOfDay(job.status, nowMs).length >= RESUMES_A_DAY;
  if (clears && isBeyond) return { kind: "resumedTooOften" };
  const changes = [describe(job, spec, labels), clears ? "to be no longer set aside" : ""].filter(
    (text) => text !== "",
  );
  if (changes.length === 0) return { kind: "unchanged", job };
  const changed = changedStatus(job, spec, nowMs);
  const status = clears ? cleared(job, changed, nowMs) : changed;
  const message = `Changed: ${changes.join(", ")}.`;
  const event = { type: "Normal", reason: reasonFor(job.spec.kind, "Updated"), message } as const;
  return { kind: "changed", job: { ...job, spec, labels, status, version: job.version + 1 }, event };
}

/** The status of a job that is resumed after it was set aside. If it waits, the planner looks at it again. */
function cleared(job: Job, status: JobStatus, nowMs: number): JobStatus {
  const message = `${job.spec.kind} ${job.name} is resumed.`;
  const change = { type: "SetAside", status: "False", reason: reasonFor(job.spec.kind, "Resumed"), message } as const;
  const conditions = setCondition(status.conditions, change, nowMs);
  const waits = { reason: "NotEvaluated", message: "the planner has not evaluated the job since it was resumed" };
  const waiting = status.phase === "WAITING" ? { ...waits, sinceMs: nowMs } : status.waiting;
  return { ...withoutSetAside(status, nowMs), conditions, waiting };
}

/** A change of more than labels ends a nomination: the gang may need other victims now, or none. */
function changedStatus(job: Job, spec: JobSpec, nowMs: number): JobStatus {
  const status = describe(job, spec, job.labels) === "" ? job.status : withoutNomination(job.status);
  const resized = liveAdmission(job) !== null && resizedRoles(job.spec, spec).length > 0;
  return resized ? { ...status, resizedMs: nowMs } : status;
}

function wrongRoles(job: Job, kind: Kind, { replicas = {} }: WantedChange): readonly FieldError[] {
  const known = rolesOf(job.spec);
  const named = Object.keys(replicas);
  const path = (role: string) => `spec.replicaSpecs.${role}`;
  const repeated = named.filter(
    (role, at) => named.findIndex((one) => kind.roleName(one) === kind.roleName(role)) < at,
  );
  return [
    ...named
      .filter((role) => !known.includes(kind.roleName(role)))
      .map((role) => ({
        path: path(role),
        message: `is not a replica type of this job; types are: ${known.join(", ")}`,
      })),
    ...repeated.map((role) => ({ path: path(role), message: "is set twice: upper and lower case do not matter" })),
  ];
}

function changedSpec(job: Job, kind: Kind, wanted: WantedChange): JobSpec {
  const { spec } = job;
  const counts = new Map(Object.entries(wanted.replicas ?? {}).map(([role, count]) => [kind.roleName(role), count]));
  const replicaSpecs = Object.fromEntries(
    Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
      role,
      { ...withTemplate(replica, wanted.templates?.[role]), replicas: counts.get(role) ?? replica.replicas },
    ]),
  );
  const resized = { ...spec, replicaSpecs };
  const scheduling = spec.runPolicy.schedulingPolicy;
  const schedulingPolicy = { ...scheduling, minAvailable: minimumOf(job, resized) };
  const suspend = wanted.suspend ?? spec.runPolicy.suspend ?? false;
  return { ...withPriority(resized, wanted), runPolicy: { ...spec.runPolicy, suspend, schedulingPolicy } };
}

function withTemplate(replica: ReplicaSpec, shaped: NonNullable<WantedChange["templates"]>[string] | undefined) {
  if (shaped === undefined) return replica;
  const { uninterruptedTemplate: _before, ...rest } = replica;
  return { ...rest, ...shaped };
}

function withPriority(spec: JobSpec, { priority = spec.priority, priorityClass }: WantedChange): JobSpec {
  if (priorityClass === undefined && priority === spec.priority) return spec;
  const { priorityClassName: _name, preemptionPolicy: _policy, ...rest } = spec;
  return { ...rest, priority: priorityClass?.value ?? priority, ...copiedClass(priorityClass ?? null) };
}

function minimumOf(job: Job, resized: JobSpec): number {
  const { minAvailable } = job.spec.runPolicy.schedulingPolicy;
  const total = totalReplicas(resized);
  const all = minAvailable === totalReplicas(job.spec) && liveAdmission(job) === null;
  return all ? total : Math.min(minAvailable, total);
}

/** Reports one error for each field: the bounds of an admitted gang count only if the kind accepts the numbers. */
function wrongNumbers(job: Job, kind: Kind, spec: JobSpec): readonly FieldError[] {
  const errors = newErrors(kind, job.spec, spec);
  return errors.length > 0 ? errors : beyondBounds(job, kind, spec);
}

/**
 * Returns the errors that the change introduces. Errors of the old spec do not count, because rules may have become
 * stricter since the job was created.
 */
function newErrors(kind: Kind, before: JobSpec, after: JobSpec): readonly FieldError[] {
  const old = new Set(checkSent(kind, sentAgain(before)).map((error) => canonicalJson(error)));
  return checkSent(kind, sentAgain(after)).filter((error) => !old.has(canonicalJson(error)));
}

/** The parts of a spec whose checks depend on the numbers of replicas. The minimum follows these numbers. */
function sentAgain({ kind, replicaSpecs, kindSpec, placement }: JobSpec): SentSpec {
  // The wish of a record counts, also if it has none: annotations of its templates were read when it was created.
  const wishing = Object.entries(replicaSpecs).map(([role, spec]) => [
    role,
    { ...spec, topology: spec.topology ?? {} },
  ]);
  return { kind, replicaSpecs: Object.fromEntries(wishing), kindSpec, placement };
}

function resizedRoles(before: JobSpec, after: JobSpec): readonly string[] {
  return rolesOf(after).filter((role) => after.replicaSpecs[role]?.replicas !== before.replicaSpecs[role]?.replicas);
}

/**
 * The first replica type whose number changes although the gang is admitted and its kind does not allow that. Null:
 * there is none.
 */
function fixedRole(job: Job, kind: Kind, spec: JobSpec): string | null {
  if (liveAdmission(job) === null) return null;
  const elastic = elasticRolesOf(kind, job.spec).map(({ name }) => name);
  return resizedRoles(job.spec, spec).find((role) => !elastic.includes(role)) ?? null;
}

/** Errors for numbers of replicas outside the elastic bounds of an admitted gang. */
function beyondBounds(job: Job, kind: Kind, spec: JobSpec): readonly FieldError[] {
  if (liveAdmission(job) === null) return [];
  const resized = resizedRoles(job.spec, spec);
  return elasticRolesOf(kind, job.spec).flatMap(({ name, min, max }) => {
    const count = spec.replicaSpecs[name]?.replicas ?? 0;
    if (!resized.includes(name) || (count >= min && (max === null || count <= max))) return [];
    const bounds = max === null ? `at least ${min}` : `from ${min} to ${max}`;
    const message = `must be ${bounds} while the job is admitted: these are the bounds of its elastic policy`;
    return [{ path: `spec.replicaSpecs.${name}.replicas`, message }];
  });
}

function describe(job: Job, spec: JobSpec, labels: Job["labels"]): string {
  const before = job.spec;
  const changes = resizedRoles(before, spec).map((role) => {
    return `replicas of ${role} from ${before.replicaSpecs[role]?.replicas} to ${spec.replicaSpecs[role]?.replicas}`;
  });
  const { replicaSpecs } = spec;
  const reshaped = rolesOf(before).filter((role) => {
    return canonicalJson(before.replicaSpecs[role]?.template) !== canonicalJson(replicaSpecs[role]?.template);
  });
  if (reshaped.length > 0) changes.push(`templates of ${reshaped.join(", ")}`);
  const [oldClass = "none", newClass = "none"] = [before.priorityClassName, spec.priorityClassName];
  if (newClass !== oldClass) changes.push(`priority class from ${oldClass} to ${newClass}`);
  if (spec.priority !== before.priority) changes.push(`priority from ${before.priority} to ${spec.priority}`);
  if (spec.runPolicy.suspend !== (before.runPolicy.suspend ?? false)) {
    changes.push(spec.runPolicy.suspend ? "to be suspended" : "to be resumed");
  }
  if (canonicalJson(labels) !== canonicalJson(job.labels)) changes.push("labels");
  return changes.join(", ");
}
