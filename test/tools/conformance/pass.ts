import { admitted } from "../../../src/core/job/admission/admitted.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { anchorName } from "../../../src/core/job/names.ts";
import { defaultSpec } from "../../../src/core/job/request/defaults.ts";
import { firstMembers } from "../../../src/core/job/roles.ts";
import { totalReplicas } from "../../../src/core/job/spec.ts";
import type { Admission, Condition, ConditionType, JobPhase, JobStatus } from "../../../src/core/job/status.ts";
import type { Kind } from "../../../src/core/kinds/kind.ts";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import { type GangScheduler, gangSchedulerOf } from "../../../src/core/pods/build/pod-group.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import type { ReconcileConfig } from "../../../src/core/reconcile/decision-draft.ts";
import type { Observed, ObservedCluster } from "../../../src/core/reconcile/observed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { comparePass } from "./compare-pass.ts";

const NOW_MS = Date.parse("2026-01-01T00:00:00Z");
const CLUSTER = "conformance";
const ANCHOR_UID = "anchor-1";

/**
 * Runs one reconcile pass over a Kubeflow manifest and its pods, and returns the differences from the expectations.
 * Also runs jobs that intake refuses today, because they may have been created or changed earlier.
 */
export function runPass(input: JsonObject, expected: JsonObject): readonly string[] {
  const outcome = fromManifest(
    { apiVersion: "kubeflow.org/v1", kind: input["kind"], ...objectAt(input, "job") },
    OWN_KINDS,
  );
  if (outcome.kind === "refused") return [`the job is refused: ${JSON.stringify(outcome.errors)}`];
  const { spec: sent } = outcome.manifest;
  const kind = OWN_KINDS.kindOf(sent.kind);
  if (kind === undefined) return [`kind ${sent.kind} is not served`];
  const spec = defaultSpec(sent, { kind, labels: {}, namespaceQueue: null, priorityClass: null });
  const job = jobOf(input, spec);
  const build = {
    installation: "conformance",
    clusterDomain: stringAt(objectAt(input, "env"), "CUSTOM_CLUSTER_DOMAIN") ?? "",
    initImage: "alpine:3.20",
    kubectlImage: "kubectl:1",
  };
  const active = job.status.phase === "SUSPENDED" ? resumed(job, { kinds: OWN_KINDS, build }) : job;
  const decision = reconcile(active, observe(input, job), NOW_MS, { kinds: OWN_KINDS, build });
  return comparePass({ job: active, kind: kind as Kind, decision: decision as Decision, expected });
}

/** A suspended job that shall run again gets a new admission. A job that stays suspended does not change. */
function resumed(job: Job, config: ReconcileConfig): Job {
  const waiting = { ...job, admissions: [] };
  const status = reconcile(waiting, [], NOW_MS, config).record?.status ?? job.status;
  if (status.phase !== "WAITING") return waiting;
  const admission = admissionOf(job.spec, false);
  return { ...job, status: admitted({ ...waiting, status }, admission, NOW_MS).status, admissions: [admission] };
}

function jobOf(input: JsonObject, spec: Job["spec"]): Job {
  const metadata = objectAt(objectAt(input, "job"), "metadata");
  const status = statusOf(input);
  const ended = status.phase === "SUCCEEDED" || status.phase === "FAILED";
  const admission = admissionOf(spec, ended);
  return {
    uid: stringAt(metadata, "uid") ?? "",
    namespace: stringAt(metadata, "namespace") ?? "",
    name: stringAt(metadata, "name") ?? "",
    project: "conformance",
    labels: {},
    annotations: {},
    createdBy: "anonymous",
    createTimeMs: NOW_MS,
    deleteTimeMs: stringAt(metadata, "deletionTimestamp") === undefined ? null : NOW_MS,
    cancel: null,
    version: 1,
    spec,
    status,
    admissions: [admission],
  };
}

function admissionOf(spec: Job["spec"], ended: boolean): Admission {
  return {
    number: 1,
    cluster: CLUSTER,
    admitTimeMs: NOW_MS,
    members: firstMembers(spec, totalReplicas(spec)),
    flavors: {},
    flavorLabels: {},
    state: ended ? "ended" : "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: ended ? null : NOW_MS,
  };
}

