import { defaultSpec } from "../../src/core/job/defaults.ts";
import type { Job } from "../../src/core/job/job.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { anchorName } from "../../src/core/job/names.ts";
import { firstMembers } from "../../src/core/job/roles.ts";
import { totalReplicas } from "../../src/core/job/spec.ts";
import type { Admission, Condition, ConditionType, JobPhase, JobStatus } from "../../src/core/job/status.ts";
import { checkSent } from "../../src/core/kinds/check-sent.ts";
import { fromManifest } from "../../src/core/kinds/from-manifest.ts";
import type { Kind } from "../../src/core/kinds/kind.ts";
import { kindOf } from "../../src/core/kinds/registry.ts";
import { podView } from "../../src/core/pods/pod-view.ts";
import type { Decision, Observed } from "../../src/core/reconcile/decision.ts";
import { reconcile } from "../../src/core/reconcile/reconcile.ts";
import type { Json, JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import { comparePass } from "./compare-pass.ts";

const NOW_MS = Date.parse("2026-01-01T00:00:00Z");
const CLUSTER = "conformance";
const ANCHOR_UID = "anchor-1";

/** One reconcile pass over a Kubeflow manifest and its pods; the differences to what is expected. */
export function runPass(input: JsonObject, expected: JsonObject): readonly string[] {
  const unserved = input["gang"] !== undefined || input["podGroupPhase"] !== undefined;
  if (unserved) return ["cannot be run: gang schedulers are not served"];
  const suspended = arrayAt(objectAt(objectAt(input, "job"), "status"), "conditions").some(
    (condition) => stringAt(condition, "type") === "Suspended",
  );
  if (suspended) return ["cannot be run: suspension is not served"];
  const outcome = fromManifest(objectAt(input, "job"));
  if (outcome.kind === "refused") return [`cannot be run: ${JSON.stringify(outcome.errors)}`];
  const { spec: sent } = outcome.manifest;
  const kind = kindOf(sent.kind);
  if (kind === undefined) return [`cannot be run: kind ${sent.kind} is not served`];
  const errors = checkSent(kind, sent);
  if (errors.length > 0) return [`cannot be run: ${JSON.stringify(errors)}`];
  const spec = defaultSpec(sent, { kind, labels: {}, namespaceQueue: null, classPriority: null });
  const job = jobOf(input, spec);
  const build = {
    installation: "conformance",
    clusterDomain: stringAt(objectAt(input, "env"), "CUSTOM_CLUSTER_DOMAIN") ?? "",
    initImage: "alpine:3.20",
  };
  const decision = reconcile(job, observe(input, job), NOW_MS, { build });
  return comparePass({ job, kind: kind as Kind, decision: decision as Decision, expected });
}

function jobOf(input: JsonObject, spec: Job["spec"]): Job {
  const metadata = objectAt(objectAt(input, "job"), "metadata");
  const status = statusOf(input);
  const ended = status.phase === "SUCCEEDED" || status.phase === "FAILED";
  const admission: Admission = {
    number: 1,
    cluster: CLUSTER,
    admitTimeMs: NOW_MS,
    members: firstMembers(spec, totalReplicas(spec)),
    flavors: {},
    nodeLabels: {},
    state: ended ? "ended" : "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: ended ? null : NOW_MS,
  };
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
  const phases = { Succeeded: "SUCCEEDED", Failed: "FAILED", Restarting: "RESTARTING", Running: "RUNNING" } as const;
  for (const [type, phase] of Object.entries(phases)) {
    if (conditions.some((one) => one.type === type && one.status === "True")) return phase;
  }
  return "ADMITTED";
}

function offset(input: JsonObject, name: string): number | null {
  const seconds = numberAt(objectAt(input, "timeOffsets"), name);
  return seconds === undefined ? null : NOW_MS + seconds * 1000;
}

/** The pods of the case; those that the job's uid owns carry our identity, others stay foreign. */
function observe(input: JsonObject, job: Job): Observed {
  const pods = arrayAt(input, "pods")
    .filter(isJsonObject)
    .map((pod) => podView(stamped(pod, job)));
  const anchor = {
    name: anchorName(job.name, 1),
    uid: ANCHOR_UID,
    labels: { [LABEL.jobUid]: job.uid, [LABEL.admission]: "1" },
    controllerUid: null,
    admission: 1,
    deleting: false,
  };
  return [{ cluster: CLUSTER, pods, services: [], anchors: [anchor] }];
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
