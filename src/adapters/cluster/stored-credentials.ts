import { canonicalJson, type JsonObject, stringAt } from "../../runtime/json.ts";

/** Credentials as the database has them: encrypted, or a reference to a file of this machine. */
export type StoredCredentials =
  | {
      readonly kind: "sealed";
      /** The name of the key. Omitted: `default`. */
      readonly key?: string;
      /** The nonce of the first encryption of this text, if it was encrypted again since. */
      readonly origin?: string;
      readonly nonce: string;
      readonly text: string;
      readonly tag: string;
    }
  | { readonly kind: "file"; readonly path: string; readonly context: string };

/** Tells the content of stored credentials from every other content. It stays when they are encrypted again. */
export function contentOf(stored: JsonObject): string {
  return stringAt(stored, "origin") ?? stringAt(stored, "nonce") ?? canonicalJson(stored);
}
