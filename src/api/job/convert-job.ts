/** Shows a job to its user: specification with all defaults, status, conditions, admission, failure and attempts. */

import type { MessageInitShape, JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { cleanPodPolicyOf } from "../../core/job/clean-pod-policy.ts";
import { currentAdmission, isDraining, type Job } from "../../core/job/job.ts";
import { LABEL } from "../../core/job/labels.ts";
import type { Concern } from "../../core/job/request/concerns.ts";
import type { JobView, ShownJob } from "../../core/job/request/list.ts";
import {
  type JobSpec,
  type ReplicaSpec,
  type RunPolicy,
  type SchedulingPolicy,
  totalReplicas,
} from "../../core/job/spec.ts";
import type { Admission, Attempts, Condition, Failure, ReplicaStatus } from "../../core/job/status.ts";
import { recordedPods } from "../../core/kinds/job-pods.ts";
import type { Kind } from "../../core/kinds/kind.ts";
import type { ContainerLogLink } from "../../core/kinds/log-links.ts";
import {
  type AdmissionSchema,
  type AttemptsSchema,
  type FailureSchema,
  type JobConcernSchema,
  type JobConditionSchema,
  type JobSchema,
  type JobSpecSchema,
  type JobStatusSchema,
  PreemptionPolicy,
  type ReplicaSpecSchema,
  type ReplicaStatusSchema,
  type RunPolicySchema,
  type SchedulingPolicySchema,
} from "../../gen/gangway/v1/job_pb.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import {
  cleanPodPolicyToProto,
  failureKindToProto,
  partialPolicyToProto,
  phaseToProto,
  restartPolicyToProto,
  restartScopeToProto,
} from "./convert-enums.ts";
import { toProtoPod, toProtoProblem } from "./convert-pods.ts";
import { toProtoInfo, toProtoPlugin, toProtoTaskInfo } from "./convert-task-info.ts";

/** A job to show. `alone` holds what only GetJob shows. Omitted: in lists and streams. */
type JobToConvert = ShownJob & {
  readonly alone?: { readonly kind: Kind | undefined; readonly logs: readonly ContainerLogLink[] };
};

/** Converts a job to its message. */
export function toProtoJob(shown: JobToConvert, view: JobView): MessageInitShape<typeof JobSchema> {
  const { job } = shown;
  return {
    metadata: {
      name: job.name,
      namespace: job.namespace,
      project: job.project,
      uid: job.uid,
      labels: { ...job.labels },
      annotations: { ...job.annotations },
      resourceVersion: String(job.version),
      createTime: timestampFromMs(job.createTimeMs),
      deleteTime: toTimestamp(job.deleteTimeMs),
      createdBy: job.createdBy,
    },
    spec: toProtoSpec(job.spec, view),
    status: toProtoStatus(shown, view),
  };
}

/** Shows a job of which only the record is known: without position and tokens. */
export function recordOf(job: Job): ShownJob {
  return { job, position: null, tokens: [] };
}

export function toProtoAdmission(
  admission: Admission,
  tokens: ShownJob["tokens"],
): MessageInitShape<typeof AdmissionSchema> {
  return {
    number: admission.number,
    cluster: admission.cluster ?? "",
    simulated: admission.simulated ?? false,
    admitTime: timestampFromMs(admission.admitTimeMs),
    goneTime: toTimestamp(admission.goneMs),
    members: { ...admission.members },
    ...(admission.partial === undefined ? {} : { partial: partialPolicyToProto(admission.partial) }),
    returned: mapValues(admission.returned ?? {}, (indexes) => indexes.length),
    flavors: { ...admission.flavors },
    tokens: tokens.map(({ pool, amount, fence }) => ({ pool, amount: BigInt(amount), fence })),
  };
}

export function toProtoFailure(failure: Omit<Failure, "limit">): MessageInitShape<typeof FailureSchema> {
  return {
    code: failure.code,
    kind: failureKindToProto(failure.kind),
    message: failure.message,
    container: failure.container ?? "",
    exitCode: failure.exitCode ?? undefined,
  };
}

function toProtoSpec(spec: JobSpec, view: JobView): MessageInitShape<typeof JobSpecSchema> {
  const { clusters, clusterSelector, gpuModels } = spec.placement;
  return {
    kind: spec.kind,
    replicaSpecs: mapValues(spec.replicaSpecs, (replica) => toProtoReplicaSpec(replica, view)),
    runPolicy: toProtoRunPolicy(spec.runPolicy),
    kindSpec: Object.keys(spec.kindSpec).length === 0 ? undefined : (spec.kindSpec as ProtoJson),
    inputs: spec.inputs as ProtoJson | undefined,
    priority: spec.priority,
    priorityClassName: spec.priorityClassName ?? "",
    placement: { clusters: [...clusters], clusterSelector: { ...clusterSelector }, gpuModels: [...gpuModels] },
  };
}

function toProtoReplicaSpec(replica: ReplicaSpec, view: JobView): MessageInitShape<typeof ReplicaSpecSchema> {
  return {
    replicas: replica.replicas,
    restartPolicy: restartPolicyToProto(replica.restartPolicy),
    template: view === "FULL" ? (replica.template as ProtoJson) : undefined,
  };
}

