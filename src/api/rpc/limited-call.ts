import { status } from "@grpc/grpc-js";
import type { LimitedCall, RefusingLimit } from "../../core/access/call-limits.ts";
import { errorInfo, quotaFailure, retryInfo } from "./error-details.ts";
import { RpcError } from "./rpc-error.ts";

type Shown = { readonly reason: string; readonly exceeds: (max: number) => string };

const SHOWN: Readonly<Record<RefusingLimit, Shown>> = {
  callsPerSecond: {
    reason: "TOO_MANY_CALLS",
    exceeds: (max) => `makes more than ${max} calls per second; a large request or answer counts as several`,
  },
  callsInFlight: {
    reason: "TOO_MANY_CALLS_IN_FLIGHT",
    exceeds: (max) => `already has ${max} calls without an answer, which is its limit`,
  },
  watches: { reason: "TOO_MANY_WATCHES", exceeds: (max) => `already has ${max} watches, which is its limit` },
  logStreams: { reason: "TOO_MANY_LOG_STREAMS", exceeds: (max) => `already reads ${max} logs, which is its limit` },
  waitingRequests: {
    reason: "TOO_MANY_WAITING_REQUESTS",
    exceeds: (max) => `already has ${max} requests that wait for tokens, which is its limit`,
  },
};

/** RESOURCE_EXHAUSTED for a call beyond a limit of its caller. */
export function limitedCall({ limit, max, retryMs }: LimitedCall, subject: string): RpcError {
  const { reason, exceeds } = SHOWN[limit];
  const description = exceeds(max);
  return new RpcError(status.RESOURCE_EXHAUSTED, `the caller ${subject} ${description}`, [
    quotaFailure({ subject: `caller ${subject}`, description }),
    errorInfo(reason, { limit: String(max) }),
    retryInfo(retryMs),
  ]);
}
