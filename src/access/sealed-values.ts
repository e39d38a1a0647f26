/** Encrypts what browsers and the database keep of logins, with the keys that encrypt credentials of clusters. */
import { type CredentialKeys, currentKey } from "../core/admin/credential-keys.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject, stringAt } from "../runtime/json.ts";
import { keyFor, seal, unseal } from "../runtime/seal.ts";

/** What a value is for: it opens for nothing else. */
export type SealedFor = {
  readonly use: "session of a browser" | "login of a browser";
  /** Which of them. */
  readonly of: string;
};

/** Null: there is no key to encrypt with. */
export function sealValue(value: JsonObject, { use, of }: SealedFor, keys: CredentialKeys): JsonObject | null {
  const key = currentKey(keys);
  if (key === null) return null;
  return { key: key.name, ...seal(keyFor(use, key.bytes), of, canonicalJson(value)) };
}

/** Null: its key is gone, or it was sealed for something else, or changed. */
export function openValue(sealed: JsonObject, { use, of }: SealedFor, { keys }: CredentialKeys): JsonObject | null {
  const part = (member: string) => stringAt(sealed, member) ?? "";
  const key = keys.get(part("key"));
  if (key === undefined) return null;
  try {
    const parts = { nonce: part("nonce"), text: part("text"), tag: part("tag") };
    const value = JSON.parse(unseal(keyFor(use, key), of, parts)) as Json;
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
