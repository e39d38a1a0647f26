import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { TopologyWish } from "../core/job/placement/topology-wish.ts";
import type { SentReplicaSpec, SentRunPolicy, SentSchedulingPolicy, SentSpec } from "../core/job/request/sent.ts";
import {
  CleanPodPolicy,
  type JobSpecSchema,
  PartialPolicy,
  type ReplicaSpecSchema,
  RestartPolicy,
  RestartScope,
  type RunPolicySchema,
  type SchedulingPolicySchema,
  type TopologyWishSchema,
} from "../gen/gangway/v1/job_pb.ts";

const CLEAN_POD_POLICY = { All: CleanPodPolicy.ALL, Running: CleanPodPolicy.RUNNING, None: CleanPodPolicy.NONE };
const RESTART_POLICY = {
  Always: RestartPolicy.ALWAYS,
  OnFailure: RestartPolicy.ON_FAILURE,
  Never: RestartPolicy.NEVER,
  ExitCode: RestartPolicy.EXIT_CODE,
};
const PARTIAL_POLICY = { KEEP: PartialPolicy.KEEP, RESTART: PartialPolicy.RESTART };
const RESTART_SCOPE = { REPLICA: RestartScope.REPLICA, GANG: RestartScope.GANG };

type Init<D extends DescMessage> = MessageInitShape<D>;

/** Converts a spec to the API's message. Fields that the manifest omits stay omitted. */
export function sentToProto(spec: SentSpec): Init<typeof JobSpecSchema> {
  const replicaSpecs = Object.entries(spec.replicaSpecs).map(([role, replica]) => [role, replicaToProto(replica)]);
  return {
    kind: spec.kind,
    replicaSpecs: Object.fromEntries(replicaSpecs),
    ...(spec.runPolicy && { runPolicy: runPolicyToProto(spec.runPolicy) }),
    ...(spec.kindSpec && { kindSpec: spec.kindSpec as JsonInit }),
    ...(spec.inputs && { inputs: spec.inputs as JsonInit }),
    ...(spec.priority !== undefined && { priority: spec.priority }),
    ...(spec.priorityClassName !== undefined && { priorityClassName: spec.priorityClassName }),
    ...(spec.placement && {
      placement: {
        clusters: [...(spec.placement.clusters ?? [])],
        clusterSelector: { ...spec.placement.clusterSelector },
        gpuModels: [...(spec.placement.gpuModels ?? [])],
        ...(spec.placement.topology && { topology: wishToProto(spec.placement.topology) }),
      },
    }),
  };
}

/** The type of protobuf-es for a mutable JSON object. */
type JsonInit = NonNullable<Init<typeof JobSpecSchema>["kindSpec"]>;

function replicaToProto(replica: SentReplicaSpec): Init<typeof ReplicaSpecSchema> {
  return {
    ...(replica.replicas !== undefined && { replicas: replica.replicas }),
    ...(replica.restartPolicy && { restartPolicy: RESTART_POLICY[replica.restartPolicy] }),
    ...(replica.template && { template: replica.template as JsonInit }),
    ...(replica.topology && { topology: wishToProto(replica.topology) }),
  };
}

function wishToProto({ slices = [], ...level }: TopologyWish): Init<typeof TopologyWishSchema> {
  return { ...level, slices: slices.map((slice) => ({ ...slice })) };
}

function runPolicyToProto(policy: SentRunPolicy): Init<typeof RunPolicySchema> {
  const { cleanPodPolicy, cleanPodPolicyAtLimit, restartScope, activeDeadlineSeconds, ...rest } = policy;
  const { maxRuntimeMs, moveAfterMs, schedulingPolicy, ...others } = rest;
  return {
    ...others,
    ...(cleanPodPolicy && { cleanPodPolicy: CLEAN_POD_POLICY[cleanPodPolicy] }),
    ...(cleanPodPolicyAtLimit && { cleanPodPolicyAtLimit: CLEAN_POD_POLICY[cleanPodPolicyAtLimit] }),
    ...(restartScope && { restartScope: RESTART_SCOPE[restartScope] }),
    ...(activeDeadlineSeconds !== undefined && { activeDeadlineSeconds: BigInt(activeDeadlineSeconds) }),
    ...(maxRuntimeMs !== undefined && { maxRuntime: durationFromMs(maxRuntimeMs) }),
    ...(moveAfterMs !== undefined && { moveAfter: durationFromMs(moveAfterMs) }),
    ...(schedulingPolicy && { schedulingPolicy: schedulingToProto(schedulingPolicy) }),
  };
}

function schedulingToProto(policy: SentSchedulingPolicy): Init<typeof SchedulingPolicySchema> {
  const { minAvailable, queue, scheduleTimeoutSeconds, minResources, priorityClass, maxPreemptions, partial } = policy;
  return {
    ...(minAvailable !== undefined && { minAvailable }),
    ...(queue !== undefined && { queue }),
    ...(minResources !== undefined && { minResources: { ...minResources } }),
    ...(priorityClass !== undefined && { priorityClass }),
    ...(scheduleTimeoutSeconds !== undefined && { scheduleTimeoutSeconds }),
    ...(maxPreemptions !== undefined && { maxPreemptions }),
    ...(partial && { partial: PARTIAL_POLICY[partial] }),
  };
}
