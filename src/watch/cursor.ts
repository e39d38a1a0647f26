const PREFIX = "p1.";

/** A position of the log as clients hold it: opaque text. */
export function encodeCursor(position: number): string {
  return Buffer.from(`${PREFIX}${position}`).toString("base64url");
}

/** The position of a cursor; null where the text is none of ours. */
export function parseCursor(cursor: string): number | null {
  if (!/^[\w-]{1,40}$/.test(cursor)) return null;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  if (!text.startsWith(PREFIX) || !/^\d{1,16}$/.test(text.slice(PREFIX.length))) return null;
  const position = Number(text.slice(PREFIX.length));
  return Number.isSafeInteger(position) && encodeCursor(position) === cursor ? position : null;
}
