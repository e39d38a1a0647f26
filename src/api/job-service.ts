import type { LogTemplate } from "../core/pods/pod-config.ts";
import type { JobService } from "../gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../runtime/clock.ts";
import { batchCreateJobs } from "./batch-create-jobs.ts";
import { createJob } from "./create-job.ts";
import { cancelJob, deleteJob } from "./end-job.ts";
import { explainJob } from "./explain-job.ts";
import type { ServiceHandlers } from "./handler.ts";
import { listKinds } from "./list-kinds.ts";
import type { JobIntake, JobLogs, JobReads, JobWatch } from "./ports.ts";
import { getJob, listJobEvents, listJobs } from "./read-jobs.ts";
import type { OnInternalError } from "./rpc-error.ts";
import { streamJobLogs } from "./stream-job-logs.ts";
import { updateJob } from "./update-job.ts";
import { watchJobs } from "./watch-jobs.ts";

export type JobPorts = {
  readonly intake: JobIntake;
  readonly reads: JobReads;
  readonly watch: JobWatch;
  readonly logs: JobLogs;
  readonly logTemplates?: () => readonly LogTemplate[];
  readonly clock: Clock;
  readonly onInternalError: OnInternalError;
};

export function jobService({
  intake,
  reads,
  watch,
  logs,
  logTemplates = () => [],
  clock,
  onInternalError,
}: JobPorts): ServiceHandlers<typeof JobService> {
  return {
    createJob: (request, context) => createJob(intake, request, context),
    batchCreateJobs: (request, context) => batchCreateJobs({ intake, onInternalError }, request, context),
    getJob: (request) => getJob(reads, request, logTemplates()),
    listJobs: (request) => listJobs(reads, request),
    watchJobs: (request, context) => watchJobs(watch, request, context),
    updateJob: (request) => updateJob(intake, request),
    cancelJob: (request) => cancelJob(intake, request),
    deleteJob: (request) => deleteJob(intake, request),
    explainJob: (request) => explainJob(reads, request),
    listJobEvents: (request) => listJobEvents(reads, request),
    listKinds: async () => listKinds(),
    streamJobLogs: (request, context) => streamJobLogs({ reads, watch, logs, clock }, request, context),
  };
}
