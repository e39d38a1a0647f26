/** Reads the spec of a manifest of `jobset.x-k8s.io/v1alpha2`. It serves users who bring JobSets as they are. */
import { isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { SentReplicaSpec } from "../../job/request/sent.ts";
import { readPodTemplate, refuseManualSelector } from "../batch/read-batch-job.ts";
import { managedBy } from "../manifest/managed-by.ts";
import type { ReadSpec } from "../manifest/read-spec.ts";
import { readTtl } from "../manifest/read-times.ts";
import { type SentReader, sentOnly } from "../manifest/sent-reader.ts";
import { childName } from "./child-jobs.ts";
import { exclusiveAnnotations } from "./exclusive-nodes.ts";
import { CHILD_FIELDS, JOBSET_FIELDS } from "./jobset-schema.ts";
import { childFields, countsOf } from "./jobset-spec.ts";

const OWN_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller";
const GROUPS_MAX = 100;
const NAME_CHARS_MAX = 63;
/** What a Job controller adds to the names of pods: a dash and five random characters. */
const SUFFIX_CHARS = 6;
/** Members of a child job that Gangway does not serve, with what to do. */
const CHILD_REFUSED: Readonly<Record<string, string>> = {
  selector: "is set by Gangway; remove it",
  scheduling: "is not served by Gangway, which schedules the pods of a job together; remove it",
};
/** Members of a child job that count for nothing: the JobSet's own do. */
const CHILD_IGNORED = ["suspend", "ttlSecondsAfterFinished", "managedBy", "manualSelector", "template"];
const MEMBERS = [...Object.keys(JOBSET_FIELDS), "suspend", "ttlSecondsAfterFinished", "managedBy"];
const GROUP_MEMBERS = ["name", "groupName", "replicas", "dependsOn", "template"];
const CHILD_MEMBERS = [...Object.keys(CHILD_FIELDS), ...Object.keys(CHILD_REFUSED), ...CHILD_IGNORED];

/** Source of the defaults: the defaulting webhook of JobSet. */
export const readJobSet: ReadSpec = (reader, spec, metadata) => {
  reader.onlyKnown(spec, "spec", MEMBERS);
  managedBy(reader, spec["managedBy"], "spec.managedBy", OWN_CONTROLLER);
  const { replicatedJobs, suspend, ttlSecondsAfterFinished: _ttl, managedBy: _manager, ...others } = spec;
  const list = Array.isArray(replicatedJobs) ? replicatedJobs : reader.fail("spec.replicatedJobs", "must be a list");
  const few = (list ?? []).length <= GROUPS_MAX ? (list ?? []) : [];
  if (list !== undefined && few.length < list.length) {
    reader.fail("spec.replicatedJobs", `must have at most ${GROUPS_MAX} groups`);
  }
  const groups = few.map((group, at) => {
    const read = readGroup(reader, group, `spec.replicatedJobs[${at}]`);
    return { ...read, field: withExclusive(read.field, exclusiveAnnotations(metadata)) };
  });
  for (const [at, { field }] of groups.entries()) checkNames(reader, field, { at, jobName: metadata.name ?? "" });
  const runPolicy = sentOnly({
    suspend: reader.flag(suspend, "spec.suspend"),
    ttlSecondsAfterFinished: readTtl(reader, spec, "spec"),
  });
  const replicas = groups.flatMap(({ name, replica }) => (replica === null ? [] : [[name, replica] as const]));
  return {
    spec: {
      replicaSpecs: Object.fromEntries(replicas),
      ...(Object.keys(runPolicy).length === 0 ? {} : { runPolicy }),
      kindSpec: { ...others, replicatedJobs: groups.map(({ field }) => field) },
    },
    sources: new Map([
      ["kindSpec", "spec"],
      ["replicaSpecs", "spec.replicatedJobs"],
      ["runPolicy.suspend", "spec.suspend"],
      ["runPolicy.ttlSecondsAfterFinished", "spec.ttlSecondsAfterFinished"],
      ...groups.flatMap(({ name, path }) => sourcesOf(name, path)),
    ]),
  };
};

/** Where a manifest has the members of a replica type. */
function sourcesOf(name: string, path: string): readonly (readonly [string, string])[] {
  const own = `replicaSpecs.${name}`;
  const job = `${path}.template.spec`;
  return [
    [own, path],
    [`${own}.replicas`, `${path}.replicas`],
    [`${own}.restartPolicy`, `${job}.template.spec.restartPolicy`],
    [`${own}.template`, `${job}.template`],
  ];
}

type ReadGroup = {
  readonly name: string;
  readonly path: string;
  /** Its entry of the kind spec. */
  readonly field: JsonObject;
  /** Null: it has no pods. */
  readonly replica: SentReplicaSpec | null;
};

function readGroup(reader: SentReader, value: Json, path: string): ReadGroup {
  const group = reader.object(value, path) ?? {};
  reader.onlyKnown(group, path, GROUP_MEMBERS);
  const name = reader.text(group["name"], `${path}.name`) ?? reader.fail(`${path}.name`, "is required") ?? "";
  const template = reader.object(group["template"], `${path}.template`) ?? {};
  const job = reader.object(template["spec"], `${path}.template.spec`) ?? {};
  const at = `${path}.template.spec`;
  reader.onlyKnown(template, `${path}.template`, ["metadata", "spec"]);
  reader.onlyKnown(job, at, CHILD_MEMBERS);
  refuse(reader, job, { path: at, refused: CHILD_REFUSED });
  const jobs = reader.wholeNumber(group["replicas"], `${path}.replicas`, { least: 0 }) ?? 1;
  for (const member of ["parallelism", "completions"]) reader.wholeNumber(job[member], `${at}.${member}`, { least: 0 });
  const kept = Object.entries(job).filter(([member]) => member in CHILD_FIELDS);
  const field: JsonObject = {
    ...group,
    template: {
      ...(template["metadata"] === undefined ? {} : { metadata: template["metadata"] }),
      spec: Object.fromEntries(kept) as JsonObject,
    },
  };
  const pod = readPodTemplate(reader, job["template"], { path: `${at}.template`, otherwise: "OnFailure" });
  const { pods } = countsOf(childFields(field));
  return { name, path, field, replica: jobs * pods === 0 ? null : { replicas: jobs * pods, ...pod } };
}

/** The group with annotations of its set, unless it has them itself. */
function withExclusive(field: JsonObject, ofSet: Readonly<Record<string, string>>): JsonObject {
  if (Object.keys(ofSet).length === 0) return field;
  const template = objectAt(field, "template");
  const metadata = objectAt(template, "metadata");
  const joined = { ...ofSet, ...objectAt(metadata, "annotations") };
  return { ...field, template: { ...template, metadata: { ...metadata, annotations: joined } } };
}

/** Pods are found by these names, and the names of child jobs are labels. */
function checkNames(
  reader: SentReader,
  field: JsonObject,
  { at, jobName }: { readonly at: number; readonly jobName: string },
): void {
  const jobs = field["replicas"] ?? 1;
  const last = typeof jobs === "number" ? Math.max(0, jobs - 1) : 0;
  const job = childName(jobName, stringAt(field, "name") ?? "", last);
  const pod = `${job}-${Math.max(0, countsOf(childFields(field)).parts - 1)}`;
  const path = `spec.replicatedJobs[${at}].name`;
  if (job.length > NAME_CHARS_MAX) {
    reader.fail(
      path,
      `is too long: the child job ${job.slice(0, NAME_CHARS_MAX)}… would have ${job.length} characters`,
    );
  } else if (pod.length + SUFFIX_CHARS > NAME_CHARS_MAX) {
    const message = `is too long: pods such as ${pod} may have at most ${NAME_CHARS_MAX - SUFFIX_CHARS} characters`;
    reader.fail(path, message);
  }
}

function refuse(
  reader: SentReader,
  object: JsonObject,
  { path, refused }: { readonly path: string; readonly refused: Readonly<Record<string, string>> },
): void {
  for (const [member, message] of Object.entries(refused)) {
    const value = object[member] ?? null;
    const isSaid = value !== null && !(Array.isArray(value) && value.length === 0);
    if (isSaid && !(isJsonObject(value) && Object.keys(value).length === 0)) reader.fail(`${path}.${member}`, message);
  }
  refuseManualSelector(reader, object, path);
}
