import type { MessageInitShape, JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Job } from "../../core/job/job.ts";
import type {
  CacheStatus,
  ExternalResource,
  LogLink,
  PluginRecord,
  PluginStage,
  RecordedInfo,
  TaskPhase,
} from "../../core/job/task-info.ts";
import { isService, type Kind } from "../../core/kinds/kind.ts";
import type { ContainerLogLink } from "../../core/kinds/log-links.ts";
import { type PodResource, podInfo } from "../../core/kinds/pod-info.ts";
import * as pb from "../../gen/gangway/v1/job_pb.ts";

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

type InfoInit = MessageInitShape<typeof pb.TaskInfoSchema>;

/** Converts the last report of a job's plugin. For a gang of pods, makes a report from its record. */
export function toProtoInfo(
  job: Job,
  { kind, logs: podLogs }: { readonly kind: Kind | undefined; readonly logs: readonly ContainerLogLink[] },
): InfoInit | undefined {
  if (job.status.info === undefined && isService(kind)) return undefined;
  const info = job.status.info ?? podInfo(job, kind, podLogs);
  const { outputs } = job.status;
  const shown = toProtoTaskInfo({ ...info, logs: [...podLogs, ...info.logs] });
  return outputs === undefined ? shown : { ...shown, outputs: outputs as ProtoJson };
}

/** Converts the last report of a job's plugin. Undefined: there is none. */
export function toProtoTaskInfo(info: RecordedInfo | undefined): InfoInit | undefined {
  if (info === undefined) return undefined;
  const { phase, version, reason, externalResources, additionalReasons, customInfo } = info;
  return {
    logs: info.logs.map(toProtoLink),
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

const STAGE: Readonly<Record<PluginStage, pb.PluginStage>> = {
  handle: pb.PluginStage.HANDLE,
  abort: pb.PluginStage.ABORT,
  finalize: pb.PluginStage.FINALIZE,
  done: pb.PluginStage.DONE,
};

/** Converts the state of a plugin. Only FULL has the value that the plugin keeps, which may be large. */
export function toProtoPlugin(
  plugin: PluginRecord | undefined,
  view: "BASIC" | "FULL",
): MessageInitShape<typeof pb.PluginStatusSchema> | undefined {
  if (plugin === undefined) return undefined;
  const { stage, attempt, state, failedCalls, lastFailure = "", notBeforeMs } = plugin;
  return {
    stage: STAGE[stage],
    attempt,
    stateVersion: state.version,
    state: view === "FULL" && state.value !== null ? (state.value as ProtoJson) : undefined,
    failedCalls,
    lastFailure,
    notBefore: stage === "done" ? undefined : toTime(notBeforeMs),
  };
}

function toProtoResource(
  resource: ExternalResource & Partial<Pick<PodResource, "replica">>,
): MessageInitShape<typeof pb.ExternalResourceSchema> {
  const { externalId, index, retryAttempt, phase, cacheStatus, logs, replica = "" } = resource;
  return {
    externalId,
    replica,
    index: BigInt(index),
    retryAttempt: BigInt(retryAttempt),
    phase: phase === null ? pb.TaskPhase.UNSPECIFIED : PHASE[phase],
    cacheStatus: cacheStatus === null ? pb.CacheStatus.UNSPECIFIED : CACHE_STATUS[cacheStatus],
    logs: logs.map(toProtoLink),
  };
}

function toProtoLink(link: LogLink | ContainerLogLink): MessageInitShape<typeof pb.LogLinkSchema> {
  return { ...link };
}

/** Omits times after the year 9999, which a timestamp cannot hold. Plugins may report any time. */
function toTime(timeMs: number | null) {
  return timeMs === null || timeMs > 253_402_300_799_999 ? undefined : timestampFromMs(timeMs);
}
