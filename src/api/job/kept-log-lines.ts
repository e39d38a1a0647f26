/** The lines that are kept of containers that failed, for streams of logs. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  attemptsText,
  FAILURE_LOG_LIMITS,
  type KeptLog,
  type KeptLogs,
  newestAttempts,
} from "../../core/job/failure-logs/kept-logs.ts";
import type { Job } from "../../core/job/job.ts";
import { attemptOf } from "../../core/reconcile/arrange-gang.ts";
import type { StreamJobLogsRequest, StreamJobLogsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { maxOf } from "../../runtime/lists.ts";
import { failedPrecondition, type RpcError } from "../rpc/rpc-error.ts";
import { notKept, toProtoFailureLog } from "./failure-logs.ts";
import type { LogReplica } from "./log-replicas.ts";

type Response = MessageInitShape<typeof StreamJobLogsResponseSchema>;
type Asked = Pick<StreamJobLogsRequest, "container" | "tailLines">;

/** The messages of these logs: each log begins with one that names it. */
export function* keptResponses(logs: readonly KeptLog[], { tailLines }: Asked): Generator<Response> {
  for (const log of logs) {
    const { replica, container } = log;
    const all = log.lines.text === "" ? [] : log.lines.text.split("\n");
    const shown = tailLines === undefined ? all : all.slice(Math.max(0, all.length - Number(tailLines)));
    const cut = log.lines.cut || shown.length < all.length;
    const kept = toProtoFailureLog({ ...log, lines: { ...log.lines, cut } }, { textless: true });
    yield { kept, lines: shown.map((text) => ({ replica, container, text, partial: false })) };
  }
}

/** The logs of a replica's newest attempt that is kept. Of all its containers, unless one is named. */
export function newestOf({ logs }: KeptLogs, { key }: LogReplica, asked: Asked): readonly KeptLog[] {
  return newestAttempts(logs.filter((log) => log.replica === key && isAsked(log, asked)));
}

/** The logs of one attempt of these replicas. Throws if none is kept, with the reason. */
export function logsOfAttempt(
  job: Job,
  kept: KeptLogs,
  of: { readonly replicas: readonly LogReplica[]; readonly attempt: number; readonly asked: Asked },
): readonly KeptLog[] {
  const { replicas, attempt, asked } = of;
  const keys = new Set<string>(replicas.map(({ key }) => key));
  const own = kept.logs.filter(({ replica }) => keys.has(replica));
  const ofAttempt = own.filter((log) => log.attempt === attempt);
  const found = ofAttempt.filter((log) => isAsked(log, asked));
  if (found.length > 0) return found;
  const latest = maxOf(
    replicas.map(({ key }) => attemptOf(job.status.attempts, key as `${string}/${number}`)),
    0,
  );
  throw noKeptLog(job, { kept, own, ofAttempt, attempt, latest, asked });
}

function isAsked({ container }: KeptLog, asked: Asked): boolean {
  return asked.container === "" || container === asked.container;
}

function noKeptLog(
  job: Job,
  of: {
    readonly kept: KeptLogs;
    readonly own: readonly KeptLog[];
    readonly ofAttempt: readonly KeptLog[];
    readonly attempt: number;
    /** The newest attempt that has begun. */
    readonly latest: number;
    readonly asked: Asked;
  },
): RpcError {
  const subject = `attempt ${of.attempt} of job ${job.namespace}/${job.name}`;
  return failedPrecondition({ type: "NO_KEPT_LOG", subject, description: reasonOf(job, of) });
}

function reasonOf({ namespace }: Job, of: Parameters<typeof noKeptLog>[1]): string {
  const { kept, own, ofAttempt, attempt, latest, asked } = of;
  if (attempt > latest) return `has not begun: the newest attempt is ${latest}`;
  if (!kept.keeps) return `has no lines: ${notKept(namespace)}`;
  if (ofAttempt.length > 0) {
    const names = [...new Set(ofAttempt.map(({ container }) => container))].join(", ");
    return `has no lines of a failed container ${asked.container}: those that failed are ${names}`;
  }
  const others = own.length === 0 ? "" : `; attempts with lines: ${attemptsText(own)}`;
  if (attempt === latest) return `has no failed container yet: leave out the attempt to read its pods${others}`;
  const most = `the lines of the last ${FAILURE_LOG_LIMITS.attemptsMax} attempts that failed`;
  return `has no lines any more, or no container of it failed: only ${most} are kept${others}`;
}
