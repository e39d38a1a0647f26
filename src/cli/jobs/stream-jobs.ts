import type { MessageInitShape, UnknownEnum } from "@bufbuild/protobuf";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { type JobFilterSchema, JobService, WatchJobsResponse_Type } from "../../gen/gangway/v1/job_service_pb.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { CallError, STATUS } from "../rpc/call-error.ts";
import type { GangwayClient } from "../rpc/client.ts";
import { retryDelayMs } from "../rpc/rpc-failure.ts";
import type { CliDeps } from "../shell/deps.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";
import { BACKOFF_MS_MAX, BACKOFF_MS_MIN, isOfOldToken, RESTART_CODES, RESTART_MS_MAX } from "./restarts.ts";

/**
 * One event of a stream of jobs. `changed` and `deleted` carry the job. `listed` follows the last job that existed when
 * the stream began. After `relisting`, everything received so far is void: the stream lists all jobs again.
 */
export type JobStreamEvent =
  | { readonly kind: "changed" | "deleted"; readonly job: Job }
  | { readonly kind: "listed" }
  | { readonly kind: "relisting" };

/** The parts of a run that a stream reads. */
type StreamRun = { readonly client: GangwayClient; readonly deps: Pick<CliDeps, "clock" | "signal"> };

type StreamJobsOptions = {
  readonly filter: MessageInitShape<typeof JobFilterSchema>;
  /** True: retries also if the first call fails. False: throws then. */
  readonly retriesFirstCall: boolean;
  readonly signal: AbortSignal;
};

/** A service also refuses a watch while it has too many. A watch takes no place of a log, so it may come again. */
const RETRIED_CODES: readonly number[] = [...RESTART_CODES, STATUS.RESOURCE_EXHAUSTED];

/**
 * Streams jobs until `signal` is aborted. If the connection breaks, it retries and continues from the last cursor.
 * Throws errors that a retry cannot help.
 */
export async function* streamJobs(run: StreamRun, options: StreamJobsOptions): AsyncGenerator<JobStreamEvent> {
  const { clock } = run.deps;
  const state: StreamState = {
    cursor: "",
    lastMessageMs: options.retriesFirstCall ? clock.monotonicMs() : Number.NEGATIVE_INFINITY,
    backoffMs: BACKOFF_MS_MIN,
  };
  while (!options.signal.aborted) {
    let pauseMs = state.backoffMs;
    try {
      yield* streamOnce(run, options, state);
    } catch (error) {
      if (options.signal.aborted) return;
      pauseMs = retryPauseMs(error, clock.monotonicMs(), state);
    }
    await pause(run, options, pauseMs);
    state.backoffMs = Math.min(BACKOFF_MS_MAX, state.backoffMs * 2);
    if (state.cursor === "") yield { kind: "relisting" };
  }
}

/** Where to continue, when the last message came, and how long to wait before the next retry. */
type StreamState = { cursor: string; lastMessageMs: number; backoffMs: number };

/** Throws the error if a retry cannot help, or if the service has been silent for too long. */
function retryPauseMs(error: unknown, nowMs: number, state: StreamState): number {
  const silenceMs = nowMs - state.lastMessageMs;
  if (!(error instanceof CallError)) throw error;
  const hasWorked = state.backoffMs === BACKOFF_MS_MIN && Number.isFinite(silenceMs);
  if (hasWorked && isOfOldToken(error)) return state.backoffMs;
  if (!RETRIED_CODES.includes(error.code) || silenceMs > RESTART_MS_MAX) throw error;
  return Math.max(state.backoffMs, retryDelayMs(error) ?? 0);
}

async function pause(run: StreamRun, options: StreamJobsOptions, pauseMs: number): Promise<void> {
  const { clock, signal: interrupted } = run.deps;
  using woken = linkedController(options.signal, interrupted);
  await clock.sleep(pauseMs, woken.signal);
  if (interrupted.aborted) throw new CommandFailure(EXIT.interrupted, []);
}

/** Makes one call, from `state.cursor` on, and keeps `state` up to date. */
async function* streamOnce(
  run: StreamRun,
  options: StreamJobsOptions,
  state: StreamState,
): AsyncGenerator<JobStreamEvent> {
  const request = { filter: options.filter, cursor: state.cursor };
  let isListing = state.cursor === "";
  for await (const { type, job, cursor } of run.client.stream(JobService.method.watchJobs, request, options.signal)) {
    state.lastMessageMs = run.deps.clock.monotonicMs();
    state.backoffMs = BACKOFF_MS_MIN;
    const event = eventOf(type, job);
    if (event?.kind === "relisting") isListing = true;
    if (event?.kind === "listed") isListing = false;
    if (event !== null) yield event;
    // The cursor moves only after the event was handled, and never within a listing: a retry then repeats the event.
    if (!isListing) state.cursor = cursor;
  }
}

function eventOf(type: WatchJobsResponse_Type | UnknownEnum, job: Job | undefined): JobStreamEvent | null {
  switch (type) {
    case WatchJobsResponse_Type.BOOKMARK:
      return { kind: "listed" };
    case WatchJobsResponse_Type.GAP:
      return { kind: "relisting" };
    case WatchJobsResponse_Type.DELETED:
      return job === undefined ? null : { kind: "deleted", job };
    default:
      return job === undefined ? null : { kind: "changed", job };
  }
}
