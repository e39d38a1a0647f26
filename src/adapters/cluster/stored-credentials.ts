import type { SecretReference } from "../../core/admin/cluster.ts";
import { canonicalJson, type JsonObject, stringAt } from "../../runtime/json.ts";

/** Credentials as the database has them: encrypted, or a reference to a file of this machine or to a Secret. */
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
  | { readonly kind: "file"; readonly path: string; readonly context: string }
  | StoredReference;

/** A reference to a Secret that holds a kubeconfig. */
export type StoredReference = SecretReference & { readonly kind: "secret"; readonly context: string };

/** The reference of stored credentials. Null: they are none. */
export function referenceOf(stored: JsonObject): StoredReference | null {
  if (stringAt(stored, "kind") !== "secret") return null;
  const text = (member: string) => stringAt(stored, member) ?? "";
  return {
    kind: "secret",
    cluster: text("cluster"),
    namespace: text("namespace"),
    name: text("name"),
    key: text("key"),
    context: text("context"),
  };
}

/** Tells the content of stored credentials from every other content. It stays when they are encrypted again. */
export function contentOf(stored: JsonObject): string {
  return stringAt(stored, "origin") ?? stringAt(stored, "nonce") ?? canonicalJson(stored);
}