function toProtoRunPolicy(policy: RunPolicy): MessageInitShape<typeof RunPolicySchema> {
  const { activeDeadlineSeconds } = policy;
  return {
    cleanPodPolicy: cleanPodPolicyToProto(policy.cleanPodPolicy),
    cleanPodPolicyAtLimit: cleanPodPolicyToProto(policy.cleanPodPolicyAtLimit ?? policy.cleanPodPolicy),
    ttlSecondsAfterFinished: policy.ttlSecondsAfterFinished ?? undefined,
    activeDeadlineSeconds: activeDeadlineSeconds === null ? undefined : BigInt(activeDeadlineSeconds),
    backoffLimit: policy.backoffLimit ?? undefined,
    systemBackoffLimit: policy.systemBackoffLimit,
    startBackoffLimit: policy.startBackoffLimit,
    interruptibleFailureThreshold: policy.interruptibleFailureThreshold,
    restartScope: restartScopeToProto(policy.restartScope),
    suspend: policy.suspend ?? false,
    interruptible: policy.interruptible,
    maxRuntime: policy.maxRuntimeMs === undefined ? undefined : durationFromMs(policy.maxRuntimeMs),
    backfill: policy.backfill,
    cacheKey: policy.cacheKey ?? "",
    schedulingPolicy: toProtoScheduling(policy.schedulingPolicy),
  };
}

function toProtoScheduling(policy: SchedulingPolicy): MessageInitShape<typeof SchedulingPolicySchema> {
  const { partial, minResources, ...others } = policy;
  return {
    ...others,
    minResources: { ...minResources },
    ...(partial === undefined ? {} : { partial: partialPolicyToProto(partial) }),
  };
}

function toProtoStatus(
  { job, position, tokens, alone, concerns = [] }: JobToConvert,
  view: JobView,
): MessageInitShape<typeof JobStatusSchema> {
  const { status } = job;
  const admission = currentAdmission(job);
  const { waiting, failure } = status;
  return {
    phase: phaseToProto(status.phase),
    draining: isDraining(job),
    cleanPodPolicy: cleanPodPolicyToProto(cleanPodPolicyOf(job)),
    conditions: status.conditions.map(toProtoCondition),
    replicaStatuses: mapValues(status.replicaStatuses, (counts, role) => toProtoReplicaStatus(counts, job.name, role)),
    startTime: toTimestamp(status.startTimeMs),
    completionTime: toTimestamp(status.completionTimeMs),
    admission: admission === null ? undefined : toProtoAdmission(admission, tokens),
    waiting:
      waiting === null ? undefined : { ...waiting, since: timestampFromMs(waiting.sinceMs), position: position ?? 0 },
    failure: failure === null ? undefined : toProtoFailure(failure),
    attempts: toProtoAttempts(status.attempts),
    minAvailable: job.spec.runPolicy.schedulingPolicy.minAvailable,
    totalReplicas: totalReplicas(job.spec),
    preemptionPolicy: job.spec.preemptionPolicy === "NEVER" ? PreemptionPolicy.NEVER : PreemptionPolicy.LOWER_PRIORITY,
    info: alone === undefined ? toProtoTaskInfo(status.info) : toProtoInfo(job, alone),
    plugin: alone === undefined ? undefined : toProtoPlugin(status.plugin, view),
    podProblems: status.podProblems?.problems.map(toProtoProblem) ?? [],
    concerns: concerns.map(toProtoConcern),
    pods: alone === undefined ? [] : recordedPods({ job, kind: alone.kind }).map(toProtoPod),
  };
}

export function toProtoConcern({ reason, message, sinceMs }: Concern): MessageInitShape<typeof JobConcernSchema> {
  return { reason, message, since: toTimestamp(sinceMs) };
}

function toProtoCondition(condition: Condition): MessageInitShape<typeof JobConditionSchema> {
  const { type, status, reason, message } = condition;
  return {
    type,
    status,
    reason,
    message,
    lastUpdateTime: timestampFromMs(condition.lastUpdateMs),
    lastTransitionTime: timestampFromMs(condition.lastTransitionMs),
  };
}

function toProtoReplicaStatus(
  counts: ReplicaStatus,
  jobName: string,
  role: string,
): MessageInitShape<typeof ReplicaStatusSchema> {
  const { active, succeeded, failed } = counts;
  const selector = `${LABEL.jobName}=${jobName},${LABEL.replicaType}=${role.toLowerCase()}`;
  return { active, succeeded, failed, selector };
}

function toProtoAttempts(attempts: Attempts): MessageInitShape<typeof AttemptsSchema> {
  const again = Object.entries(attempts.byReplica).filter(([, attempt]) => attempt > 1);
  const { user, system, preemptions = 0, last } = attempts;
  return {
    user,
    system,
    preemptions,
    replicas: Object.fromEntries(again),
    ...(last && { lastFailure: toProtoFailure(last), lastFailureTime: timestampFromMs(last.atMs) }),
  };
}

function mapValues<A, B>(map: Readonly<Record<string, A>>, convert: (value: A, key: string) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, convert(value, key)]));
}
