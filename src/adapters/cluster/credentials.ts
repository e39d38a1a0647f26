import {
  type CredentialKeys,
  currentKey,
  DEFAULT_KEY,
  keysOf,
  type NamedKey,
} from "../../core/admin/credential-keys.ts";
import { canonicalJson, type JsonObject, stringAt } from "../../runtime/json.ts";
import { seal, unseal } from "../../runtime/seal.ts";
import { pickContext } from "./kubeconfig.ts";
import { readLocalFile, withFiles } from "./kubeconfig-files.ts";
import { contentOf, referenceOf, type StoredCredentials, type StoredReference } from "./stored-credentials.ts";

/** Encrypts a kubeconfig for one cluster. It cannot be decrypted under another name of a cluster or of a key. */
export function sealKubeconfig({ name, bytes }: NamedKey, cluster: string, kubeconfig: string): SealedCredentials {
  return { kind: "sealed", key: name, ...seal(bytes, boundTo(cluster, name), kubeconfig) };
}

type SealedCredentials = Extract<StoredCredentials, { readonly kind: "sealed" }>;

/** Programs from before there were names decrypt what the default key encrypts: then they know the cluster alone. */
function boundTo(cluster: string, key: string): string {
  return key === DEFAULT_KEY ? cluster : canonicalJson([cluster, key]);
}

/** Encrypts stored credentials again with the current key, which there must be. Throws like `openCredentials`. */
export function resealCredentials(stored: JsonObject, cluster: string, keys: CredentialKeys): SealedCredentials {
  const key = currentKey(keys);
  if (key === null) throw new Error("there is no key to encrypt with");
  return { ...sealKubeconfig(key, cluster, unsealed(stored, cluster, keys)), origin: contentOf(stored) };
}

type OpenedBy = {
  readonly cluster: string;
  readonly keys: CredentialKeys;
  readonly allowLocal: boolean;
  /** The kubeconfig in a Secret. Throws an error that says why it cannot be read. Omitted: Secrets are not read. */
  readonly readSecret?: (of: StoredReference) => string | Promise<string>;
};

/**
 * Returns the kubeconfig of stored credentials. Throws if their key is missing or differs, if a file or a Secret cannot
 * be read, and if this process would not accept the kubeconfig today: it may be older than this process' rules and
 * settings. No message contains a credential.
 */
export async function openCredentials(stored: JsonObject, of: OpenedBy): Promise<string> {
  const { allowLocal } = of;
  const isSealed = stringAt(stored, "kind") === "sealed";
  const context = isSealed ? "" : (stringAt(stored, "context") ?? "");
  const text = await textOf(stored, of);
  const picked = pickContext(text, { context, allowLocal });
  if (picked.kind === "refused") throw new Error(picked.problems.join("; "));
  if (allowLocal) return withFiles(picked.kubeconfig);
  // Only one context was encrypted.
  return isSealed ? text : picked.kubeconfig;
}

async function textOf(stored: JsonObject, { cluster, keys, allowLocal, readSecret }: OpenedBy): Promise<string> {
  if (stringAt(stored, "kind") === "sealed") return unsealed(stored, cluster, keys);
  const reference = referenceOf(stored);
  if (reference !== null) {
    if (readSecret === undefined)
      throw new Error("the cluster's kubeconfig is in a Secret, and this process reads none");
    return readSecret(reference);
  }
  if (allowLocal) return readLocalFile(stringAt(stored, "path") ?? "");
  throw new Error(
    "the cluster's kubeconfig is a file, and this process does not allow files: register the kubeconfig itself",
  );
}

function unsealed(stored: JsonObject, cluster: string, { keys }: CredentialKeys): string {
  const name = stringAt(stored, "key") ?? DEFAULT_KEY;
  const key = keys.get(name);
  if (key === undefined) throw new Error(missingKey(name, keys));
  const part = (member: string) => stringAt(stored, member) ?? "";
  try {
    return unseal(key, boundTo(cluster, name), { nonce: part("nonce"), text: part("text"), tag: part("tag") });
  } catch {
    throw new Error(
      `the cluster's credentials cannot be decrypted with the key ${name}: they were encrypted with another key of ` +
        "that name, or for another cluster",
    );
  }
}

function missingKey(name: string, keys: CredentialKeys["keys"]): string {
  const unset = name === DEFAULT_KEY ? ", and GANGWAY_CREDENTIALS_KEY is not set" : "";
  return (
    `the cluster's credentials are encrypted with the key ${name}${unset}; ${keysOf([...keys.keys()])} here: ` +
    "put the key back, or replace the cluster's kubeconfig"
  );
}
