import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { type Runtime, RuntimeSchema } from "../../gen/gangway/v1/runtime_service_pb.ts";
import { runtimeManifest } from "../../manifest/read-runtime.ts";
import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";

/**
 * The JSON mapping of a message. A job also has `apiVersion` and `kind`: it is a manifest that can be submitted. A
 * training runtime is a manifest of Kubeflow Trainer, which can be applied.
 */
export function messageJson<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject {
  if (schema.typeName === RuntimeSchema.typeName) return runtimeManifest(message as unknown as Runtime);
  const json = toJson(schema, message) as JsonObject;
  if (schema.typeName === JobSchema.typeName) return manifestOf(json);
  if (schema.typeName !== ListJobsResponseSchema.typeName || !Array.isArray(json["jobs"])) return json;
  return { ...json, jobs: json["jobs"].map((job: Json) => (isJsonObject(job) ? manifestOf(job) : job)) };
}

function manifestOf(job: JsonObject): JsonObject {
  return { apiVersion: "gangway.dev/v1", kind: objectAt(job, "spec")["kind"] ?? "Job", ...job };
}

/** The items of a list; null for a message that is no list. */
export function itemsOf(schema: DescMessage, json: JsonObject): readonly Json[] | null {
  if (!/^(List\w+|GetCapacity)Response$/.test(schema.name)) return null;
  const list = schema.fields.find((field) => field.fieldKind === "list");
  return arrayAt(json, list?.jsonName ?? "");
}

/** The YAML documents of a message: one for each job of a list, so that the text can be submitted. */
export function documentsOf(schema: DescMessage, json: JsonObject): readonly Json[] {
  const jobs = arrayAt(json, "jobs");
  return schema.typeName === ListJobsResponseSchema.typeName && jobs.length > 0 ? jobs : [json];
}
