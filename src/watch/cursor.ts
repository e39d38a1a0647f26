import type { LogPlace } from "../core/job/request/event-log.ts";

/** An incarnation without a name is that of a log from before there were incarnations. Its cursors have this form. */
const UNNAMED = /^p1\.(\d{1,16})$/;
const NAMED = /^p2\.([0-9a-f]{1,10})\.(\d{1,16})$/;

/** The text of a place in the log that clients keep, of at most 40 characters. They must not interpret it. */
export function encodeCursor({ incarnation, position }: LogPlace): string {
  const text = incarnation === "" ? `p1.${position}` : `p2.${incarnation}.${position}`;
  return Buffer.from(text).toString("base64url");
}

/** The place of a cursor; null for any text that `encodeCursor` did not make. */
export function parseCursor(cursor: string): LogPlace | null {
  if (!/^[\w-]{1,40}$/.test(cursor)) return null;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  const [, incarnation, digits] = NAMED.exec(text) ?? ["", "", UNNAMED.exec(text)?.[1]];
  const place = { incarnation: incarnation ?? "", position: Number(digits ?? Number.NaN) };
  return Number.isSafeInteger(place.position) && encodeCursor(place) === cursor ? place : null;
}
