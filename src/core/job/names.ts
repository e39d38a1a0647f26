import { invariant } from "../../runtime/assert.ts";
import { fixedLengthName } from "./fixed-length-name.ts";

/** The names of services, and of what becomes part of a host name: a DNS label with a letter first, as in RFC 1035. */
export const DNS_1035_LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME_LENGTH_MAX = 63;
/** The lengths of a task's name for plugins that name none. */
export const TASK_NAME_LENGTHS = { min: 0, max: 50 } as const;

/**
 * The name of a replica's pod and service: `<job>-<role>-<index>` in lower case, as in Kubeflow. A name of more than 63
 * characters, the limit of a DNS label, becomes a hash of 64 bits.
 */
export function replicaName(jobName: string, role: string, index: number): string {
  return fitted(`${jobName}-${role.toLowerCase()}-${index}`);
}

/** The name of the only pod of a replica type: `<job>-<role>`. */
export function soleReplicaName(jobName: string, role: string): string {
  return fitted(`${jobName}-${role.toLowerCase()}`);
}

/** The name of an object that a kind creates beside pods and services, such as `<job>-config`. */
export function partName(jobName: string, part: string): string {
  return fitted(`${jobName}-${part}`);
}

/** The name of the ConfigMap that owns an admission's objects. */
export function anchorName(jobName: string, admission: number): string {
  return fitted(`${jobName}-admission-${admission}`);
}

/**
 * The unique name of one attempt of a job at a service, within these lengths. A name that is too short gets `x` and
 * zeros, as Flyte's `GetGeneratedNameWith` adds zeros: after `x`, attempt 1 does not become attempt 1000.
 */
export function taskName(
  of: { readonly jobUid: string; readonly admission: number; readonly attempt: number },
  lengths: { readonly min: number; readonly max: number },
): string {
  const name = `gw-${of.jobUid}-${of.admission}-${of.attempt}`;
  return fitted(name.length < lengths.min ? `${name}x` : name, lengths);
}

function fitted(name: string, lengths = { min: 0, max: NAME_LENGTH_MAX }): string {
  const outcome = fixedLengthName([name], lengths);
  invariant(outcome.kind === "name", "a hash is shorter than a DNS label");
  return outcome.name;
}
