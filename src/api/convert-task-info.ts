import type { MessageInitShape, JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CacheStatus, ExternalResource, LogLink, RecordedInfo, TaskPhase } from "../core/job/task-info.ts";
import type { LogLink as PodLogLink } from "../core/kinds/log-links.ts";
import * as pb from "../gen/gangway/v1/job_pb.ts";

const PHASE: Readonly<Record<TaskPhase, pb.TaskPhase>> = {
  UNDEFINED: pb.TaskPhase.UNSPECIFIED,
  NOT_READY: pb.TaskPhase.NOT_READY,
  WAITING_FOR_RESOURCES: pb.TaskPhase.WAITING_FOR_RESOURCES,
  WAITING_FOR_CACHE: pb.TaskPhase.WAITING_FOR_CACHE,
  QUEUED: pb.TaskPhase.QUEUED,
  INITIALIZING: pb.TaskPhase.INITIALIZING,
  RUNNING: pb.TaskPhase.RUNNING,
  SUCCESS: pb.TaskPhase.SUCCESS,
  RETRYABLE_FAILURE: pb.TaskPhase.RETRYABLE_FAILURE,
  PERMANENT_FAILURE: pb.TaskPhase.PERMANENT_FAILURE,
  ABORTED: pb.TaskPhase.ABORTED,
};

const CACHE_STATUS: Readonly<Record<CacheStatus, pb.CacheStatus>> = {
  DISABLED: pb.CacheStatus.DISABLED,
  MISS: pb.CacheStatus.MISS,
  HIT: pb.CacheStatus.HIT,
  POPULATED: pb.CacheStatus.POPULATED,
};

/** What is known beside a job's state: where its pods' logs are, and what its kind tells. Undefined where that is nothing. */
export function toProtoInfo(
  info: RecordedInfo | undefined,
  podLogs: readonly PodLogLink[],
): MessageInitShape<typeof pb.TaskInfoSchema> | undefined {
  if (info !== undefined) return toProtoTaskInfo(info, podLogs);
  return podLogs.length === 0 ? undefined : { logs: podLogs.map((link) => ({ ...link })) };
}

function toProtoTaskInfo(
  info: RecordedInfo,
  podLogs: readonly PodLogLink[],
): MessageInitShape<typeof pb.TaskInfoSchema> {
  const { phase, version, reason, externalResources, additionalReasons, customInfo } = info;
  const podLinks: MessageInitShape<typeof pb.LogLinkSchema>[] = podLogs.map((link) => ({ ...link }));
  return {
    logs: [...podLinks, ...info.logs.map(toProtoLink)],
    phase: PHASE[phase],
    phaseVersion: BigInt(version),
    reason,
    externalResources: externalResources.map(toProtoResource),
    occurredAt: toTime(info.occurredAtMs),
    reportedAt: toTime(info.reportedAtMs),
    additionalReasons: additionalReasons.map((one) => ({ reason: one.reason, occurredAt: toTime(one.occurredAtMs) })),
    customInfo: customInfo === null ? undefined : (customInfo as ProtoJson),
  };
}

function toProtoResource(resource: ExternalResource): MessageInitShape<typeof pb.ExternalResourceSchema> {
  const { externalId, index, retryAttempt, phase, cacheStatus, logs } = resource;
  return {
    externalId,
    index: BigInt(index),
    retryAttempt: BigInt(retryAttempt),
    phase: phase === null ? pb.TaskPhase.UNSPECIFIED : PHASE[phase],
    cacheStatus: cacheStatus === null ? pb.CacheStatus.UNSPECIFIED : CACHE_STATUS[cacheStatus],
    logs: logs.map(toProtoLink),
  };
}

function toProtoLink({ name, uri }: LogLink): MessageInitShape<typeof pb.LogLinkSchema> {
  return { name, uri };
}

/** Times that a plugin gives may lie beyond what a timestamp can say (the year 9999): these are left out. */
function toTime(timeMs: number | null) {
  return timeMs === null || timeMs > 253_402_300_799_999 ? undefined : timestampFromMs(timeMs);
}
