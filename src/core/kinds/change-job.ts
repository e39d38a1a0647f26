import { canonicalJson } from "../../runtime/json.ts";
import type { Job } from "../job/job.ts";
import { rolesOf } from "../job/roles.ts";
import type { FieldError, SentSpec } from "../job/sent.ts";
import { type JobSpec, type ReplicaSpec, totalReplicas } from "../job/spec.ts";
import { isTerminal } from "../job/status.ts";
import { checkSent } from "./check-sent.ts";
import type { Kind } from "./kind.ts";

/** What is to become of a job; what is absent stays. */
export type WantedChange = {
  /** The version that the change starts from; null for whatever it is. */
  readonly version: number | null;
  readonly priority?: number;
  readonly suspend?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  /** By replica type, in any case. */
  readonly replicas?: Readonly<Record<string, number>>;
};

/** How a change was decided; paths of errors are the API's. */
export type ChangeDecision =
  | {
      readonly kind: "changed";
      readonly job: Job;
      readonly event: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string };
    }
  /** The job is as it is wanted. */
  | { readonly kind: "unchanged"; readonly job: Job }
  | { readonly kind: "stale" }
  /** It has ended, or its end was asked for. */
  | { readonly kind: "terminal" | "ending"; readonly job: Job }
  /** It is admitted, and its kind cannot change the number of this replica type while it is. */
  | { readonly kind: "fixedSize"; readonly role: string }
  | { readonly kind: "invalid"; readonly errors: readonly FieldError[] };

/**
 * Decides a change of what may change of a job: priority, numbers of replicas, suspension and labels. All of it or nothing. A minimum of all
 * replicas stays one of all; where the gang is on board it never rises, since nobody promised its room.
 */
export function changeJob(job: Job, kind: Kind, wanted: WantedChange, nowMs: number): ChangeDecision {
  if (isTerminal(job.status)) return { kind: "terminal", job };
  if (job.cancel !== null || job.deleteTimeMs !== null) return { kind: "ending", job };
  if (wanted.version !== null && wanted.version !== job.version) return { kind: "stale" };
  const strangers = unknownRoles(job, kind, wanted);
  if (strangers.length > 0) return { kind: "invalid", errors: strangers };
  const spec = changedSpec(job, kind, wanted);
  const errors = wrongNumbers(job, kind, spec);
  if (errors.length > 0) return { kind: "invalid", errors };
  const fixed = fixedRole(job, kind, spec);
  if (fixed !== null) return { kind: "fixedSize", role: fixed };
  const labels = wanted.labels ?? job.labels;
  const said = describe(job, spec, labels);
  if (said === "") return { kind: "unchanged", job };
  const resized = isBoarded(job) && resizedRoles(job.spec, spec).length > 0;
  const status = resized ? { ...job.status, resizedMs: nowMs } : job.status;
  const event = { type: "Normal", reason: `${job.spec.kind}Updated`, message: `Changed: ${said}.` } as const;
  return { kind: "changed", job: { ...job, spec, labels, status, version: job.version + 1 }, event };
}

function isBoarded(job: Job): boolean {
  return job.admissions.some(({ state }) => state === "live");
}

function unknownRoles(job: Job, kind: Kind, { replicas = {} }: WantedChange): readonly FieldError[] {
  const known = rolesOf(job.spec);
  const asked = Object.keys(replicas);
  const path = (role: string) => `spec.replicaSpecs.${role}`;
  const twice = asked.filter((role, at) => asked.findIndex((one) => kind.roleName(one) === kind.roleName(role)) < at);
  return [
    ...asked
      .filter((role) => !known.includes(kind.roleName(role)))
      .map((role) => ({ path: path(role), message: `is no replica type of this job; these are: ${known.join(", ")}` })),
    ...twice.map((role) => ({ path: path(role), message: "is given twice, in different case" })),
  ];
}

