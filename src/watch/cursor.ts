const PREFIX = "p1.";

/** The text of a position that clients keep. They must not interpret it. */
export function encodeCursor(position: number): string {
  return Buffer.from(`${PREFIX}${position}`).toString("base64url");
}

/** The position of a cursor; null for any text that `encodeCursor` did not make. */
export function parseCursor(cursor: string): number | null {
  if (!/^[\w-]{1,40}$/.test(cursor)) return null;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  if (!text.startsWith(PREFIX) || !/^\d{1,16}$/.test(text.slice(PREFIX.length))) return null;
  const position = Number(text.slice(PREFIX.length));
  return Number.isSafeInteger(position) && encodeCursor(position) === cursor ? position : null;
}
