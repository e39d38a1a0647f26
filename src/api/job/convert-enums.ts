import type { CleanPodPolicy, PartialPolicy, RestartPolicy, RestartScope } from "../../core/job/spec.ts";
import type { FailureKind, JobPhase } from "../../core/job/status.ts";
import * as jobPb from "../../gen/gangway/v1/job_pb.ts";

const RESTART_POLICY: Readonly<Record<RestartPolicy, jobPb.RestartPolicy>> = {
  Always: jobPb.RestartPolicy.ALWAYS,
  OnFailure: jobPb.RestartPolicy.ON_FAILURE,
  Never: jobPb.RestartPolicy.NEVER,
  ExitCode: jobPb.RestartPolicy.EXIT_CODE,
};

const RESTART_SCOPE: Readonly<Record<RestartScope, jobPb.RestartScope>> = {
  REPLICA: jobPb.RestartScope.REPLICA,
  GANG: jobPb.RestartScope.GANG,
};

const CLEAN_POD_POLICY: Readonly<Record<CleanPodPolicy, jobPb.CleanPodPolicy>> = {
  All: jobPb.CleanPodPolicy.ALL,
  Running: jobPb.CleanPodPolicy.RUNNING,
  None: jobPb.CleanPodPolicy.NONE,
};

const PARTIAL_POLICY: Readonly<Record<PartialPolicy, jobPb.PartialPolicy>> = {
  KEEP: jobPb.PartialPolicy.KEEP,
  RESTART: jobPb.PartialPolicy.RESTART,
};

const PHASE: Readonly<Record<JobPhase, jobPb.JobPhase>> = {
  WAITING: jobPb.JobPhase.WAITING,
  ADMITTED: jobPb.JobPhase.ADMITTED,
  STARTING: jobPb.JobPhase.STARTING,
  RUNNING: jobPb.JobPhase.RUNNING,
  RESTARTING: jobPb.JobPhase.RESTARTING,
  SUSPENDED: jobPb.JobPhase.SUSPENDED,
  SUCCEEDED: jobPb.JobPhase.SUCCEEDED,
  FAILED: jobPb.JobPhase.FAILED,
  CANCELLED: jobPb.JobPhase.CANCELLED,
};

const FAILURE_KIND: Readonly<Record<FailureKind, jobPb.FailureKind>> = {
  USER: jobPb.FailureKind.USER,
  SYSTEM: jobPb.FailureKind.SYSTEM,
};

export const restartPolicyToProto = (value: RestartPolicy) => RESTART_POLICY[value];
export const restartScopeToProto = (value: RestartScope) => RESTART_SCOPE[value];
export const cleanPodPolicyToProto = (value: CleanPodPolicy) => CLEAN_POD_POLICY[value];
export const partialPolicyToProto = (value: PartialPolicy) => PARTIAL_POLICY[value];
export const phaseToProto = (value: JobPhase) => PHASE[value];
export const failureKindToProto = (value: FailureKind) => FAILURE_KIND[value];

/** Undefined: UNSPECIFIED, or a number that the proto does not define. */
export const restartPolicyFromProto = (value: number) => keyOf(RESTART_POLICY, value);
export const restartScopeFromProto = (value: number) => keyOf(RESTART_SCOPE, value);
export const cleanPodPolicyFromProto = (value: number) => keyOf(CLEAN_POD_POLICY, value);
export const partialPolicyFromProto = (value: number) => keyOf(PARTIAL_POLICY, value);
export const phaseFromProto = (value: number) => keyOf(PHASE, value);

function keyOf<Key extends string>(table: Readonly<Record<Key, number>>, value: number): Key | undefined {
  return (Object.keys(table) as Key[]).find((key) => table[key] === value);
}
