/** Files of this machine that a kubeconfig names. Only a server that trusts its callers reads them. */
import { KUBECONFIG_BYTES_MAX } from "../../core/admin/cluster.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { readBoundedFile } from "../../runtime/read-bounded-file.ts";
import { pickContext } from "./kubeconfig.ts";

/** A member that names a file, and the member that holds its content. */
const CLUSTER_FILES = { "certificate-authority": "certificate-authority-data" };
const USER_FILES = { "client-certificate": "client-certificate-data", "client-key": "client-key-data" };

/**
 * Reads a small file. Throws if it is no regular file: a pipe would never end, and a device would never stop.
 */
export function readLocalFile(path: string): Promise<string> {
  return readBoundedFile(path, { bytesMax: KUBECONFIG_BYTES_MAX, regularOnly: true });
}

/**
 * Replaces the names of certificates and keys by their content. The file of a token stays, because its content changes.
 * Throws if a file cannot be read or does not hold what its member needs.
 */
export async function withFiles(kubeconfig: string): Promise<string> {
  const config = JSON.parse(kubeconfig) as JsonObject;
  const filled = JSON.stringify({
    ...config,
    clusters: await Promise.all(arrayAt(config, "clusters").map((entry) => fill(entry, "cluster", CLUSTER_FILES))),
    users: await Promise.all(arrayAt(config, "users").map((entry) => fill(entry, "user", USER_FILES))),
  });
  const picked = pickContext(filled, { context: "", allowLocal: true });
  if (picked.kind === "refused") throw new Error(picked.problems.join("; "));
  return picked.kubeconfig;
}

async function fill(entry: unknown, member: string, files: Readonly<Record<string, string>>): Promise<JsonObject> {
  const filled = { ...objectAt(entry, member) };
  for (const [file, data] of Object.entries(files)) {
    const path = stringAt(filled, file);
    delete filled[file];
    if (path === undefined || filled[data] !== undefined) continue;
    filled[data] = Buffer.from(await readLocalFile(path)).toString("base64");
  }
  return { name: stringAt(entry, "name") ?? "", [member]: filled };
}
