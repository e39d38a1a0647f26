import { keptWish, type TopologyWish } from "../../core/job/placement/topology-wish.ts";
import type { JobFilter } from "../../core/job/request/filter.ts";
import type {
  SentJob,
  SentReplicaSpec,
  SentRunPolicy,
  SentSchedulingPolicy,
  SentSpec,
} from "../../core/job/request/sent.ts";
import type * as jobPb from "../../gen/gangway/v1/job_pb.ts";
import type * as servicePb from "../../gen/gangway/v1/job_service_pb.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { spanMs } from "../resource-manager/convert-quota.ts";
import {
  cleanPodPolicyFromProto,
  partialPolicyFromProto,
  phaseFromProto,
  restartPolicyFromProto,
  restartScopeFromProto,
} from "./convert-enums.ts";

/** Returns the namespace of a request. An empty one means `default`. */
export function namespaceOf(request: { readonly namespace: string }): string {
  return request.namespace || "default";
}

/** Converts a job of a request. Fields that were not sent stay undefined. Null: the job has no spec. */
export function sentJob(job: jobPb.Job): SentJob | null {
  const { metadata, spec } = job;
  if (spec === undefined) return null;
  return {
    namespace: metadata?.namespace || "default",
    name: metadata?.name ?? "",
    generateName: metadata?.generateName ?? "",
    labels: metadata?.labels ?? {},
    annotations: metadata?.annotations ?? {},
    spec: sentSpec(spec),
  };
}

function sentSpec(spec: jobPb.JobSpec): SentSpec {
  const replicaSpecs = Object.entries(spec.replicaSpecs).map(([role, replica]) => [role, sentReplicaSpec(replica)]);
  const { placement } = spec;
  return present<SentSpec>({
    kind: spec.kind,
    replicaSpecs: Object.fromEntries(replicaSpecs),
    runPolicy: spec.runPolicy && sentRunPolicy(spec.runPolicy),
    kindSpec: spec.kindSpec as JsonObject | undefined,
    inputs: spec.inputs as JsonObject | undefined,
    priority: spec.priority,
    priorityClassName: spec.priorityClassName || undefined,
    placement: placement && sentPlacement(placement),
  });
}

function sentPlacement({ clusters, clusterSelector, gpuModels, topology }: jobPb.Placement): SentPlacement {
  return present<SentPlacement>({ clusters, clusterSelector, gpuModels, topology: sentWish(topology) });
}

function sentWish(wish: jobPb.TopologyWish | undefined): TopologyWish | undefined {
  return wish && keptWish({ required: wish.required, preferred: wish.preferred, slices: wish.slices });
}

function sentReplicaSpec(replica: jobPb.ReplicaSpec): SentReplicaSpec {
  return present<SentReplicaSpec>({
    replicas: replica.replicas,
    template: replica.template as JsonObject | undefined,
    restartPolicy: restartPolicyFromProto(replica.restartPolicy),
    topology: sentWish(replica.topology),
  });
}

function sentRunPolicy(policy: jobPb.RunPolicy): SentRunPolicy {
  const { activeDeadlineSeconds } = policy;
  return present<SentRunPolicy>({
    cleanPodPolicy: cleanPodPolicyFromProto(policy.cleanPodPolicy),
    cleanPodPolicyAtLimit: cleanPodPolicyFromProto(policy.cleanPodPolicyAtLimit),
    ttlSecondsAfterFinished: policy.ttlSecondsAfterFinished,
    activeDeadlineSeconds: activeDeadlineSeconds === undefined ? undefined : Number(activeDeadlineSeconds),
    backoffLimit: policy.backoffLimit,
    systemBackoffLimit: policy.systemBackoffLimit,
    startBackoffLimit: policy.startBackoffLimit,
    interruptibleFailureThreshold: policy.interruptibleFailureThreshold,
    restartScope: restartScopeFromProto(policy.restartScope),
    suspend: policy.suspend,
    interruptible: policy.interruptible,
    maxRuntimeMs: policy.maxRuntime && spanMs(policy.maxRuntime),
    moveAfterMs: policy.moveAfter && spanMs(policy.moveAfter),
    backfill: policy.backfill,
    cacheKey: policy.cacheKey || undefined,
    schedulingPolicy: policy.schedulingPolicy && sentSchedulingPolicy(policy.schedulingPolicy),
  });
}

function sentSchedulingPolicy(policy: jobPb.SchedulingPolicy): SentSchedulingPolicy {
  return present<SentSchedulingPolicy>({
    minAvailable: policy.minAvailable,
    queue: policy.queue || undefined,
    minResources: Object.keys(policy.minResources).length === 0 ? undefined : policy.minResources,
    priorityClass: policy.priorityClass || undefined,
    scheduleTimeoutSeconds: policy.scheduleTimeoutSeconds,
    maxPreemptions: policy.maxPreemptions,
    partial: partialPolicyFromProto(policy.partial),
  });
}

/** Converts a filter. Here an empty namespace means all namespaces. */
export function jobFilter(filter: servicePb.JobFilter | undefined): JobFilter {
  return {
    namespace: filter?.namespace ?? "",
    names: filter?.names ?? [],
    kinds: filter?.kinds ?? [],
    phases: (filter?.phases ?? []).flatMap((phase) => phaseFromProto(phase) ?? []),
    queue: filter?.queue ?? "",
    cluster: filter?.cluster || null,
    labels: filter?.labels ?? {},
  };
}

type SentPlacement = NonNullable<SentSpec["placement"]>;

type Loose<T> = { readonly [Key in keyof T]: T[Key] | undefined };

/** Removes undefined members, so that a member that the client did not send does not exist. */
function present<T extends object>(members: Loose<T>): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
