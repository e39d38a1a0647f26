import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { LogLine, OpenLog } from "../../core/job/container-log.ts";
import type { KeptLogs } from "../../core/job/failure-logs/kept-logs.ts";
import type { Job } from "../../core/job/job.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { StreamJobLogsRequest, StreamJobLogsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { merge } from "../../runtime/merge.ts";
import type { JobLogs, JobReads, JobWatch } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { invalidFields, notFound, RpcError, unavailable } from "../rpc/rpc-error.ts";
import { namespaceOf } from "./convert-sent.ts";
import { type FollowedLines, followReplica } from "./follow-replica.ts";
import { FollowedJob } from "./followed-job.ts";
import type { FollowerBound } from "./follower-bound.ts";
import { sightOf, withoutOthers } from "./hide-others.ts";
import { keptResponses, logsOfAttempt, newestOf } from "./kept-log-lines.ts";
import { logFailure, noPod, noSuchContainer, notStarted } from "./log-errors.ts";
import { type LogReplica, replicasNamed, targetOf } from "./log-replicas.ts";

type LogPorts = {
  readonly kinds: Registry;
  readonly reads: JobReads;
  readonly watch: JobWatch;
  readonly logs: JobLogs;
  readonly followers: FollowerBound;
  readonly clock: Clock;
};

type Response = MessageInitShape<typeof StreamJobLogsResponseSchema>;
/** Lines of the log of a replica that has a pod; or kept ones of one that has none. */
type Written = FollowedLines & { readonly replica: LogReplica };

/** The most replicas that one stream follows, so that one client cannot take all places of followers. */
const FOLLOWED_MAX = 100;

/**
 * Streams the logs of a job's replicas, one replica after the other. With `follow`, streams all of them at once until
 * the job is over. Of an attempt, and of replicas that have no log (with `follow`: once the job is over), streams the
 * lines that are kept of containers that failed.
 */
export async function* streamJobLogs(
  ports: LogPorts,
  request: StreamJobLogsRequest,
  context: CallContext,
): AsyncIterable<Response> {
  refuseWithAttempt(request);
  const which = { namespace: namespaceOf(request), name: request.name };
  const shown = await ports.reads.getJob(which);
  if (shown === null) throw notFound({ type: "job", name: `${which.namespace}/${which.name}` });
  const job = withoutOthers(shown.job, sightOf(context.access));
  const kind = ports.kinds.kindOf(job.spec.kind);
  const { replica: named, container } = request;
  const replicas = replicasNamed({ job, kind }, { named, container });
  const selection = { job, replicas, request };
  if (request.attempt !== undefined) {
    const { attempt } = request;
    const kept = await keptOf(ports.reads, selection);
    yield* keptResponses(logsOfAttempt(job, kept, { replicas, attempt, asked: request }), request);
    return;
  }
  const written = request.follow
    ? followAll(ports, { ...selection, caller: context.identity.subject }, context.signal)
    : readAll(ports, selection, context.signal);
  for await (const one of written) {
    if ("kept" in one) yield* keptResponses(one.kept, request);
    else yield { lines: one.lines.map((line) => toProtoLine(one.replica, line, request.timestamps)) };
  }
}

/** Kept lines have ended, and have no times. */
function refuseWithAttempt({ attempt, follow, timestamps, previous }: StreamJobLogsRequest): void {
  if (attempt === undefined || !(follow || timestamps || previous)) return;
  const why = "the lines that are kept of an attempt have ended, and have no times";
  const message = `must not be set together with follow, timestamps or previous: ${why}`;
  throw invalidFields([{ field: "attempt", message }]);
}

/** The logs that are kept of a job. They have no lines of the run before a restart. */
async function keptOf(
  reads: JobReads,
  { job: { uid, namespace, name }, request }: Pick<LogSelection, "job" | "request">,
): Promise<KeptLogs> {
  const kept = request.previous ? { keeps: true, logs: [] } : await reads.failureLogs(uid);
  if (kept === null) throw notFound({ type: "job", name: `${namespace}/${name}` });
  return kept;
}

function toProtoLine({ key, container }: LogReplica, { timeNs, text, partial }: LogLine, timestamps: boolean) {
  const time = timestamps && timeNs !== null ? { time: toTimestamp(timeNs) } : {};
  return { replica: key, container, text, partial, ...time };
}

