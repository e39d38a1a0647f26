import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { countNotes, joinNotes, restText } from "../../core/job/request/notes.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import {
  badRequest,
  DETAILS_BYTES_MAX,
  type Detail,
  encodeStatus,
  errorInfo,
  preconditionFailure,
  quotaFailure,
  resourceInfo,
  retryInfo,
  statusMessage,
} from "./error-details.ts";

export const DETAILS_KEY = "grpc-status-details-bin";
const RETRY_MS = 1000;
/** The time after which there may be room again. */
const ROOM_RETRY_MS = 5000;
const FIELDS_NAMED_MAX = 5;
/** Room in a status for everything but its BadRequest: message, reason, type names. */
const BESIDE_BAD_REQUEST_BYTES = 1600;

/** An intended answer other than OK. Its code, message and details reach the client unchanged. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: status;
  readonly details: readonly Detail[];

  constructor(code: status, message: string, details: readonly Detail[] = []) {
    super(statusMessage(message));
    this.code = code;
    this.details = details;
  }
}

/** INVALID_ARGUMENT with every violation. The message names the first fields, because many clients show only that. */
export function invalidFields(notes: readonly FieldNote[]): RpcError {
  const errors = joinNotes(notes.filter(({ isWarning }) => isWarning !== true));
  const count = countNotes(errors);
  const first = errors
    .slice(0, FIELDS_NAMED_MAX)
    .map((note) => (note.field === "" ? note.message : `${note.field}: ${note.message}`));
  const more = count > first.length ? [restText(count - first.length)] : [];
  const details = [
    badRequest(
      [...errors, ...notes.filter(({ isWarning }) => isWarning === true)],
      DETAILS_BYTES_MAX - BESIDE_BAD_REQUEST_BYTES,
    ),
    errorInfo("INVALID_FIELDS", { violations: String(count) }),
  ];
  return new RpcError(status.INVALID_ARGUMENT, [...first, ...more].join("; "), details);
}

export function undecodable(problem: string): RpcError {
  return new RpcError(status.INVALID_ARGUMENT, problem, [errorInfo("UNDECODABLE_REQUEST")]);
}

/** NOT_FOUND for a resource such as `{ type: "job", name: "default/mnist" }`. */
export function notFound(resource: { readonly type: string; readonly name: string }): RpcError {
  const reason = `${reasonPart(resource.type)}_NOT_FOUND`;
  const type = `gangway.dev/${resource.type.replaceAll(" ", "_")}`;
  const details = [resourceInfo(type, resource.name), errorInfo(reason)];
  return new RpcError(status.NOT_FOUND, `${resource.type} ${resource.name} does not exist`, details);
}

/** The part of a reason that names a type of resources: `PRIORITY_CLASS` for `priority class`. */
export function reasonPart(type: string): string {
  return type.toUpperCase().replaceAll(" ", "_");
}

export function alreadyExists(reason: string, message: string): RpcError {
  return new RpcError(status.ALREADY_EXISTS, message, [errorInfo(reason)]);
}

export function failedPrecondition(violation: { type: string; subject: string; description: string }): RpcError {
  const details = [preconditionFailure(violation), errorInfo(violation.type)];
  return new RpcError(status.FAILED_PRECONDITION, `${violation.subject} ${violation.description}`, details);
}

export function staleVersion(subject: string): RpcError {
  const message = `${subject} has changed since its version was read: read it again and repeat the change`;
  return new RpcError(status.ABORTED, message, [errorInfo("STALE_RESOURCE_VERSION")]);
}

export function unavailable(reason: string, message: string): RpcError {
  return new RpcError(status.UNAVAILABLE, message, [errorInfo(reason), retryInfo(RETRY_MS)]);
}

/** UNAVAILABLE for a call that the server does not end. */
export function serverStopping(advice: string): RpcError {
  return unavailable("SERVER_STOPPING", `the server is stopping; ${advice}`);
}

export function badPageToken(): RpcError {
  return invalidFields([
    { field: "page_token", message: "must be a next_page_token that this list has returned for this order" },
  ]);
}

/** RESOURCE_EXHAUSTED for a bound that protects the service, as opposed to a pool's quota. */
export function tooMany(
  reason: string,
  violation: { readonly subject: string; readonly description: string },
): RpcError {
  const message = `${violation.subject} ${violation.description}`;
  return new RpcError(status.RESOURCE_EXHAUSTED, message, [
    quotaFailure(violation),
    errorInfo(reason),
    retryInfo(ROOM_RETRY_MS),
  ]);
}

/** UNAUTHENTICATED. `why` shows nothing of a credential. */
export function unauthenticated(why: string): RpcError {
  return new RpcError(status.UNAUTHENTICATED, `the caller is not known: ${why}`, [errorInfo("UNAUTHENTICATED")]);
}

/** Ends a stream whose credential does not count any more. */
export function credentialEnded(why: string): RpcError {
  const hint = "call again with a new credential, and resume a watch with its last cursor";
  return new RpcError(status.UNAUTHENTICATED, `the stream ends here, because ${why}: ${hint}`, [
    errorInfo("UNAUTHENTICATED"),
  ]);
}

/** Ends a watch whose client reads too slowly; the cursor says where to resume. */
export function tooSlow(cursor: string): RpcError {
  const message = "the stream was read too slowly and ends here: watch again with the cursor of the last response";
  return new RpcError(status.RESOURCE_EXHAUSTED, message, [
    errorInfo("WATCH_TOO_SLOW", { cursor }),
    retryInfo(RETRY_MS),
  ]);
}

/** Ends a stream whose client has taken no message for too long. */
export function stalled(seconds: number): RpcError {
  const message = `the client has read nothing for ${seconds} s: call again, and resume a watch with its last cursor`;
  return new RpcError(status.RESOURCE_EXHAUSTED, message, [errorInfo("STREAM_STALLED"), retryInfo(RETRY_MS)]);
}

/** Gets the cause of an internal error, which no client may see, and the reference that the client got instead. */
export type OnInternalError = (reference: string, cause: unknown) => void;

/** Turns anything that was thrown into a status. No other code does. */
export function toStatus(cause: unknown, onInternalError: OnInternalError): Partial<StatusObject> & Error {
  const error = toRpcError(cause, onInternalError);
  const metadata = new Metadata();
  const { code, message, details } = error;
  if (details.length > 0) metadata.set(DETAILS_KEY, encodeStatus({ code, message, details }));
  return { name: error.name, message, code, details: message, metadata };
}

/** Turns anything that was thrown into the google.rpc.Status of one item of a batch. */
export function statusMessageOf(
  cause: unknown,
  onInternalError: OnInternalError,
): { code: number; message: string; details: Detail[] } {
  const { code, message, details } = toRpcError(cause, onInternalError);
  return { code, message, details: [...details] };
}

/**
 * Why the signal of a call is aborted once the call has ended. One reason for all calls: without it, each would make an
 * error with a stack at its end.
 */
export const CALL_ENDED = new DOMException("the call has ended", "AbortError");

function toRpcError(cause: unknown, onInternalError: OnInternalError): RpcError {
  if (cause instanceof RpcError) return cause;
  // A handler that stops because its caller has left has not failed.
  if (cause === CALL_ENDED) return new RpcError(status.CANCELLED, CALL_ENDED.message);
  if (cause instanceof UnavailableError) return unavailable(cause.reason, cause.message);
  const reference = crypto.randomUUID().slice(0, 8);
  onInternalError(reference, cause);
  return new RpcError(status.INTERNAL, `internal error, reference ${reference}`, [
    errorInfo("INTERNAL", { reference }),
  ]);
}
