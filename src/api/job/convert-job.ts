/** Shows a job to its user: specification with all defaults, status, conditions, admission, failure and attempts. */

import type { MessageInitShape, JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { cleanPodPolicyOf } from "../../core/job/clean-pod-policy.ts";
import { acknowledgeTimeMs } from "../../core/job/conditions.ts";
import { shownFlavors } from "../../core/job/flavor-labels.ts";
import { currentAdmission, isDraining, type Job } from "../../core/job/job.ts";
import type { PlannedNodes } from "../../core/job/placement/pod-places.ts";
import type { TopologyWish } from "../../core/job/placement/topology-wish.ts";
import type { Concern } from "../../core/job/request/concerns.ts";
import type { JobView, ShownJob } from "../../core/job/request/list.ts";
import { endedParts } from "../../core/job/roles.ts";
import {
  type JobSpec,
  type ReplicaSpec,
  type RunPolicy,
  type SchedulingPolicy,
  totalReplicas,
} from "../../core/job/spec.ts";
import type { Admission, Attempts, Condition, Failure, MemberEnd, ReplicaStatus } from "../../core/job/status.ts";
import { recordedPods } from "../../core/kinds/job-pods.ts";
import type { Kind } from "../../core/kinds/kind.ts";
import type { ContainerLogLink } from "../../core/kinds/log-links.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import { replicaSelector, selectorText } from "../../core/pods/build/build-labels.ts";
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
  type TopologyWishSchema,
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
  readonly alone?: {
    readonly kind: Kind | undefined;
    /** The planned nodes of the live admission. Null: none are planned. */
    readonly plan: PlannedNodes | null;
    readonly logs: readonly ContainerLogLink[];
  };
};

/** Finds a kind by the name that a job has. */
export type KindNames = Pick<Registry, "kindOf">;

/** The view that the caller asked for, and the kinds that are served. */
type As = { readonly view: JobView; readonly kinds: KindNames };

/** Converts a job to its message. */
export function toProtoJob(shown: JobToConvert, { view, kinds }: As): MessageInitShape<typeof JobSchema> {
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
    status: toProtoStatus(shown, { view, kinds }),
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
    ...shownFlavors(admission.flavors),
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
  const { clusters, clusterSelector, gpuModels, topology } = spec.placement;
  return {
    kind: spec.kind,
    replicaSpecs: mapValues(spec.replicaSpecs, (replica) => toProtoReplicaSpec(replica, view)),
    runPolicy: toProtoRunPolicy(spec.runPolicy),
    kindSpec: Object.keys(spec.kindSpec).length === 0 ? undefined : (spec.kindSpec as ProtoJson),
    inputs: spec.inputs as ProtoJson | undefined,
    priority: spec.priority,
    priorityClassName: spec.priorityClassName ?? "",
    placement: {
      clusters: [...clusters],
      clusterSelector: { ...clusterSelector },
      gpuModels: [...gpuModels],
      topology: topology && toProtoWish(topology),
    },
  };
}

function toProtoReplicaSpec(replica: ReplicaSpec, view: JobView): MessageInitShape<typeof ReplicaSpecSchema> {
  return {
    replicas: replica.replicas,
    restartPolicy: restartPolicyToProto(replica.restartPolicy),
    template: view === "FULL" ? (replica.template as ProtoJson) : undefined,
    topology: replica.topology && toProtoWish(replica.topology),
  };
}

function toProtoWish({ slices = [], ...level }: TopologyWish): MessageInitShape<typeof TopologyWishSchema> {
  return { ...level, slices: slices.map((slice) => ({ ...slice })) };
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
    moveAfter: policy.moveAfterMs === undefined ? undefined : durationFromMs(policy.moveAfterMs),
    backfill: policy.backfill,
    cacheKey: policy.cacheKey ?? "",
    schedulingPolicy: toProtoScheduling(policy.schedulingPolicy),
  };
}

function toProtoScheduling(policy: SchedulingPolicy): MessageInitShape<typeof SchedulingPolicySchema> {
  const { partial, minResources, isTimeoutDefault: _default, ...others } = policy;
  return {
    ...others,
    minResources: { ...minResources },
    ...(partial === undefined ? {} : { partial: partialPolicyToProto(partial) }),
  };
}

function toProtoStatus(
  { job, position, tokens, alone, concerns = [] }: JobToConvert,
  { view, kinds }: As,
): MessageInitShape<typeof JobStatusSchema> {
  const { status } = job;
  const admission = currentAdmission(job);
  const { waiting, failure } = status;
  return {
    phase: phaseToProto(status.phase),
    draining: isDraining(job),
    cleanPodPolicy: cleanPodPolicyToProto(cleanPodPolicyOf(job)),
    conditions: status.conditions.map(toProtoCondition),
    replicaStatuses: mapValues(status.replicaStatuses, (counts, role) =>
      toProtoReplicaStatus(
        counts,
        replicaSelector(job, { role, operatorName: kinds.kindOf(job.spec.kind)?.operatorName }),
        (end) => endedParts(status, role, end),
      ),
    ),
    startTime: toTimestamp(status.startTimeMs),
    acknowledgeTime: timestampFromMs(acknowledgeTimeMs(job)),
    lastReconcileTime: toTimestamp(status.lastReconcileMs ?? null),
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
    pods: alone === undefined ? [] : recordedPods({ job, kind: alone.kind, plan: alone.plan }).map(toProtoPod),
  };
}

export function toProtoConcern({ sinceMs, cluster, ...concern }: Concern): MessageInitShape<typeof JobConcernSchema> {
  return { ...concern, cluster: cluster ?? "", since: toTimestamp(sinceMs) };
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
  { active, succeeded, failed, activeAtEnd = 0 }: ReplicaStatus,
  matchLabels: Record<string, string>,
  partsOf: (end: MemberEnd) => string,
): MessageInitShape<typeof ReplicaStatusSchema> {
  const parts = { succeededParts: partsOf("SUCCEEDED"), failedParts: partsOf("FAILED") };
  const selector = selectorText(matchLabels);
  return { active, succeeded, failed, activeAtEnd, ...parts, selector, labelSelector: { matchLabels } };
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
