import type { FieldNote } from "../../core/job/sent.ts";
import { JobSpecSchema, RunPolicySchema } from "../../gen/gangway/v1/job_pb.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { isJsonObject } from "../../runtime/json.ts";
import { readProtoField, readProtoJson } from "./proto-json.ts";

/** How Kubeflow spells a kind's replica specs, and which other members of its spec we take. */
const KINDS: Readonly<Record<string, { readonly replicaSpecs: string; readonly kindSpec: readonly string[] }>> = {
  PyTorchJob: { replicaSpecs: "pytorchReplicaSpecs", kindSpec: ["nprocPerNode"] },
  TFJob: { replicaSpecs: "tfReplicaSpecs", kindSpec: [] },
};
/** What Kubeflow's manifests may say and we do not serve: refused, because leaving it out would run another job than was meant. */
const UNSERVED_SPEC = ["elasticPolicy", "successPolicy", "enableDynamicWorker"];
const UNSERVED_RUN_POLICY = ["suspend", "managedBy"];
/** What only steers Kubeflow's own gang scheduling; ours sums the pods' requests itself, and has priorities of its own. */
const IGNORED_SCHEDULING = ["minResources", "priorityClass"];

/** What was found to be wrong or odd so far. */
export type Found = { readonly errors: FieldNote[]; readonly warnings: FieldNote[] };

export const KUBEFLOW_KINDS: readonly string[] = Object.keys(KINDS);

/** The spec of a kubeflow.org/v1 manifest as our proto's JSON. */
export function readKubeflowSpec(kind: string, spec: JsonObject, found: Found): JsonObject {
  const form = KINDS[kind] ?? { replicaSpecs: "", kindSpec: [] };
  const { runPolicy = null, [form.replicaSpecs]: replicaSpecs = null, ...others } = spec;
  const kindSpec: Record<string, Json> = {};
  for (const [member, value] of Object.entries(others)) {
    if (value === undefined || value === null) continue;
    if (form.kindSpec.includes(member)) kindSpec[member] = value;
    else found.errors.push({ field: `spec.${member}`, message: specProblem(kind, member) });
  }
  const path = `spec.${form.replicaSpecs}`;
  if (replicaSpecs === null) found.errors.push({ field: path, message: "is missing" });
  return {
    kind,
    replicaSpecs: readProtoField(JobSpecSchema.field.replicaSpecs, replicaSpecs ?? {}, path, found.errors),
    ...(runPolicy === null ? {} : { runPolicy: readRunPolicy(runPolicy, found) }),
    ...(Object.keys(kindSpec).length === 0 ? {} : { kindSpec }),
  };
}

function specProblem(kind: string, member: string): string {
  return UNSERVED_SPEC.includes(member) ? "is not served yet" : `is not a field of a ${kind}`;
}

function readRunPolicy(value: Json, found: Found): JsonObject {
  const path = "spec.runPolicy";
  if (!isJsonObject(value)) return readProtoJson(RunPolicySchema, value, path, found.errors);
  const served: Record<string, Json | undefined> = { ...value };
  for (const member of UNSERVED_RUN_POLICY) {
    const given = served[member];
    delete served[member];
    // `suspend: false` asks for what happens anyway.
    if (given === undefined || given === null || given === false) continue;
    found.errors.push({ field: `${path}.${member}`, message: "is not served yet" });
  }
  const scheduling = served["schedulingPolicy"];
  if (isJsonObject(scheduling))
    served["schedulingPolicy"] = withoutIgnored(scheduling, `${path}.schedulingPolicy`, found);
  return readProtoJson(RunPolicySchema, served, path, found.errors);
}

function withoutIgnored(scheduling: JsonObject, path: string, found: { readonly warnings: FieldNote[] }): JsonObject {
  const kept: Record<string, Json | undefined> = { ...scheduling };
  for (const member of IGNORED_SCHEDULING) {
    if (kept[member] !== undefined) found.warnings.push({ field: `${path}.${member}`, message: "is ignored" });
    delete kept[member];
  }
  return kept;
}
