import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { JsonObject } from "../../runtime/json.ts";
import { stringAt } from "../../runtime/json.ts";
import { pickContext } from "./kubeconfig.ts";
import { readLocalFile, withFiles } from "./kubeconfig-files.ts";

/** Credentials as the database has them: encrypted, or a reference to a file of this machine. */
type StoredCredentials =
  | { readonly kind: "sealed"; readonly nonce: string; readonly text: string; readonly tag: string }
  | { readonly kind: "file"; readonly path: string; readonly context: string };

export const KEY_BYTES = 32;
const CIPHER = "aes-256-gcm";
/** The nonce size that GCM is made for. */
const NONCE_BYTES = 12;

/** Encrypts a kubeconfig for one cluster. It cannot be decrypted under another cluster's name. */
export function sealKubeconfig(key: Buffer, cluster: string, kubeconfig: string): StoredCredentials {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(cluster));
  const text = Buffer.concat([cipher.update(kubeconfig, "utf8"), cipher.final()]);
  const encode = (bytes: Buffer) => bytes.toString("base64");
  return { kind: "sealed", nonce: encode(nonce), text: encode(text), tag: encode(cipher.getAuthTag()) };
}

/**
 * Returns the kubeconfig of stored credentials. Throws if the key is missing or differs, if a file cannot be read, and
 * if this process would not accept the kubeconfig today: it may be older than this process' rules and settings. No
 * message contains a credential.
 */
export async function openCredentials(
  stored: JsonObject,
  of: { readonly cluster: string; readonly key: Buffer | null; readonly allowLocal: boolean },
): Promise<string> {
  const { cluster, key, allowLocal } = of;
  const isSealed = stringAt(stored, "kind") === "sealed";
  if (!isSealed && !allowLocal)
    throw new Error(
      "the cluster's kubeconfig is a file, and this process does not allow files: register the kubeconfig itself",
    );
  const text = isSealed ? unseal(stored, cluster, key) : await readLocalFile(stringAt(stored, "path") ?? "");
  const context = isSealed ? "" : (stringAt(stored, "context") ?? "");
  const picked = pickContext(text, { context, allowLocal });
  if (picked.kind === "refused") throw new Error(picked.problems.join("; "));
  return allowLocal ? withFiles(picked.kubeconfig) : text;
}

function unseal(stored: JsonObject, cluster: string, key: Buffer | null): string {
  if (key === null) throw new Error("the cluster's credentials are encrypted, and GANGWAY_CREDENTIALS_KEY is not set");
  const decode = (member: string) => Buffer.from(stringAt(stored, member) ?? "", "base64");
  try {
    const decipher = createDecipheriv(CIPHER, key, decode("nonce")).setAAD(Buffer.from(cluster));
    decipher.setAuthTag(decode("tag"));
    return Buffer.concat([decipher.update(decode("text")), decipher.final()]).toString("utf8");
  } catch {
    throw new Error(
      "the cluster's credentials cannot be decrypted with GANGWAY_CREDENTIALS_KEY: " +
        "they were encrypted with another key",
    );
  }
}
