import { foreignText } from "../../runtime/foreign-text.ts";
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
  /** Why no answer came, such as ECONNREFUSED. Omitted: an answer came, or the error has no code. */
  readonly code?: string;
};

/** A server may ask for any time. After this one it is asked again. */
const RETRY_AFTER_MS_MAX = 60_000;
/** A reason is one word in CamelCase. Servers and webhooks may invent their own. */
const REASON = /^[A-Z][A-Za-z0-9]{0,62}$/;

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
  const named = stringAt(body, "reason") ?? "";
  const seconds = Number(headers["retry-after"] ?? numberAt(objectAt(body, "details"), "retryAfterSeconds"));
  return {
    kind: "failed",
    status: httpStatus,
    reason: REASON.test(named) ? named : reasonOf(httpStatus),
    message: foreignText(stringAt(body, "message") ?? `the API server answered ${httpStatus}`),
    retryAfterMs: seconds > 0 ? Math.min(seconds * 1000, RETRY_AFTER_MS_MAX) : null,
  };
}

/** Reasons that API servers give beside those of the table, from apimachinery's `StatusReason`. */
const OTHER_REASONS = [
  "AlreadyExists",
  "ServerTimeout",
  "StoreReadError",
  "NotAcceptable",
  "UnsupportedMediaType",
  "Expired",
];

/** True for the reasons of Kubernetes itself, which tell a reader nothing but what they mean. */
export function isKnownReason(reason: string): boolean {
  return OTHER_REASONS.includes(reason) || Object.values(REASONS).includes(reason);
}

/** The reason that a status has by itself. */
export function reasonOf(httpStatus: number): string {
  return REASONS[httpStatus] ?? "Unknown";
}

/** Reads a watch's ERROR event, whose object is a `Status`. */
export function failureFromEvent(status: JsonObject): KubeFailure {
  return failureFromStatus(numberAt(status, "code") ?? 500, status);
}

/** The failure of a call without an answer: the network failed, the call timed out, or its caller aborted it. */
export function unreachable(error: unknown): KubeFailure {
  const failure = { kind: "failed", status: 0, reason: "Unreachable", retryAfterMs: null } as const;
  if (!(error instanceof Error)) return { ...failure, message: foreignText(String(error)) };
  const { code } = error as { code?: unknown };
  const text = foreignText(error.message === "" ? error.name : error.message);
  if (typeof code !== "string") return { ...failure, message: text };
  return { ...failure, message: text.includes(code) ? text : `${text} (${code})`, code };
}
