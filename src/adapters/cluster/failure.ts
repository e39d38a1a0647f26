import type { JsonObject } from "../../runtime/json.ts";
import { numberAt, objectAt, stringAt } from "../../runtime/json.ts";

/** A call that did not succeed. */
export type ApiFailure = {
  readonly kind: "failed";
  /** The HTTP status; 0 where no answer came. */
  readonly status: number;
  /** As Kubernetes says it (`AlreadyExists`, `Forbidden`, …), or `Unreachable` where no answer came. */
  readonly reason: string;
  readonly message: string;
  /** How long the server asks to be left alone; null if it does not say. */
  readonly retryAfterMs: number | null;
};

/** Reasons for statuses whose body names none, as apimachinery's `NewGenericServerResponse` has them. */
const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Reads the answer of a server that refused: a `Status` object, or whatever a proxy in between has sent. */
export function failureFromStatus(
  httpStatus: number,
  body: JsonObject,
  headers: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): ApiFailure {
  const named = stringAt(body, "reason");
  const seconds = Number(headers["retry-after"] ?? numberAt(objectAt(body, "details"), "retryAfterSeconds"));
  return {
    kind: "failed",
    status: httpStatus,
    reason: named !== undefined && named !== "" ? named : (REASONS[httpStatus] ?? "Unknown"),
    message: stringAt(body, "message") ?? `the API server answered ${httpStatus}`,
    retryAfterMs: seconds > 0 ? seconds * 1000 : null,
  };
}

/** Reads a watch's ERROR event, whose object is a `Status`. */
export function failureFromEvent(status: JsonObject): ApiFailure {
  return failureFromStatus(numberAt(status, "code") ?? 500, status);
}

/** No answer came: the network, a timeout, or a caller who gave up. */
export function unreachable(error: unknown): ApiFailure {
  const message = error instanceof Error ? describe(error) : String(error);
  return { kind: "failed", status: 0, reason: "Unreachable", message, retryAfterMs: null };
}

function describe(error: Error): string {
  const code = (error as { code?: unknown }).code;
  const text = error.message === "" ? error.name : error.message;
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}