function statusOf(input: JsonObject): JobStatus {
  const status = objectAt(objectAt(input, "job"), "status");
  const conditions = arrayAt(status, "conditions").map(conditionOf);
  const replicaStatuses = Object.fromEntries(
    Object.keys(objectAt(status, "replicaStatuses")).map((role) => {
      const counts = objectAt(objectAt(status, "replicaStatuses"), role);
      const count = (name: string) => numberAt(counts, name) ?? 0;
      return [role, { active: count("active"), succeeded: count("succeeded"), failed: count("failed") }];
    }),
  );
  return {
    phase: phaseOf(conditions),
    conditions,
    replicaStatuses,
    startTimeMs: offset(input, "startTime"),
    completionTimeMs: offset(input, "completionTime"),
    waiting: null,
    failure: null,
    attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
    backoff: null,
  };
}

function conditionOf(value: Json): Condition {
  return {
    type: stringAt(value, "type") as ConditionType,
    status: stringAt(value, "status") === "True" ? "True" : "False",
    reason: stringAt(value, "reason") ?? "",
    message: stringAt(value, "message") ?? "",
    lastUpdateMs: 0,
    lastTransitionMs: 0,
  };
}

function phaseOf(conditions: readonly Condition[]): JobPhase {
  const phases = {
    Succeeded: "SUCCEEDED",
    Failed: "FAILED",
    Suspended: "SUSPENDED",
    Restarting: "RESTARTING",
    Running: "RUNNING",
  } as const;
  for (const [type, phase] of Object.entries(phases)) {
    if (conditions.some((one) => one.type === type && one.status === "True")) return phase;
  }
  return "ADMITTED";
}

/** A time without an offset in the status means now. */
function offset(input: JsonObject, name: string): number | null {
  const seconds = numberAt(objectAt(input, "timeOffsets"), name);
  if (seconds !== undefined) return NOW_MS + seconds * 1000;
  return stringAt(objectAt(objectAt(input, "job"), "status"), name) === undefined ? null : NOW_MS;
}

/** The pods of the case. Pods that the job's uid owns get our labels; others stay foreign. */
function observe(input: JsonObject, job: Job): Observed {
  const pods = arrayAt(input, "pods")
    .filter(isJsonObject)
    .map((pod) => podView(stamped(pod, job)));
  const anchor = {
    name: anchorName(job.name, 1),
    uid: ANCHOR_UID,
    labels: { [LABEL.jobUid]: job.uid, [LABEL.admission]: "1", ...gangLabel(input) },
    controllerUid: null,
    admission: 1,
    deleting: false,
    data: "{}",
  };
  return [{ cluster: CLUSTER, pods, services: [], configMaps: [anchor], ...gangOf(input, job) }];
}

/** The cluster's gang scheduler. As with Kubeflow, any name other than volcano's means scheduler-plugins. */
function schedulerOf(input: JsonObject): GangScheduler | null {
  const name = stringAt(input, "gang") ?? "";
  if (name === "" || name === "none") return null;
  return gangSchedulerOf(name) ?? "scheduler-plugins";
}

function gangLabel(input: JsonObject): Record<string, string> {
  const scheduler = schedulerOf(input);
  return scheduler === null ? {} : { [LABEL.gangScheduler]: scheduler };
}

/** The PodGroup of the case, if it names a phase of one. */
function gangOf(input: JsonObject, job: Job): Pick<ObservedCluster, "gang"> {
  const scheduler = schedulerOf(input);
  if (scheduler === null) return {};
  const phase = stringAt(input, "podGroupPhase");
  const labels = { [LABEL.jobUid]: job.uid, [LABEL.admission]: "1" };
  const group = { name: job.name, uid: "group-1", labels, controllerUid: ANCHOR_UID, admission: 1, deleting: false };
  return { gang: { scheduler, groups: phase === undefined ? [] : [{ ...group, phase, requestedSpec: "" }] } };
}

function stamped(pod: JsonObject, job: Job): JsonObject {
  const metadata = objectAt(pod, "metadata");
  const owned = arrayAt(metadata, "ownerReferences").some(
    (owner) => isJsonObject(owner) && owner["uid"] === job.uid && owner["controller"] === true,
  );
  if (!owned) return pod;
  const labels = {
    ...objectAt(metadata, "labels"),
    [LABEL.jobUid]: job.uid,
    [LABEL.admission]: "1",
    [LABEL.attempt]: "1",
    [LABEL.installation]: "conformance",
  };
  const ownerReferences = [
    { apiVersion: "v1", kind: "ConfigMap", name: anchorName(job.name, 1), uid: ANCHOR_UID, controller: true },
  ];
  return { ...pod, metadata: { ...metadata, labels, ownerReferences } };
}
