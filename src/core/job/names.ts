const NAME_LENGTH_MAX = 63;
const HASH_LENGTH = 16;

/**
 * The name of a replica's pod and of its service: `<job>-<role>-<index>` in lower case, as Kubeflow names them. A name over the 63
 * characters of a DNS label is cut and ends in 64 bits of hash instead.
 */
export function replicaName(jobName: string, role: string, index: number): string {
  return fitted(`${jobName}-${role.toLowerCase()}-${index}`);
}

/** The name of the ConfigMap that owns an admission's objects. */
export function anchorName(jobName: string, admission: number): string {
  return fitted(`${jobName}-admission-${admission}`);
}

function fitted(name: string): string {
  if (name.length <= NAME_LENGTH_MAX) return name;
  return `${name.slice(0, NAME_LENGTH_MAX - HASH_LENGTH - 1)}-${fnv1a64(name)}`;
}

/** FNV-1a of a name's UTF-16 units, 64 bits as 16 hexadecimal digits. */
function fnv1a64(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let at = 0; at < text.length; at++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(HASH_LENGTH, "0");
}
