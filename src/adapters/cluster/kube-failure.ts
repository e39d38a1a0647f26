import type { JsonObject } from "../../runtime/json.ts";
import { numberAt, objectAt, stringAt } from "../../runtime/json.ts";

/** A call that did not succeed. */
export type KubeFailure = {
  readonly kind: "failed";
  /** The HTTP status. 0: no answer came. */
  readonly status: number;
  /** The reason that Kubernetes gives (`AlreadyExists`, `Forbidden`, …), or `Unreachable` if no answer came. */
  readonly reason: string;
  readonly message: string;
  /** How long the server asks us to wait. Null: it does not say. */
  readonly retryAfterMs: number | null;
};

/** Reasons for statuses whose body names none, from apimachinery's `NewGenericServerResponse`. */
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

/** Reads a refusal: a `Status` object of the server, or any answer of a proxy in between. */
export function failureFromStatus(
  httpStatus: number,
  body: JsonObject,
  headers: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): KubeFailure {
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
export function failureFromEvent(status: JsonObject): KubeFailure {
  return failureFromStatus(numberAt(status, "code") ?? 500, status);
}

/** The failure of a call without an answer: the network failed, the call timed out, or its caller aborted it. */
export function unreachable(error: unknown): KubeFailure {
  const message = error instanceof Error ? describe(error) : String(error);
  return { kind: "failed", status: 0, reason: "Unreachable", message, retryAfterMs: null };
}

function describe(error: Error): string {
  const code = (error as { code?: unknown }).code;
  const text = error.message === "" ? error.name : error.message;
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}
