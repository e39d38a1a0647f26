import type { DescMessage } from "@bufbuild/protobuf";
import type { FieldNote } from "../core/job/sent.ts";
import { JobSchema } from "../gen/gangway/v1/job_pb.ts";

/** What an update mask names of a job. `roles`: replica types whose numbers change; `all`: of every one that the request names. */
export type JobMask = {
  readonly priority: boolean;
  readonly suspend: boolean;
  readonly labels: boolean;
  readonly roles: readonly string[] | "all";
};

const REPLICAS = /^spec\.replica_specs\.([^.]+)\.replicas$/;
const ALL_REPLICAS = ["spec.replica_specs", "spec.replica_specs.*.replicas"];
const CHANGEABLE = "spec.priority, spec.replica_specs.*.replicas, spec.run_policy.suspend, metadata.labels";

/** Reads the paths of an update mask; a note for each that names nothing, or nothing that can be changed. */
export function readJobMask(paths: readonly string[]): {
  readonly mask: JobMask;
  readonly notes: readonly FieldNote[];
} {
  const roles = paths.flatMap((path) => REPLICAS.exec(path)?.[1] ?? []).filter((role) => role !== "*");
  const mask: JobMask = {
    priority: paths.includes("spec.priority"),
    suspend: paths.includes("spec.run_policy.suspend"),
    labels: paths.includes("metadata.labels"),
    roles: paths.some((path) => ALL_REPLICAS.includes(path)) ? "all" : [...new Set(roles)],
  };
  if (paths.length === 0) {
    return { mask, notes: [{ field: "update_mask", message: `must name what is to change, of ${CHANGEABLE}` }] };
  }
  const notes = paths.flatMap((path, at): FieldNote[] => {
    const problem = problemOf(path);
    return problem === null ? [] : [{ field: `update_mask.paths[${at}]`, message: problem }];
  });
  return { mask, notes };
}

function problemOf(path: string): string | null {
  const known = ["spec.priority", "spec.run_policy.suspend", "metadata.labels", ...ALL_REPLICAS];
  if (known.includes(path) || REPLICAS.test(path)) return null;
  const named = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  if (!isField(JobSchema, path.split(".")))
    return `${named} is no field of a job; what can be changed is ${CHANGEABLE}`;
  return `${named} cannot be changed once the job is made; what can be changed is ${CHANGEABLE}`;
}

/** True if the names lead to a field; after a map comes a key, and below a Struct anything. */
function isField(message: DescMessage, names: readonly string[]): boolean {
  const [name, ...rest] = names;
  const field = message.fields.find((one) => one.name === name);
  if (field === undefined) return false;
  const [, ...below] = field.fieldKind === "map" ? rest : ["", ...rest];
  if (rest.length === 0 || below.length === 0) return true;
  if (field.fieldKind === "scalar" || field.fieldKind === "enum" || field.message === undefined) return false;
  return field.message.typeName === "google.protobuf.Struct" || isField(field.message, below);
}
