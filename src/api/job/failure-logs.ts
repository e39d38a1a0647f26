/** The last lines of containers that failed, for those who may read the logs of the job. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { KeptLog, KeptLogs } from "../../core/job/failure-logs/kept-logs.ts";
import type { Job } from "../../core/job/job.ts";
import type { FailureLogSchema, FailureLogsSchema } from "../../gen/gangway/v1/failure_log_pb.ts";
import type { JobReads } from "../ports.ts";
import { type CallAccess, namespacePlace } from "../rpc/call-access.ts";

/**
 * The logs that are kept of a job. Undefined: there are none. A caller without the permission to read logs learns only
 * that they are left out. `choose`: the part that is shown.
 */
async function failureLogsOf(
  reads: Pick<JobReads, "failureLogs">,
  { uid, namespace, status }: Job,
  { access, choose = (logs) => logs }: FailureLogsOptions,
): Promise<MessageInitShape<typeof FailureLogsSchema> | undefined> {
  // Most jobs that are read have not failed, and need no second read.
  const kept = hasFailed(status) ? await reads.failureLogs(uid) : null;
  if (kept === null) return undefined;
  if (!kept.keeps) return { logs: [], leftOut: notKept(namespace) };
  if (kept.logs.length === 0) return undefined;
  if (!access.may("jobs.logs", namespacePlace(namespace))) {
    return { logs: [], leftOut: `only callers with the permission jobs.logs in namespace ${namespace} see them` };
  }
  return { logs: choose(kept.logs).map((log) => toProtoFailureLog(log)), leftOut: "" };
}

/** The field of an answer that has what is kept of a job. */
export async function shownFailureLogs(
  ...of: Parameters<typeof failureLogsOf>
): Promise<{ readonly failureLogs?: MessageInitShape<typeof FailureLogsSchema> }> {
  const failureLogs = await failureLogsOf(...of);
  return failureLogs === undefined ? {} : { failureLogs };
}

type FailureLogsOptions = {
  readonly access: CallAccess;
  readonly choose?: (logs: KeptLogs["logs"]) => KeptLogs["logs"];
};

/** True if a container of the job may have failed, also one whose failure the kind forgives. */
function hasFailed({ failure, attempts, replicaStatuses }: Job["status"]): boolean {
  const isForgiven = Object.values(replicaStatuses).some(({ failed }) => failed > 0);
  return failure !== null || attempts.user + attempts.system > 0 || isForgiven;
}

/** Why nothing is kept in a namespace. */
export function notKept(namespace: string): string {
  return `namespace ${namespace} keeps no lines of failed containers (keep_failure_logs is false)`;
}

/** Converts a log. `textless`: without its lines. */
export function toProtoFailureLog(
  { lines, problem, readMs, podUid: _podUid, ...log }: KeptLog,
  { textless = false } = {},
): MessageInitShape<typeof FailureLogSchema> {
  return {
    ...log,
    readTime: timestampFromMs(readMs),
    text: textless ? "" : lines.text,
    cut: lines.cut,
    problem: problem?.reason ?? "",
    problemMessage: problem?.message ?? "",
  };
}
