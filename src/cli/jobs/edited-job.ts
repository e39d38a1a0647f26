/** Compares a job with the manifest that a user made of it, and says which fields an update must change. */
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import { messageJson } from "../output/message-json.ts";
import { type MaskedUpdate, partialSpec } from "./update-job.ts";

/** The parts of a job that can change after it was created. */
export const CHANGEABLE =
  "metadata.labels, spec.priority, spec.priorityClassName, spec.replicaSpecs.TYPE.replicas and spec.runPolicy.suspend";

/** The members of the metadata that a user gave, or needs to see. */
const METADATA = ["name", "namespace", "labels", "annotations"];
const DIFFERENCES_MAX = 20;

export type JobEdit =
  /** A null update: nothing is different. */
  | { readonly kind: "valid"; readonly update: MaskedUpdate | null }
  | { readonly kind: "invalid"; readonly errors: readonly string[] };

/** A job as JSON, without what the service alone decides. */
export function editableJson(job: Job): JsonObject {
  const { apiVersion, kind, metadata, spec } = messageJson(JobSchema, job);
  const given = Object.entries(objectAt({ metadata }, "metadata")).filter(([name]) => METADATA.includes(name));
  return { apiVersion, kind, metadata: Object.fromEntries(given), spec };
}

/** Decides how a job becomes as it was edited. Names each field that cannot change. */
export function editOf(before: Job, after: Job): JobEdit {
  const errors = differences(fixedPart(before), fixedPart(after), "").map(
    (path) => `${path}: cannot change after the job was created`,
  );
  const missing = Object.entries(after.spec?.replicaSpecs ?? {}).flatMap(([role, { replicas }]) =>
    replicas === undefined ? [`spec.replicaSpecs.${role}.replicas: is required`] : [],
  );
  if (errors.length + missing.length > 0) return { kind: "invalid", errors: [...errors, ...missing] };
  return { kind: "valid", update: updateOf(before, after) };
}

function updateOf(before: Job, after: Job): MaskedUpdate | null {
  const [old, wanted] = [changeablePart(before), changeablePart(after)];
  const roles = Object.keys(wanted.replicas).filter((role) => wanted.replicas[role] !== old.replicas[role]);
  const changes = {
    priority: wanted.priority !== old.priority,
    priorityClass: wanted.priorityClassName !== old.priorityClassName,
    suspend: wanted.suspend !== old.suspend,
    labels: canonicalJson(wanted.labels) !== canonicalJson(old.labels),
  };
  const paths = [
    ...(changes.priority ? ["spec.priority"] : []),
    ...(changes.priorityClass ? ["spec.priority_class_name"] : []),
    ...(changes.suspend ? ["spec.run_policy.suspend"] : []),
    ...(changes.labels ? ["metadata.labels"] : []),
    ...roles.map((role) => `spec.replica_specs.${role}.replicas`),
  ];
  if (paths.length === 0) return null;
  const spec = partialSpec({
    priority: wanted.priority,
    priorityClassName: wanted.priorityClassName,
    runPolicy: { suspend: wanted.suspend },
    replicaSpecs: Object.fromEntries(roles.map((role) => [role, { replicas: wanted.replicas[role] ?? 0 }])),
  });
  return { spec, labels: { ...wanted.labels }, paths };
}

/** True if an edit of one job means the same for the other: a user has seen everything that can change. */
export function looksTheSame(one: Job, other: Job): boolean {
  return canonicalJson(editableJson(one)) === canonicalJson(editableJson(other));
}

function changeablePart({ metadata, spec }: Job) {
  const roles = Object.entries(spec?.replicaSpecs ?? {});
  return {
    labels: metadata?.labels ?? {},
    priority: spec?.priority ?? 0,
    priorityClassName: spec?.priorityClassName ?? "",
    suspend: spec?.runPolicy?.suspend ?? false,
    replicas: Object.fromEntries(roles.map(([role, { replicas }]) => [role, replicas])),
  };
}

/** The editable JSON of a job without the members that can change. */
function fixedPart(job: Job): JsonObject {
  const json = editableJson(job);
  const { labels: _labels, ...metadata } = objectAt(json, "metadata");
  const { priority: _1, priorityClassName: _2, runPolicy, replicaSpecs, ...spec } = objectAt(json, "spec");
  const { suspend: _suspend, ...policy } = objectAt({ runPolicy }, "runPolicy");
  const roles = Object.entries(objectAt({ replicaSpecs }, "replicaSpecs")).map(([role, replica]) => {
    const { replicas: _replicas, ...fixed } = objectAt({ replica }, "replica");
    return [role, fixed] as const;
  });
  return { ...json, metadata, spec: { ...spec, runPolicy: policy, replicaSpecs: Object.fromEntries(roles) } };
}

/** The paths at which two values differ, each as deep as it can be named. */
function differences(before: Json | undefined, after: Json | undefined, path: string): readonly string[] {
  if (canonicalJson(before ?? null) === canonicalJson(after ?? null)) return [];
  const named = (member: string) => (path === "" ? member : `${path}.${member}`);
  if (isJsonObject(before ?? null) && isJsonObject(after ?? null)) {
    const [one, other] = [before, after] as readonly [JsonObject, JsonObject];
    const members = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return members
      .flatMap((member) => differences(one[member], other[member], named(member)))
      .slice(0, DIFFERENCES_MAX);
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const items = before as readonly Json[];
    return items.flatMap((item, at) => differences(item, after[at], `${path}[${at}]`)).slice(0, DIFFERENCES_MAX);
  }
  return [path];
}
