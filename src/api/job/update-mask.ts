import type { DescMessage } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { JobSchema } from "../../gen/gangway/v1/job_pb.ts";

/**
 * The fields of a job that an update mask names. `roles` are the replica types whose numbers change; `all` means every
 * type that the request names.
 */
export type JobMask = {
  readonly priority: boolean;
  readonly priorityClass: boolean;
  readonly suspend: boolean;
  readonly labels: boolean;
  readonly roles: readonly string[] | "all";
  /** The replica types whose templates change. */
  readonly templates: readonly string[];
};

const REPLICAS = /^spec\.replica_specs\.([^.]+)\.replicas$/;
const TEMPLATE = /^spec\.replica_specs\.([^.]+)\.template$/;
const ALL_REPLICAS = ["spec.replica_specs", "spec.replica_specs.*.replicas"];
const CHANGEABLE =
  "spec.priority, spec.priority_class_name, spec.replica_specs.*.replicas, spec.replica_specs.TYPE.template, " +
  "spec.run_policy.suspend, metadata.labels";

/** Reads the paths of an update mask. Returns a note for each path that names no field, or an immutable one. */
export function readJobMask(paths: readonly string[]): {
  readonly mask: JobMask;
  readonly notes: readonly FieldNote[];
} {
  const roles = paths.flatMap((path) => REPLICAS.exec(path)?.[1] ?? []).filter((role) => role !== "*");
  const mask: JobMask = {
    priority: paths.includes("spec.priority"),
    priorityClass: paths.includes("spec.priority_class_name"),
    suspend: paths.includes("spec.run_policy.suspend"),
    labels: paths.includes("metadata.labels"),
    templates: [...new Set(paths.flatMap((path) => TEMPLATE.exec(path)?.[1] ?? []))],
    roles: paths.some((path) => ALL_REPLICAS.includes(path)) ? "all" : [...new Set(roles)],
  };
  if (paths.length === 0) {
    return { mask, notes: [{ field: "update_mask", message: `must name the fields to change, of: ${CHANGEABLE}` }] };
  }
  const notes = paths.flatMap((path, at): FieldNote[] => {
    const problem = problemOf(path);
    return problem === null ? [] : [{ field: `update_mask.paths[${at}]`, message: problem }];
  });
  return { mask, notes };
}

function problemOf(path: string): string | null {
  const plain = ["spec.priority", "spec.priority_class_name", "spec.run_policy.suspend", "metadata.labels"];
  const known = [...plain, ...ALL_REPLICAS];
  if (known.includes(path) || REPLICAS.test(path) || isTemplateOfType(path)) return null;
  const named = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  if (!isField(JobSchema, path.split(".")))
    return `${named} is not a field of a job; the fields that can change are ${CHANGEABLE}`;
  return `${named} cannot change after the job was created; the fields that can change are ${CHANGEABLE}`;
}

function isTemplateOfType(path: string): boolean {
  const role = TEMPLATE.exec(path)?.[1];
  return role !== undefined && role !== "*";
}

/** True if the names lead to a field. A map is followed by a key, a Struct by anything. */
function isField(message: DescMessage, names: readonly string[]): boolean {
  const [name, ...rest] = names;
  const field = message.fields.find((one) => one.name === name);
  if (field === undefined) return false;
  const [, ...below] = field.fieldKind === "map" ? rest : ["", ...rest];
  if (rest.length === 0 || below.length === 0) return true;
  if (field.fieldKind === "scalar" || field.fieldKind === "enum" || field.message === undefined) return false;
  return field.message.typeName === "google.protobuf.Struct" || isField(field.message, below);
}
