/** A page's cursor: opaque text with the order of the list and the sort key of the last row. */
export function encodeCursor(order: string, key: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([order, ...key])).toString("base64url");
}

/** The sort key in a cursor. Null unless the cursor has this order and a key with members of these types. */
export function decodeCursor(
  cursor: string,
  order: string,
  types: readonly ("string" | "number")[],
): readonly (string | number)[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return null;
  }
  if (!Array.isArray(parsed) || parsed.length !== types.length + 1 || parsed[0] !== order) return null;
  const key: readonly unknown[] = parsed.slice(1);
  const fits = key.every((part, at) => typeof part === types[at] && (typeof part === "string" || isInteger(part)));
  const clean = key.every((part) => typeof part !== "string" || !part.includes("\u0000"));
  return fits && clean ? (key as readonly (string | number)[]) : null;
}

function isInteger(part: unknown): boolean {
  return Number.isSafeInteger(part);
}
