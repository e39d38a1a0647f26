import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { anyIs, anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceError } from "@grpc/grpc-js";
import { status } from "@grpc/grpc-js";
import {
  BadRequestSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { formatSpan } from "./duration.ts";
import { CommandFailure, EXIT } from "./exit.ts";

const AWAY: readonly number[] = [
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.INTERNAL,
  status.UNKNOWN,
  status.DATA_LOSS,
];

/** True for a failed call, as grpc-js reports it. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "metadata" in error;
}

/** Says precisely why a call failed: its code in words, its message, each wrong field on its own line, when to try again. */
export function rpcFailure(error: ServiceError, address: string): CommandFailure {
  if (error.code === status.CANCELLED) return new CommandFailure(EXIT.interrupted, []);
  const failure = statusFailure({ code: error.code, message: error.details, details: detailsOf(error) });
  if (error.code !== status.UNAVAILABLE || detailsOf(error).length > 0) return failure;
  return new CommandFailure(failure.exitCode, [
    ...failure.lines,
    `  The address tried is ${address}. Start the service with "gangway up", or name another address with`,
    "  --address HOST:PORT or the environment variable GANGWAY_ADDRESS.",
  ]);
}

/** A google.rpc.Status, of a call or of one item of a batch. */
type Failed = { readonly code: number; readonly message: string; readonly details: readonly Any[] };

/** The same of a status alone, such as that of one item of a batch. */
export function statusFailure(failed: Failed): CommandFailure {
  const lines = [headline(failed), ...failed.details.flatMap((detail) => detailLines(detail, failed.message))];
  return new CommandFailure(AWAY.includes(failed.code) ? EXIT.unavailable : EXIT.refused, lines);
}

/** Code and message; a message that only repeats the fields below it is left out. */
function headline({ code, message, details }: Failed): string {
  const [first] = details.flatMap((detail) => unpack(detail, BadRequestSchema)?.fieldViolations ?? []);
  const repeats = first !== undefined && message.startsWith(`${first.field}: `);
  // What grpc-js adds to a connection that was refused ends in a note that is empty more often than not.
  const said = message.replace(/\.? ?Resolution note: *$/, "");
  return `error: ${codeInWords(code)}${repeats ? "" : `: ${said}`}`;
}

/** When the service asks to be tried again, in milliseconds; null where it does not say. */
export function retryDelayMs(error: ServiceError): number | null {
  for (const detail of detailsOf(error)) {
    const delay = unpack(detail, RetryInfoSchema)?.retryDelay;
    if (delay !== undefined) return durationMs(delay);
  }
  return null;
}

function codeInWords(code: number): string {
  return (status[code] ?? `code ${code}`).toLowerCase().replaceAll("_", " ");
}

/** The details of the standard error model; none where there are none or they do not decode. */
function detailsOf(error: ServiceError): readonly Any[] {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!(bytes instanceof Uint8Array)) return [];
  try {
    return fromBinary(StatusSchema, bytes).details;
  } catch {
    return [];
  }
}

/** What a detail adds to the message. */
function detailLines(detail: Any, message: string): string[] {
  const badRequest = unpack(detail, BadRequestSchema);
  if (badRequest)
    return badRequest.fieldViolations.map((one) =>
      one.field === "" ? `  ${one.description}` : `  ${one.field}: ${one.description}`,
    );
  const failed = unpack(detail, PreconditionFailureSchema) ?? unpack(detail, QuotaFailureSchema);
  if (failed) {
    const added = failed.violations.filter((one) => !message.includes(one.description));
    return added.map((one) => `  ${one.subject}: ${one.description}`);
  }
  const delay = unpack(detail, RetryInfoSchema)?.retryDelay;
  if (delay) return [`  try again in ${formatSpan(Math.max(1000, durationMs(delay)))}`];
  return [];
}

function unpack<D extends DescMessage>(detail: Any, schema: D): MessageShape<D> | undefined {
  try {
    return anyIs(detail, schema) ? anyUnpack(detail, schema) : undefined;
  } catch {
    return undefined;
  }
}
