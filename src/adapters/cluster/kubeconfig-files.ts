/** Files of this machine that a kubeconfig names. Only a server that trusts its callers reads them. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { KUBECONFIG_BYTES_MAX } from "../../core/admin/cluster.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { pickContext } from "./kubeconfig.ts";

/** A member that names a file, and the member that holds its content. */
const CLUSTER_FILES = { "certificate-authority": "certificate-authority-data" };
const USER_FILES = { "client-certificate": "client-certificate-data", "client-key": "client-key-data" };

/**
 * Reads a small file. Throws if it is no regular file: a pipe would never end, and a device would never stop.
 */
export async function readLocalFile(path: string): Promise<string> {
  // Opening a pipe waits for its writer unless it is opened this way.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    const buffer = Buffer.alloc(KUBECONFIG_BYTES_MAX + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    if (bytesRead > KUBECONFIG_BYTES_MAX) throw new Error(`${path} has more than ${KUBECONFIG_BYTES_MAX} bytes`);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
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
