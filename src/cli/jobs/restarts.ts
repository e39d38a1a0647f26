/** How streams outlive a restart of the service. */
import { type CallError, STATUS } from "../rpc/call-error.ts";

/** Codes of a service that restarts, or that ends a stream. */
export const RESTART_CODES: readonly number[] = [STATUS.UNAVAILABLE, STATUS.DEADLINE_EXCEEDED, STATUS.ABORTED];
export const BACKOFF_MS_MIN = 200;
export const BACKOFF_MS_MAX = 5_000;
/** A restart takes less than this. After a longer silence a stream fails. */
export const RESTART_MS_MAX = 60_000;

/**
 * True if a stream ended because its token expired. If it has worked, its caller calls once more: the file of the token
 * may have a new one, which counts or does not.
 */
export function isOfOldToken({ code }: CallError): boolean {
  return code === STATUS.UNAUTHENTICATED;
}
