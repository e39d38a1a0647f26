import type { Registry } from "../../core/kinds/registry.ts";
import type { LogTemplate } from "../../core/pods/pod-config.ts";
import type { CancelJobRequest, DeleteJobRequest, JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import type {
  ForeseeJob,
  JobIntake,
  JobLogs,
  JobPods,
  JobReads,
  JobWatch,
  SimulateJob,
  TrainingRuntimes,
} from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { failedPrecondition, notFound, type OnInternalError } from "../rpc/rpc-error.ts";
import { batchCreateJobs } from "./batch-create-jobs.ts";
import { recordOf, toProtoJob } from "./convert-job.ts";
import { namespaceOf } from "./convert-sent.ts";
import { jobCounter } from "./count-jobs.ts";
import { createJob } from "./create-job.ts";
import { EncodedChanges } from "./encoded-changes.ts";
import { explainJob } from "./explain-job.ts";
import { FollowerBound } from "./follower-bound.ts";
import { sightOf, withoutOthers } from "./hide-others.ts";
import { listJobPods } from "./list-job-pods.ts";
import { listKinds } from "./list-kinds.ts";
import { getJob, listJobEvents, listJobs } from "./read-jobs.ts";
import { simulateJob } from "./simulate-job.ts";
import { streamJobLogs } from "./stream-job-logs.ts";
import { updateJob } from "./update-job.ts";
import { watchJobs } from "./watch-jobs.ts";

type JobPorts = {
  readonly kinds: Registry;
  readonly intake: JobIntake;
  readonly reads: JobReads;
  readonly simulate: SimulateJob;
  /** Omitted: jobs that can never run are created without a warning. */
  readonly foresee?: ForeseeJob;
  readonly watch: JobWatch;
  readonly logs: JobLogs;
  readonly pods: JobPods;
  readonly runtimes: Pick<TrainingRuntimes, "find">;
  readonly logTemplates?: () => readonly LogTemplate[];
  readonly clock: Clock;
  readonly onInternalError: OnInternalError;
};

export function jobService({
  kinds,
  intake,
  reads,
  simulate,
  foresee = async () => null,
  watch,
  logs,
  pods,
  runtimes,
  logTemplates = () => [],
  clock,
  onInternalError,
}: JobPorts): ServiceHandlers<typeof JobService> {
  const followers = new FollowerBound();
  const encoded = new EncodedChanges(kinds);
  const findRuntime = runtimes.find;
  return {
    createJob: (request, context) => createJob({ intake, foresee, kinds, findRuntime }, request, context),
    batchCreateJobs: (request, context) =>
      batchCreateJobs({ intake, foresee, kinds, findRuntime, onInternalError }, request, context),
    getJob: (request, context) => getJob({ reads, kinds, logTemplates }, request, context),
    listJobs: (request, context) => listJobs({ reads, kinds }, request, context),
    countJobs: jobCounter(reads),
    watchJobs: (request, context) => watchJobs({ watch, encoded }, request, context),
    updateJob: (request, context) => updateJob({ intake, reads, kinds }, request, context),
    cancelJob: (request, context) => cancelJob({ intake, kinds }, request, context),
    deleteJob: (request, context) => deleteJob({ intake, kinds }, request, context),
    explainJob: (request, context) => explainJob({ reads, kinds, simulate, clock }, request, context),
    simulateJob: (request, context) => simulateJob({ intake, simulate, kinds, findRuntime }, request, context),
    listJobEvents: (request, context) => listJobEvents(reads, request, context),
    listJobPods: (request, { signal }) => listJobPods({ reads, pods, kinds, clock }, request, signal),
    listKinds: async () => listKinds(kinds),
    streamJobLogs: (request, context) =>
      streamJobLogs({ kinds, reads, watch, logs, followers, clock }, request, context),
  };
}

type ChangePorts = { readonly intake: JobIntake; readonly kinds: Registry };

/** Cancels a job. Succeeds again for a cancelled job; throws for a job that had ended before. */
async function cancelJob({ intake, kinds }: ChangePorts, request: CancelJobRequest, { access }: CallContext) {
  const job = { namespace: namespaceOf(request), name: request.name };
  const outcome = await intake.cancel(job, request.reason);
  const name = `${job.namespace}/${job.name}`;
  if (outcome.kind === "notFound") throw notFound({ type: "job", name });
  if (outcome.kind === "terminal") {
    const description = `has already ended: it is ${outcome.job.status.phase}`;
    throw failedPrecondition({ type: "JOB_TERMINAL", subject: `job ${name}`, description });
  }
  return { job: toProtoJob(recordOf(withoutOthers(outcome.job, sightOf(access))), { view: "BASIC", kinds }) };
}

async function deleteJob({ intake, kinds }: ChangePorts, request: DeleteJobRequest, { access }: CallContext) {
  const job = { namespace: namespaceOf(request), name: request.name };
  const outcome = await intake.remove(job);
  if (outcome.kind === "notFound") throw notFound({ type: "job", name: `${job.namespace}/${job.name}` });
  return { job: toProtoJob(recordOf(withoutOthers(outcome.job, sightOf(access))), { view: "BASIC", kinds }) };
}