function changedSpec(job: Job, kind: Kind, wanted: WantedChange): JobSpec {
  const { spec } = job;
  const counts = new Map(Object.entries(wanted.replicas ?? {}).map(([role, count]) => [kind.roleName(role), count]));
  const replicaSpecs = Object.fromEntries(
    Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
      role,
      { ...replica, replicas: counts.get(role) ?? replica.replicas },
    ]),
  );
  const resized = { ...spec, replicaSpecs };
  const scheduling = spec.runPolicy.schedulingPolicy;
  const schedulingPolicy = { ...scheduling, minAvailable: minimumOf(job, resized) };
  const suspend = wanted.suspend ?? spec.runPolicy.suspend ?? false;
  return {
    ...resized,
    priority: wanted.priority ?? spec.priority,
    runPolicy: { ...spec.runPolicy, suspend, schedulingPolicy },
  };
}

function minimumOf(job: Job, resized: JobSpec): number {
  const { minAvailable } = job.spec.runPolicy.schedulingPolicy;
  const total = totalReplicas(resized);
  const all = minAvailable === totalReplicas(job.spec) && !isBoarded(job);
  return all ? total : Math.min(minAvailable, total);
}

/** A field is wrong for one reason: the bounds of a gang on board count where the kind has nothing against the numbers as such. */
function wrongNumbers(job: Job, kind: Kind, spec: JobSpec): readonly FieldError[] {
  const errors = newErrors(kind, job.spec, spec);
  return errors.length > 0 ? errors : beyondBounds(job, kind, spec);
}

/** What the kind finds wrong with the new numbers, and did not find wrong before: rules may have become stricter since the job was made. */
function newErrors(kind: Kind, before: JobSpec, after: JobSpec): readonly FieldError[] {
  if (resizedRoles(before, after).length === 0) return [];
  const old = new Set(checkSent(kind, sentAgain(before)).map((error) => canonicalJson(error)));
  const errors = checkSent(kind, sentAgain(after)).filter((error) => !old.has(canonicalJson(error)));
  // A minimum that follows the numbers is no field that anybody has sent.
  return errors.filter(({ path }) => path !== "spec.runPolicy.schedulingPolicy.minAvailable");
}

function sentAgain({ kind, replicaSpecs, kindSpec }: JobSpec): SentSpec {
  return { kind, replicaSpecs, kindSpec };
}

function resizedRoles(before: JobSpec, after: JobSpec): readonly string[] {
  return rolesOf(after).filter((role) => after.replicaSpecs[role]?.replicas !== before.replicaSpecs[role]?.replicas);
}

/** The first replica type whose number changes although the gang is on board and its kind does not let it; null if there is none. */
function fixedRole(job: Job, kind: Kind, spec: JobSpec): string | null {
  if (!isBoarded(job)) return null;
  const elastic = (kind.elasticRoles?.(job.spec) ?? []).map(({ name }) => name);
  return resizedRoles(job.spec, spec).find((role) => !elastic.includes(role)) ?? null;
}

/** Numbers beyond the bounds between which the gang's members may come and go. */
function beyondBounds(job: Job, kind: Kind, spec: JobSpec): readonly FieldError[] {
  if (!isBoarded(job)) return [];
  const resized = resizedRoles(job.spec, spec);
  return (kind.elasticRoles?.(job.spec) ?? []).flatMap(({ name, min, max }) => {
    const count = spec.replicaSpecs[name]?.replicas ?? 0;
    if (!resized.includes(name) || (count >= min && (max === null || count <= max))) return [];
    const message = `must be ${min} to ${max ?? "any number"} while the job is admitted, as its elastic policy says`;
    return [{ path: `spec.replicaSpecs.${name}.replicas`, message }];
  });
}

function describe(job: Job, spec: JobSpec, labels: Job["labels"]): string {
  const before = job.spec;
  const said = resizedRoles(before, spec).map((role) => {
    return `replicas of ${role} from ${before.replicaSpecs[role]?.replicas} to ${spec.replicaSpecs[role]?.replicas}`;
  });
  if (spec.priority !== before.priority) said.push(`priority from ${before.priority} to ${spec.priority}`);
  if (spec.runPolicy.suspend !== (before.runPolicy.suspend ?? false)) {
    said.push(spec.runPolicy.suspend ? "to be suspended" : "to be resumed");
  }
  if (canonicalJson(labels) !== canonicalJson(job.labels)) said.push("labels");
  return said.join(", ");
}
