/** Words about the last lines that are kept of containers that failed. */
import type { FailureLog } from "../../gen/gangway/v1/failure_log_pb.ts";
import { visibleText } from "../../runtime/visible-text.ts";

/** The line above kept lines. `job`: what stands before the replica. Control characters are shown, also with --raw. */
export function keptHeading(log: FailureLog, job = ""): string {
  return visibleText(`==> ${job}${keptText(log)} <==`).replaceAll("\n", " ");
}

/** `Worker/0 pytorch, attempt 2, exit code 1: the last lines, kept when it failed in pod …`. */
export function keptText(log: FailureLog): string {
  const { replica, container, attempt, restarts, pod, cluster, cut, problem, problemMessage } = log;
  const run = restarts === 0 ? "" : `, after ${restarts} ${restarts === 1 ? "restart" : "restarts"}`;
  const ended = `exit code ${log.exitCode}${log.reason === "" || log.reason === "Error" ? "" : ` (${log.reason})`}`;
  const head = `${replica} ${container}, attempt ${attempt}${run}, ${ended}`;
  const where = `pod ${pod} on ${cluster}`;
  if (problem !== "") return `${head}: no lines were kept of ${where}: ${problem}: ${problemMessage}`;
  return `${head}: ${cut ? "the last lines" : "all lines"}, kept when it failed in ${where}`;
}
