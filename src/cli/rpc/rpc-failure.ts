import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { anyIs, anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { formatSpan } from "../output/duration.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";
import { type CallError, codeName, STATUS } from "./call-error.ts";

/** Codes that mean that the service could not answer, rather than that it refused. */
const UNAVAILABLE_CODES: readonly number[] = [
  STATUS.UNAVAILABLE,
  STATUS.DEADLINE_EXCEEDED,
  STATUS.INTERNAL,
  STATUS.UNKNOWN,
  STATUS.DATA_LOSS,
];

/** Explains a failed call: its code in words, its message, each wrong field on its own line, when to retry. */
export function rpcFailure(error: CallError, address: string): CommandFailure {
  if (error.code === STATUS.CANCELLED) return new CommandFailure(EXIT.interrupted, []);
  const failure = statusFailure({ code: error.code, message: error.details, details: detailsOf(error) });
  if (error.remedy.length > 0) return new CommandFailure(failure.exitCode, [...failure.lines, ...error.remedy]);
  if (error.code !== STATUS.UNAVAILABLE || detailsOf(error).length > 0) return failure;
  return new CommandFailure(failure.exitCode, [
    ...failure.lines,
    `  The command tried ${address}. Start the service with "gangway up", or set another address with`,
    "  --address HOST:PORT or the environment variable GANGWAY_ADDRESS.",
  ]);
}

/** The reason of a refusal in capitals, such as JOB_NAME_TAKEN; empty if it has none. */
export function reasonOf(details: readonly Any[]): string {
  return details.map((detail) => unpack(detail, ErrorInfoSchema)?.reason ?? "").find((reason) => reason !== "") ?? "";
}

/** A google.rpc.Status, of a call or of one item of a batch. */
type RpcStatus = { readonly code: number; readonly message: string; readonly details: readonly Any[] };

/** Explains a status, such as that of one item of a batch, like `rpcFailure`. */
export function statusFailure(rpcStatus: RpcStatus): CommandFailure {
  const { code, message, details } = rpcStatus;
  const lines = [headline(rpcStatus), ...details.flatMap((detail) => detailLines(detail, message))];
  return new CommandFailure(UNAVAILABLE_CODES.includes(code) ? EXIT.unavailable : EXIT.refused, lines);
}

/** Code and message. Leaves out a message that the lines of wrong fields repeat. */
function headline({ code, message, details }: RpcStatus): string {
  const [first] = details.flatMap((detail) => unpack(detail, BadRequestSchema)?.fieldViolations ?? []);
  const repeats = first !== undefined && message.startsWith(`${first.field}: `);
  return `error: ${codeInWords(code)}${repeats ? "" : `: ${message}`}`;
}

/** Returns the retry delay that the service asks for, in milliseconds; null if it asks for none. */
export function retryDelayMs(error: CallError): number | null {
  for (const detail of detailsOf(error)) {
    const delay = unpack(detail, RetryInfoSchema)?.retryDelay;
    if (delay !== undefined) return durationMs(delay);
  }
  return null;
}

function codeInWords(code: number): string {
  return codeName(code).toLowerCase().replaceAll("_", " ");
}

/** Returns the details of the standard error model. Details that do not decode are ignored. */
export function detailsOf({ encodedStatus }: CallError): readonly Any[] {
  if (encodedStatus === null) return [];
  try {
    return fromBinary(StatusSchema, encodedStatus).details;
  } catch {
    return [];
  }
}

/** Returns the lines that a detail adds to the message. */
function detailLines(detail: Any, message: string): string[] {
  const badRequest = unpack(detail, BadRequestSchema);
  if (badRequest)
    return badRequest.fieldViolations.map(({ field, description, reason }) => {
      const text = field === "" ? description : `${field}: ${description}`;
      return reason === "WARNING" ? `  warning: ${text}` : `  ${text}`;
    });
  const failure = unpack(detail, PreconditionFailureSchema) ?? unpack(detail, QuotaFailureSchema);
  if (failure) {
    const added = failure.violations.filter((one) => !message.includes(one.description));
    return added.map((one) => `  ${one.subject}: ${one.description}`);
  }
  const delay = unpack(detail, RetryInfoSchema)?.retryDelay;
  if (delay) return [`  retry in ${formatSpan(Math.max(1000, durationMs(delay)))}`];
  return [];
}

function unpack<D extends DescMessage>(detail: Any, schema: D): MessageShape<D> | undefined {
  try {
    return anyIs(detail, schema) ? anyUnpack(detail, schema) : undefined;
  } catch {
    return undefined;
  }
}
