import type { MessageInitShape, UnknownEnum } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import type { Job } from "../gen/gangway/v1/job_pb.ts";
import { type JobFilterSchema, JobService, WatchJobsResponse_Type } from "../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT } from "./exit.ts";
import { isServiceError, retryDelayMs } from "./rpc-failure.ts";
import type { Run } from "./shell.ts";

/** What a stream of jobs says. `listed` follows every job that was there; after `forget`, all that was heard is void and told anew. */
export type JobChange =
  | { readonly kind: "seen" | "gone"; readonly job: Job }
  | { readonly kind: "listed" }
  | { readonly kind: "forget" };

export type FollowOptions = {
  readonly filter: MessageInitShape<typeof JobFilterSchema>;
  /** True: a service that does not answer the first call is waited for like one that goes away later. */
  readonly patient: boolean;
  readonly signal: AbortSignal;
};

/** What a service that restarts, or a stream that it ends, answers. */
const AGAIN: readonly number[] = [
  status.UNAVAILABLE,
  status.RESOURCE_EXHAUSTED,
  status.DEADLINE_EXCEEDED,
  status.ABORTED,
];
const BACKOFF_MS_MIN = 200;
const BACKOFF_MS_MAX = 5000;
/** A service that stays away for longer is not restarting. */
const AWAY_MS_MAX = 60_000;

/** Follows jobs until `signal` is aborted; continues from its cursor where the stream breaks off. Throws what cannot be continued. */
export async function* followJobs(run: Run, options: FollowOptions): AsyncGenerator<JobChange> {
  const { clock } = run.deps;
  const at: Position = {
    cursor: "",
    heardAtMs: options.patient ? clock.monotonicMs() : Number.NEGATIVE_INFINITY,
    backoffMs: BACKOFF_MS_MIN,
  };
  while (!options.signal.aborted) {
    let pauseMs = at.backoffMs;
    try {
      yield* changes(run, options, at);
    } catch (error) {
      if (options.signal.aborted) return;
      pauseMs = pauseBeforeAgain(error, clock.monotonicMs(), at);
    }
    await pause(run, options, pauseMs);
    at.backoffMs = Math.min(BACKOFF_MS_MAX, at.backoffMs * 2);
    if (at.cursor === "") yield { kind: "forget" };
  }
}

/** Where to continue, when the service was last heard of, and how long to wait if it fails again. */
type Position = { cursor: string; heardAtMs: number; backoffMs: number };

/** Throws the failure if it will not pass, or has not passed for too long. */
function pauseBeforeAgain(error: unknown, nowMs: number, at: Position): number {
  if (!isServiceError(error) || !AGAIN.includes(error.code) || nowMs - at.heardAtMs > AWAY_MS_MAX) throw error;
  return Math.max(at.backoffMs, retryDelayMs(error) ?? 0);
}

async function pause(run: Run, options: FollowOptions, pauseMs: number): Promise<void> {
  const { clock, signal: interrupted } = run.deps;
  await clock.sleep(pauseMs, AbortSignal.any([options.signal, interrupted]));
  if (interrupted.aborted) throw new CommandFailure(EXIT.interrupted, []);
}

/** One stream, from `at.cursor` on; keeps `at` up to date. */
async function* changes(run: Run, options: FollowOptions, at: Position): AsyncGenerator<JobChange> {
  const request = { filter: options.filter, cursor: at.cursor };
  let isListing = at.cursor === "";
  for await (const { type, job, cursor } of run.client.stream(JobService.method.watchJobs, request, options.signal)) {
    at.heardAtMs = run.deps.clock.monotonicMs();
    at.backoffMs = BACKOFF_MS_MIN;
    const change = changeOf(type, job);
    if (change?.kind === "forget") isListing = true;
    if (change?.kind === "listed") isListing = false;
    if (change !== null) yield change;
    // Taken over only now, and not within a listing: what was not told, or not dealt with, is told again.
    if (!isListing) at.cursor = cursor;
  }
}

function changeOf(type: WatchJobsResponse_Type | UnknownEnum, job: Job | undefined): JobChange | null {
  switch (type) {
    case WatchJobsResponse_Type.BOOKMARK:
      return { kind: "listed" };
    case WatchJobsResponse_Type.GAP:
      return { kind: "forget" };
    case WatchJobsResponse_Type.DELETED:
      return job === undefined ? null : { kind: "gone", job };
    default:
      return job === undefined ? null : { kind: "seen", job };
  }
}
