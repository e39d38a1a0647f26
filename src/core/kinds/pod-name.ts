import type { Job } from "../job/job.ts";
import { replicaName, soleReplicaName } from "../job/names.ts";
import { partOf } from "../job/roles.ts";
import type { Kind } from "./kind.ts";

/** The replica whose pod is named. */
type NamedReplica = {
  readonly job: { readonly name: string } & Partial<Pick<Job, "status">>;
  /** The kind of the job. Undefined if it is no longer served. */
  readonly kind: Pick<Kind, "roles" | "podName"> | undefined;
  readonly role: string;
  readonly index: number;
};

/**
 * The name of a replica's pod and service: the kind's own, for the part of the work that the replica does, or one that
 * ends with the index unless the kind says `unnumbered`.
 */
export function podName({ job, kind, role, index }: NamedReplica): string {
  if (kind?.podName !== undefined) {
    return kind.podName(job.name, role, job.status === undefined ? index : partOf(job.status.attempts, role, index));
  }
  const bounds = kind?.roles?.find(({ name }) => name === role);
  return bounds?.unnumbered ? soleReplicaName(job.name, role) : replicaName(job.name, role, index);
}
