/**
 * Judges the pods and services of a job before it exists, as the API servers of its clusters will: names, labels,
 * variables and the parts of its kind included. A job is judged when it is submitted and when it asks for more. The
 * members of a replica type differ in names and numbers alone, so one pod of each type is judged.
 */
import type { JsonObject } from "../../../runtime/json.ts";
import type { Job } from "../../job/job.ts";
import type { FieldError } from "../../job/request/sent.ts";
import type { JobSpec, ReplicaSpec } from "../../job/spec.ts";
import type { Kind } from "../../kinds/kind.ts";
import { podName } from "../../kinds/pod-name.ts";
import type { Finding, PodFindings } from "../../pods/judge/finding.ts";
import { judgePod } from "../../pods/judge/judge-pod.ts";
import { placeText } from "../../pods/judge/place.ts";
import { judgeTemplate } from "../../pods/judge/template-errors.ts";
import { findingErrors } from "../../pods/judge/words.ts";
import { type BuildTarget, judgedManifest } from "./build-objects.ts";

/**
 * Kinds are asked about a gang of at most this many replicas of a type. Some kinds name all members in the environment
 * of each pod.
 */
const REPLICAS_MAX = 64;

/** The values that an operator sets. They are not known where jobs are submitted. */
const BUILD = {
  installation: "installation",
  clusterDomain: "",
  initImage: "gangway.invalid/init",
  kubectlImage: "gangway.invalid/kubectl",
};

export type JudgedRole = {
  readonly role: string;
  /** The template that the user wrote. Errors that it does not have itself are said to be the platform's. */
  readonly sent: JsonObject;
};

/** The errors in the pods of a replica type. Paths start at its template. */
export type RoleErrors = { readonly role: string; readonly errors: readonly FieldError[] };

/** Judges one pod of each of these replica types. Throws if the kind throws. */
export function podErrors(job: Job, kind: Kind, roles: readonly JudgedRole[]): readonly RoleErrors[] {
  const judged = bounded(job);
  const target: BuildTarget = {
    job: judged,
    kind,
    admission: { number: 1, cluster: "", members: membersOf(judged.spec), flavorLabels: {} },
    build: BUILD,
    scheduler: null,
  };
  return roles.flatMap((of) => {
    const errors = errorsOf(target, of);
    return errors.length === 0 ? [] : [{ role: of.role, errors }];
  });
}

function errorsOf(target: BuildTarget, { role, sent }: JudgedRole): readonly FieldError[] {
  const { job, kind } = target;
  const slot = { role, index: 0, name: podName({ job, kind, role, index: 0 }), attempt: 1 };
  for (const one of attemptsOf(job, role)) {
    const found = judgePod(judgedManifest({ ...target, job: one }, slot));
    const errors = found.kept.length === 0 ? [] : told(found, sent);
    if (errors.length > 0) return errors;
  }
  return [];
}

/** The job as it is, and as it is once its pods are not interruptible any more, if they then have another template. */
function attemptsOf(job: Job, role: string): readonly Job[] {
  if (job.spec.replicaSpecs[role]?.uninterruptedTemplate === undefined) return [job];
  const attempts = { ...job.status.attempts, system: Number.MAX_SAFE_INTEGER };
  return [job, { ...job, status: { ...job.status, attempts } }];
}

/**
 * An error that the template does not have itself comes from the platform, from Gangway or from the kind. Names and
 * labels that Gangway gives are not told here: the job's own name is checked where it is.
 */
function told(found: PodFindings, sent: JsonObject): readonly FieldError[] {
  const own = new Set(judgeTemplate(sent).kept.map(keyOf));
  const kept = found.kept.flatMap((finding): readonly Finding[] => {
    if (own.has(keyOf(finding))) return [finding];
    const allowed = `${finding.allowed ?? finding.detail}${NOT_OWN}`;
    return OF_GANGWAY.some((pattern) => pattern.test(placeText(finding.place))) ? [] : [{ ...finding, allowed }];
  });
  return findingErrors({ kept, more: found.more });
}

/** Members that have the job's name, or names of Gangway. */
const OF_GANGWAY = [
  /^metadata\.(?:name|labels\.job-name)$/,
  /^metadata\.labels\["(?:gangway\.dev|training\.kubeflow\.org)\//,
  /^metadata\.(?:labels|annotations)\["(?:batch\.kubernetes\.io\/job-name|jobset\.sigs\.k8s\.io\/jobset-name)"\]/,
  /^spec\.(?:hostname|subdomain)$/,
];
const NOT_OWN = " (in the pod that the platform builds from the template)";

function keyOf({ kind, place, detail, value }: Finding): string {
  return JSON.stringify([kind, placeText(place), detail, value]);
}

function bounded(job: Job): Job {
  const few = Object.entries(job.spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
    role,
    { ...replica, replicas: Math.min(replica.replicas, REPLICAS_MAX) },
  ]);
  return { ...job, spec: { ...job.spec, replicaSpecs: Object.fromEntries(few) } };
}

function membersOf({ replicaSpecs }: JobSpec): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(replicaSpecs).map(([role, { replicas }]) => [role, replicas]));
}
