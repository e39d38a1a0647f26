/** Reads the spec of a manifest of `batch/v1`. It serves users who bring manifests of Kubernetes as they are. */
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { objectAt } from "../../../runtime/json.ts";
import type { SentReplicaSpec, SentRunPolicy } from "../../job/request/sent.ts";
import type { RestartPolicy } from "../../job/spec.ts";
import { managedBy } from "../manifest/managed-by.ts";
import type { ReadSpec } from "../manifest/read-spec.ts";
import { readDeadline, readTtl } from "../manifest/read-times.ts";
import { type SentReader, sentOnly } from "../manifest/sent-reader.ts";
import { BATCH_FIELDS } from "./batch-schema.ts";
import { BATCH_ROLE } from "./batch-spec.ts";

const OWN_CONTROLLER = "kubernetes.io/job-controller";
/** Members that a Job of Gangway cannot have, with what to do. */
const REFUSED: Readonly<Record<string, string>> = {
  selector: "is set by Gangway; remove it",
  scheduling: "is not served by Gangway, which schedules the pods of a job together; remove it",
};
const MEMBERS = [
  ...Object.keys(BATCH_FIELDS),
  ...Object.keys(REFUSED),
  "parallelism",
  "activeDeadlineSeconds",
  "ttlSecondsAfterFinished",
  "suspend",
  "managedBy",
  "manualSelector",
  "template",
];
const REPLICA = `replicaSpecs.${BATCH_ROLE}`;

/** Where a manifest has the members of a spec in Gangway's own form. */
const SOURCES: ReadonlyMap<string, string> = new Map([
  ["kindSpec", "spec"],
  ["replicaSpecs", "spec"],
  [REPLICA, "spec"],
  [`${REPLICA}.replicas`, "spec.parallelism"],
  [`${REPLICA}.restartPolicy`, "spec.template.spec.restartPolicy"],
  [`${REPLICA}.template`, "spec.template"],
  ...["activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend"].map(
    (member) => [`runPolicy.${member}`, `spec.${member}`] as const,
  ),
]);

/** Source of the defaults: `SetDefaults_Job` of Kubernetes. */
export const readBatchJob: ReadSpec = (reader, spec) => {
  reader.onlyKnown(spec, "spec", MEMBERS);
  for (const [member, message] of Object.entries(REFUSED)) {
    if ((spec[member] ?? null) !== null) reader.fail(`spec.${member}`, message);
  }
  refuseManualSelector(reader, spec, "spec");
  managedBy(reader, spec["managedBy"], "spec.managedBy", OWN_CONTROLLER);
  const { replicas, completions } = readCounts(reader, spec);
  const fields = Object.fromEntries(
    Object.keys(BATCH_FIELDS).flatMap((member) => ((spec[member] ?? null) === null ? [] : [[member, spec[member]]])),
  ) as JsonObject;
  const { completions: _sent, ...others } = fields;
  const runPolicy = readRunPolicy(reader, spec);
  return {
    spec: {
      replicaSpecs: {
        [BATCH_ROLE]: { replicas, ...readPodTemplate(reader, spec["template"], { path: "spec.template" }) },
      },
      ...(Object.keys(runPolicy).length === 0 ? {} : { runPolicy }),
      kindSpec: completions === null ? others : { ...others, completions },
    },
    sources: SOURCES,
  };
};

/** `path`: of the spec of a Job. */
export function refuseManualSelector(reader: SentReader, spec: JsonObject, path: string): void {
  if (reader.flag(spec["manualSelector"], `${path}.manualSelector`) === true) {
    reader.fail(`${path}.manualSelector`, "must be false or omitted: Gangway sets the selector");
  }
}

/** Completions that follow from the number of pods are left out: they change with it. */
function readCounts(
  reader: SentReader,
  spec: JsonObject,
): { readonly replicas: number; readonly completions: number | null } {
  const count = (member: string) => reader.wholeNumber(spec[member], `spec.${member}`, { least: 0 });
  const [sentParallelism, completions] = [count("parallelism"), count("completions")];
  const parallelism = sentParallelism ?? 1;
  const isIndexed = spec["completionMode"] === "Indexed";
  if (isIndexed && completions === undefined) {
    reader.fail("spec.completions", "is required with completionMode Indexed");
    return { replicas: parallelism, completions: null };
  }
  if (completions === undefined) {
    return { replicas: parallelism, completions: sentParallelism === undefined ? 1 : null };
  }
  const replicas = completions > 0 ? Math.min(parallelism, completions) : parallelism;
  return { replicas, completions: isIndexed && completions === replicas ? null : completions };
}

function readRunPolicy(reader: SentReader, spec: JsonObject): SentRunPolicy {
  return sentOnly({
    activeDeadlineSeconds: readDeadline(reader, spec, "spec"),
    ttlSecondsAfterFinished: readTtl(reader, spec, "spec"),
    suspend: reader.flag(spec["suspend"], "spec.suspend"),
  });
}

/**
 * Reads a pod template, whose restart policy becomes that of the replica type. `otherwise`: the policy of a template
 * that names none. Omitted: it must.
 */
export function readPodTemplate(
  reader: SentReader,
  value: Json | undefined,
  { path, otherwise }: { readonly path: string; readonly otherwise?: RestartPolicy },
): Omit<SentReplicaSpec, "replicas"> {
  const template = reader.object(value, path) ?? reader.fail(path, "is required") ?? {};
  const { restartPolicy: sent = otherwise, ...podSpec } = objectAt(template, "spec");
  const policy = sent === "OnFailure" || sent === "Never" ? sent : undefined;
  if (policy === undefined) reader.fail(`${path}.spec.restartPolicy`, "must be OnFailure or Never");
  return sentOnly({ restartPolicy: policy, template: { ...template, spec: podSpec } });
}
