/** Takes the manifest of a request in place of a job. It serves users who have manifests, and no command line. */
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { ManifestFacts } from "../../core/kinds/manifest/read-spec.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { checkRequest, mergeNotes } from "../rpc/check-request.ts";
import { invalidFields } from "../rpc/rpc-error.ts";

/** A request that names a job, or has a manifest in its place. */
type JobRequest = { readonly job?: Job | undefined; readonly manifest?: object | undefined };

/** The job of a request, and what its constraints say of it. */
export type RequestedJob = {
  readonly job: Job | undefined;
  readonly violations: readonly FieldNote[];
  /** What was changed or ignored in the manifest. */
  readonly warnings: readonly FieldNote[];
  /** Names a field as the request has it. */
  readonly named: (note: FieldNote) => FieldNote;
};

/** Fields that a request with a manifest may omit. */
const OMITTED: readonly string[] = ["job", "job.spec", "job.metadata"];

/**
 * The job that a request asks for. `violations`: the constraints of the proto that the request breaks. With `strict`,
 * what a manifest has in vain is an error. Throws INVALID_ARGUMENT for a manifest that is no job.
 */
export function requestedJob(
  { job, manifest }: JobRequest,
  {
    violations,
    strict,
    kinds,
    runtimeOf,
  }: {
    readonly violations: readonly FieldNote[];
    readonly strict: boolean;
    readonly kinds: Registry;
    readonly runtimeOf: ManifestFacts["runtimeOf"];
  },
): RequestedJob {
  if (manifest === undefined) return { job, violations, warnings: [], named: (note) => note };
  const others = violations.filter(({ field }) => !OMITTED.includes(field));
  const errors = mergeNotes(others, besideManifest(job));
  if (errors.length > 0) throw invalidFields(errors);
  const namespace = job?.metadata?.namespace || "default";
  const document = manifest as JsonObject;
  const own = stringAt(objectAt(document, "metadata"), "namespace") ?? namespace;
  if (own !== namespace) {
    const message = `must be ${namespace}, which is job.metadata.namespace, or omitted`;
    throw invalidFields([{ field: "manifest.metadata.namespace", message }]);
  }
  const read = readManifest(document, { kinds, namespace: { name: namespace, isExplicit: false }, runtimeOf });
  if (read.kind === "invalid") throw invalidFields(read.errors.map(inManifest));
  if (strict && read.warnings.length > 0) throw invalidFields(read.warnings.map(inManifest));
  const named = ({ field, message, ...note }: FieldNote): FieldNote => {
    const text = read.spelled(message);
    return field.startsWith("job.")
      ? inManifest({ ...note, field: read.spelled(field), message: text })
      : { ...note, field, message };
  };
  const broken = checkRequest(JobSchema, read.job).map(({ field, ...note }) =>
    named({ field: `job.${field}`, ...note }),
  );
  return { job: read.job, violations: broken, warnings: read.warnings.map(inManifest), named };
}

/** A job's own fields would contradict the manifest. */
function besideManifest(job: Job | undefined): readonly FieldNote[] {
  const { name = "", generateName = "", labels = {}, annotations = {} } = job?.metadata ?? {};
  const given = {
    "job.spec": job?.spec !== undefined,
    "job.metadata.name": name !== "",
    "job.metadata.generate_name": generateName !== "",
    "job.metadata.labels": Object.keys(labels).length > 0,
    "job.metadata.annotations": Object.keys(annotations).length > 0,
  };
  return Object.entries(given).flatMap(([field, isGiven]) =>
    isGiven ? [{ field, message: "must be omitted beside a manifest" }] : [],
  );
}

function inManifest({ field, ...note }: FieldNote): FieldNote {
  return { field: field === "" ? "manifest" : `manifest.${field}`, ...note };
}
