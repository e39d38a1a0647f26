import type { JobName, UpdateOutcome } from "../../core/job/request/requests.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { RESUMES_A_DAY } from "../../core/job/set-aside.ts";
import type { AskedChange } from "../../core/kinds/change-job.ts";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import type { UpdateJobRequest } from "../../gen/gangway/v1/job_service_pb.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { JobIntake, JobReads } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { type CallAccess, namespacePlace } from "../rpc/call-access.ts";
import { checkRequest } from "../rpc/check-request.ts";
import { failedPrecondition, invalidFields, notFound, staleVersion } from "../rpc/rpc-error.ts";
import { type KindNames, recordOf, toProtoJob } from "./convert-job.ts";
import { sightOf, withoutOthers } from "./hide-others.ts";
import { noRoomError } from "./no-room.ts";
import { type JobMask, readJobMask } from "./update-mask.ts";

const RESOURCE_VERSION = /^\d{0,15}$/;

/** Changes the fields that the mask names. Repeating the change changes nothing more. */
export async function updateJob(
  { intake, reads, kinds }: { readonly intake: JobIntake; readonly reads: JobReads; readonly kinds: KindNames },
  request: UpdateJobRequest,
  { access }: Pick<CallContext, "access">,
) {
  const { job } = request;
  const { mask, notes } = readJobMask(request.updateMask?.paths ?? []);
  if (job === undefined) throw invalidFields([...notes, { field: "job", message: "must be set" }]);
  const wrong = [...notes, ...checkIdentity(job), ...checkMasked(job, mask), ...missingReplicas(job, mask)];
  if (wrong.length > 0) throw invalidFields(wrong);
  const name = { namespace: job.metadata?.namespace || "default", name: job.metadata?.name ?? "" };
  if (access.enforced) await demandQueue(reads, name, access);
  const place = namespacePlace(name.namespace);
  const wanted = { ...wantedOf(job, mask), mayReinstate: access.may("jobs.reinstate", place) };
  const after = withoutOthers(updated(await intake.change(name, wanted), name), sightOf(access));
  const view = access.may("jobs.secrets", place) ? "FULL" : "BASIC";
  return { job: toProtoJob(recordOf(after), { view, kinds }) };
}

/** A change may start pods, so it needs the queue as a submission does. The queue of a job never changes. */
async function demandQueue(reads: JobReads, name: JobName, access: CallAccess): Promise<void> {
  const found = await reads.getJob(name);
  if (found === null) return;
  access.demand("queues.use", { kind: "queue", name: found.job.spec.runPolicy.schedulingPolicy.queue });
}

function wantedOf({ metadata, spec }: Job, mask: JobMask): AskedChange {
  const version = metadata?.resourceVersion ?? "";
  return {
    version: version === "" ? null : Number(version),
    ...(mask.priority ? { priority: spec?.priority ?? 0 } : null),
    ...(mask.priorityClass ? { priorityClassName: spec?.priorityClassName ?? "" } : null),
    ...(mask.suspend ? { suspend: spec?.runPolicy?.suspend ?? false } : null),
    ...(mask.labels ? { labels: metadata?.labels ?? {} } : null),
    ...(mask.roles.length > 0 ? { replicas: replicasOf(spec, mask) } : null),
    ...(mask.templates.length > 0 ? { templates: templatesOf(spec, mask) } : null),
  };
}

function replicasOf(spec: Job["spec"], { roles }: JobMask): Record<string, number> {
  const sent = Object.entries(spec?.replicaSpecs ?? {}).filter(([role]) => roles === "all" || roles.includes(role));
  return Object.fromEntries(sent.map(([role, { replicas = 1 }]) => [role, replicas]));
}

/** A template that is named and omitted changes nothing. */
function templatesOf(spec: Job["spec"], { templates }: JobMask): Record<string, JsonObject> {
  return Object.fromEntries(templates.map((role) => [role, (spec?.replicaSpecs[role]?.template ?? {}) as JsonObject]));
}

function checkIdentity({ metadata }: Job): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  if (!metadata?.name) notes.push({ field: "job.metadata.name", message: "must be set" });
  if (!RESOURCE_VERSION.test(metadata?.resourceVersion ?? "")) {
    notes.push({
      field: "job.metadata.resource_version",
      message: "must be empty or a version that was read: at most 15 digits",
    });
  }
  return notes;
}

/** Checks the fields that are read against the proto's constraints. The rest of the job may be anything. */
function checkMasked(job: Job, mask: JobMask): readonly FieldNote[] {
  const read = (field: string) =>
    /^metadata\.(name|namespace|resource_version)$/.test(field) ||
    (mask.labels && field.startsWith("metadata.labels")) ||
    (mask.priorityClass && field === "spec.priority_class_name") ||
    (mask.templates.length > 0 && /^spec\.replica_specs\[.*\]\.template/.test(field)) ||
    (mask.roles.length > 0 && /^spec\.replica_specs\[.*\]\.replicas$/.test(field));
  return checkRequest(JobSchema, job)
    .filter(({ field }) => read(field))
    .map(({ field, message }) => ({ field: `job.${field}`, message }));
}

/** Demands the numbers that the mask names: an omitted number must not become the default of one replica. */
function missingReplicas({ spec }: Job, { roles }: JobMask): readonly FieldNote[] {
  const given = spec?.replicaSpecs ?? {};
  if (roles === "all" && Object.keys(given).length === 0) {
    return [{ field: "job.spec.replica_specs", message: "must name the replica types whose numbers change" }];
  }
  const wanted = roles === "all" ? Object.keys(given) : roles;
  return wanted
    .filter((role) => !Object.hasOwn(given, role) || given[role]?.replicas === undefined)
    .map((role) => ({
      field: `job.spec.replica_specs[${role}].replicas`,
      message: "must be set, because update_mask names it",
    }));
}

/** Returns the job after the change. Throws if the change was refused. */
function updated(outcome: UpdateOutcome, which: JobName) {
  const name = `${which.namespace}/${which.name}`;
  const subject = `job ${name}`;
  switch (outcome.kind) {
    case "changed":
    case "unchanged":
      return outcome.job;
    case "notFound":
      throw notFound({ type: "job", name });
    case "stale":
      throw staleVersion(subject);
    case "invalid":
      throw invalidFields(outcome.violations);
    case "terminal": {
      const description = `has already ended: it is ${outcome.job.status.phase}`;
      throw failedPrecondition({ type: "JOB_TERMINAL", subject, description });
    }
    case "ending": {
      const what = outcome.job.deleteTimeMs === null ? "cancelled" : "deleted";
      throw failedPrecondition({ type: "JOB_ENDING", subject, description: `is being ${what}` });
    }
    case "resumedTooOften": {
      const description =
        `was set aside, and was resumed ${RESUMES_A_DAY} times within a day: ` +
        "only a caller with the permission jobs.reinstate, such as an operator, may resume it now";
      throw failedPrecondition({ type: "JOB_SET_ASIDE", subject, description });
    }
    case "noRoom":
      throw noRoomError(outcome);
    case "fixedTemplates": {
      const description =
        "cannot change its templates while it may run: suspend it first, and wait until its pods are gone";
      throw failedPrecondition({ type: "JOB_TEMPLATES_FIXED", subject, description });
    }
    case "fixedSize": {
      const description = `cannot change its number of ${outcome.role} replicas while it is admitted: suspend it first`;
      throw failedPrecondition({ type: "JOB_SIZE_FIXED", subject, description });
    }
  }
}
