/** The state of clusters that a page of nodes shows, as a text that a later call gives back. */
import type { Cursor } from "../../plan/facts/facts.ts";

/** How far one cluster was shown: its capacity, and the version of its settings. */
export type ShownPlace = Cursor & { readonly settings: number };

/** The API takes no longer text. */
const VERSION_CHARS_MAX = 65_536;

/** Empty: it would be too long. */
export function encodeVersion(scope: string, places: ReadonlyMap<string, ShownPlace>): string {
  const parts = [...places].map(([name, { epoch, sequence, settings }]) => [name, epoch, sequence, settings]);
  const text = Buffer.from(JSON.stringify([scope, ...parts])).toString("base64url");
  return text.length > VERSION_CHARS_MAX ? "" : text;
}

/** The places in a version of this scope. Empty for any other text: all nodes are newer then. */
export function decodeVersion(text: string, scope: string): ReadonlyMap<string, ShownPlace> {
  const none = new Map<string, ShownPlace>();
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return none;
  }
  if (!Array.isArray(parsed) || parsed[0] !== scope) return none;
  const parts: readonly unknown[] = parsed.slice(1);
  return new Map(parts.flatMap((part) => placeIn(part)));
}

function placeIn(part: unknown): readonly (readonly [string, ShownPlace])[] {
  if (!Array.isArray(part)) return [];
  const [name, epoch, sequence, settings]: readonly unknown[] = part;
  if (typeof name !== "string") return [];
  if (typeof epoch !== "number" || typeof sequence !== "number" || typeof settings !== "number") return [];
  return [[name, { epoch, sequence, settings }]];
}
