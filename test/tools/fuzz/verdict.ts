/** Decides whether an answer is one that a caller may get. */
import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import type { Answer } from "./caller.ts";

export const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** Codes that no well-formed call may get from a service whose parts all run. */
const NEVER = ["UNKNOWN", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNIMPLEMENTED", "OUT_OF_RANGE", "CANCELLED"];
/**
 * Reasons of UNAVAILABLE that say the truth: the fuzz registers clusters that do not answer, and several of its callers
 * take and release the same tokens.
 */
const MEANT_UNAVAILABLE = ["CLUSTER_UNAVAILABLE", "TOKEN_CONTENDED"];
/** gRPC itself refuses messages that are too large, before the service sees them. */
const TOO_LARGE = "Received message larger than max";
/** Many clients drop responses with longer trailers. */
const TRAILER_BYTES_MAX = 8192;

export function codeOf({ status, left, failure }: Answer): string {
  if (status !== null) return CODES[status] ?? `status ${status}`;
  return left ? "left" : `no status (${failure ?? "the stream ended"})`;
}

/** Everything that is wrong with an answer to a call that was sent as gRPC demands, whatever its message holds. */
export function problemsOf(method: DescMethod, answer: Answer): readonly string[] {
  const code = codeOf(answer);
  if (answer.left && answer.status === null) return undecodable(method, answer);
  if (answer.status === null) return [code];
  if (answer.trailerBytes > TRAILER_BYTES_MAX) return [`${answer.trailerBytes} bytes of trailers`];
  if (code === "OK") return undecodable(method, answer);
  return [...unmeant(code, answer), ...undescribed(method, code, answer)];
}

function unmeant(code: string, answer: Answer): readonly string[] {
  if (!NEVER.includes(code) && !code.startsWith("status")) return [];
  if (code === "UNAVAILABLE" && isMeant(answer)) return [];
  return [`${code}: ${answer.message}`];
}

/** Problems that a machine causes that stands still: connections and their pings time out. */
const TIMED =
  /^(no status|UNAVAILABLE: the database does not answer)|UnavailableError|CallError: (DEADLINE_EXCEEDED|UNAVAILABLE)/;

/** Whether a problem can be that of a machine that stood still, instead of the service. */
export function isTimed(problem: string): boolean {
  return TIMED.test(problem);
}

/** Whether an answer of UNAVAILABLE says the truth. */
export function isMeant(answer: Answer): boolean {
  return MEANT_UNAVAILABLE.includes(reasonOf(answer) ?? "");
}

/** The reason of an error's ErrorInfo. */
export function reasonOf({ details }: Answer): string | null {
  if (details === null) return null;
  const info = fromBinary(StatusSchema, details).details.map((detail) => anyUnpack(detail, ErrorInfoSchema));
  return info.find((found) => found !== undefined)?.reason ?? null;
}

/** Every error of our own services says why, and INVALID_ARGUMENT names the fields. */
function undescribed(method: DescMethod, code: string, answer: Answer): readonly string[] {
  if (!method.parent.typeName.startsWith("gangway.")) return [];
  if (code === "RESOURCE_EXHAUSTED" && answer.message.startsWith(TOO_LARGE)) return [];
  if (answer.details === null) return [`${code} without details: ${answer.message}`];
  if (answer.message === "") return [`${code} without a message`];
  if (reasonOf(answer) === null) return [`${code} without a reason`];
  const { code: inner, details } = fromBinary(StatusSchema, answer.details);
  if (inner !== answer.status) return [`${code} whose details say ${CODES[inner]}`];
  if (code !== "INVALID_ARGUMENT" || reasonOf(answer) === "UNDECODABLE_REQUEST") return [];
  const fields = details.flatMap((detail) => anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? []);
  return fields.length > 0 && fields.every(({ description }) => description !== "")
    ? []
    : ["INVALID_ARGUMENT that names no field"];
}

function undecodable(method: DescMethod, { messages, left }: Answer): readonly string[] {
  if (method.methodKind === "unary" && messages.length !== 1 && !left) return [`OK with ${messages.length} messages`];
  try {
    for (const message of messages) fromBinary(method.output, message);
    return [];
  } catch (error) {
    return [`an answer that does not decode: ${error}`];
  }
}
