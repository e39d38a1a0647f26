import { createHash } from "node:crypto";
import { canonicalJson } from "./json.ts";

/**
 * A name for a JSON value: 43 letters, digits, `-` and `_`. Equal values have the same name, whatever the order of
 * their members, and other values have another one (SHA-256).
 */
export function contentHash(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("base64url");
}

/** The SHA-1 of a text in hexadecimal digits, where another system's names are made of it. It protects nothing. */
export function sha1Hex(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
