import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Any, anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { countNotes, restText } from "../../core/job/request/notes.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { cutText } from "../../runtime/cut-text.ts";

/** One message of google/rpc/error_details.proto. */
export type Detail = Any;

const DOMAIN = "gangway.dev";
/** Some clients drop responses whose trailers exceed 8 KiB. Details are sent as base64, which is longer by a third. */
export const DETAILS_BYTES_MAX = 4096;
/**
 * The trailers hold the message twice, once percent-encoded. There a character of another script takes up to nine
 * bytes.
 */
const MESSAGE_CHARS_MAX = 512;
const MESSAGE_ENCODED_MAX = 1536;
const MESSAGE_CHARS_ENCODED_MAX = 160;
const FIELD_CHARS_MAX = 256;
const DESCRIPTION_CHARS_MAX = 400;

export function errorInfo(reason: string, metadata: Readonly<Record<string, string>> = {}): Detail {
  const clipped = Object.entries(metadata).map(([key, value]) => [key, cutText(value, DESCRIPTION_CHARS_MAX)]);
  return pack(ErrorInfoSchema, { reason, domain: DOMAIN, metadata: Object.fromEntries(clipped) });
}

export function resourceInfo(type: string, name: string): Detail {
  const resourceName = cutText(name, FIELD_CHARS_MAX);
  return pack(ResourceInfoSchema, { resourceType: type, resourceName, description: "does not exist" });
}

export function preconditionFailure(violation: { type: string; subject: string; description: string }): Detail {
  const description = cutText(violation.description, DESCRIPTION_CHARS_MAX);
  return pack(PreconditionFailureSchema, { violations: [{ ...violation, description }] });
}

export function quotaFailure(violation: { subject: string; description: string }): Detail {
  const description = cutText(violation.description, DESCRIPTION_CHARS_MAX);
  return pack(QuotaFailureSchema, { violations: [{ subject: violation.subject, description }] });
}

/** A part of a millisecond counts as a whole one. */
export function retryInfo(delayMs: number): Detail {
  return pack(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(delayMs)) });
}

/** Lists the violations that fit into `bytesMax`, and how many more there are. */
export function badRequest(notes: readonly FieldNote[], bytesMax: number): Detail {
  const count = countNotes(notes);
  const all = notes
    .filter(({ more }) => more === undefined)
    .map((note) => ({
      field: cutText(note.field, FIELD_CHARS_MAX),
      description: cutText(note.message, DESCRIPTION_CHARS_MAX),
      // A warning alone refuses nothing, but it is often the cause of an error.
      ...(note.isWarning === true ? { reason: "WARNING" } : {}),
    }));
  for (let shown = all.length; ; shown--) {
    const more = count - shown;
    const rest = more === 0 ? [] : [{ field: "", description: `… ${restText(more)}` }];
    const detail = pack(BadRequestSchema, { fieldViolations: [...all.slice(0, shown), ...rest] });
    if (detail.value.length <= bytesMax || shown === 0) return detail;
    if (shown > 100) shown = Math.ceil(shown / 2);
  }
}

/** Encodes a google.rpc.Status of at most `DETAILS_BYTES_MAX`. Leaves out the last details if all do not fit. */
export function encodeStatus(status: { code: number; message: string; details: readonly Detail[] }): Buffer {
  for (let count = status.details.length; ; count--) {
    const shown = create(StatusSchema, { ...status, details: status.details.slice(0, count) });
    const bytes = toBinary(StatusSchema, shown);
    if (bytes.length <= DETAILS_BYTES_MAX || count === 0) return Buffer.from(bytes);
  }
}

/** Shortens a text so that it fits a status message. */
export function statusMessage(text: string): string {
  const short = cutText(text, MESSAGE_CHARS_MAX);
  return encodeURI(short).length <= MESSAGE_ENCODED_MAX ? short : cutText(short, MESSAGE_CHARS_ENCODED_MAX);
}

function pack<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Detail {
  return anyPack(schema, create(schema, init));
}