function toTimestamp(timeNs: bigint): Pick<Timestamp, "seconds" | "nanos"> {
  return { seconds: timeNs / 1_000_000_000n, nanos: Number(timeNs % 1_000_000_000n) };
}

type LogSelection = {
  readonly job: Job;
  readonly replicas: readonly LogReplica[];
  readonly request: StreamJobLogsRequest;
};

async function* followAll(
  ports: LogPorts,
  { job, replicas, request, caller }: LogSelection & { readonly caller: string },
  signal: AbortSignal,
): AsyncGenerator<Written> {
  if (replicas.length > FOLLOWED_MAX) {
    const message =
      `selects ${replicas.length} replicas, but at most ${FOLLOWED_MAX} can be followed at the same time: ` +
      "name one replica or one type";
    throw invalidFields([{ field: "replica", message }]);
  }
  using left = linkedController(signal);
  const until = left.signal;
  const giveWay = (why: RpcError) => left.abort(why);
  using _places = ports.followers.reserve({ caller, logs: replicas.length, giveWay }, until);
  const followed = new FollowedJob(ports, job);
  const tailLines = request.tailLines === undefined ? null : Number(request.tailLines);
  const { logs, clock, reads } = ports;
  let all: Promise<KeptLogs | null> | null = null;
  const lastKept = async (replica: LogReplica) => {
    all ??= reads.failureLogs(job.uid);
    const kept = await all;
    return kept === null ? [] : newestOf(kept, replica, request);
  };
  void followed.run(until);
  try {
    yield* merge(
      replicas.map(async function* (replica): AsyncGenerator<Written> {
        const options = { logs, clock, job: followed, tailLines, lastKept };
        for await (const one of followReplica(options, replica, until)) yield { replica, ...one };
      }),
    );
    if (until.reason instanceof RpcError) throw until.reason;
  } finally {
    left.abort();
  }
}

/**
 * Reads one replica after the other. Of replicas without a log, returns the lines that are kept of their last failure.
 * Throws if none has anything.
 */
async function* readAll(
  { logs, reads }: LogPorts,
  selection: LogSelection,
  signal: AbortSignal,
): AsyncGenerator<Written> {
  let missing: RpcError | null = null;
  let found = false;
  let kept: KeptLogs | null = null;
  for (const replica of selection.replicas) {
    const opened = await openOnce(logs, { ...selection, replica }, signal);
    if (signal.aborted) return;
    if (opened.kind === "missing") {
      missing ??= opened.error;
      kept ??= await keptOf(reads, selection);
      const last = newestOf(kept, replica, selection.request);
      yield { replica, kept: last };
      found ||= last.length > 0;
      continue;
    }
    found = true;
    for await (const lines of throwIfBroken(opened.lines, replica)) yield { replica, lines };
  }
  if (!found && missing !== null) throw missing;
}

/** Opens a log. `missing`: this replica has no log. Throws if the reason is not about this replica alone. */
async function openOnce(
  logs: JobLogs,
  { job, replica, request }: LogSelection & { readonly replica: LogReplica },
  signal: AbortSignal,
): Promise<OpenLog | { readonly kind: "missing"; readonly error: RpcError }> {
  const target = targetOf(job, replica, { follow: false });
  const pod = target === null ? { kind: "absent" as const } : await logs.look(target, signal);
  if (pod.kind === "failed") throw logFailure(job, replica, pod);
  if (target === null || pod.kind === "absent") return { kind: "missing", error: noPod(job, replica) };
  const container = pod.containers.find(({ name }) => name === replica.container);
  if (container === undefined) throw noSuchContainer(replica, pod.containers);
  if (container.state === "waiting") return { kind: "missing", error: notStarted(job, replica, container) };
  const tailLines = request.tailLines === undefined ? null : Number(request.tailLines);
  const wanted = { container: container.name, previous: request.previous, tailLines, sinceTime: null };
  const opened = await logs.open({ ...target, ...wanted }, signal);
  if (opened.kind === "open") return opened;
  const error = logFailure(job, replica, opened);
  if (opened.status !== 400 && opened.status !== 404) throw error;
  return { kind: "missing", error };
}

async function* throwIfBroken(lines: OpenLog["lines"], { key }: LogReplica): AsyncGenerator<readonly LogLine[]> {
  try {
    yield* lines;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unavailable("LOG_BROKEN_OFF", `the log of ${key} broke off: ${why}`);
  }
}
