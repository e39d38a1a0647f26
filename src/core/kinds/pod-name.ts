import { replicaName, soleReplicaName } from "../job/names.ts";
import type { Kind } from "./kind.ts";
import { partOf, type WorkingJob } from "./work.ts";

/** The replica whose pod is named. */
type NamedReplica = {
  readonly job: { readonly name: string } & WorkingJob;
  /** The kind of the job. Undefined if it is no longer served. */
  readonly kind: Pick<Kind, "roles" | "podName" | "rules"> | undefined;
  readonly role: string;
  readonly index: number;
};

/**
 * The name of a replica's pod and service: the kind's own, for the part of the work that the replica does, or one that
 * ends with the index unless the kind says `unnumbered`.
 */
export function podName({ job, kind, role, index }: NamedReplica): string {
  if (kind?.podName !== undefined) return kind.podName(job, role, partOf({ job, kind }, role, index));
  const bounds = kind?.roles?.find(({ name }) => name === role);
  return bounds?.unnumbered ? soleReplicaName(job.name, role) : replicaName(job.name, role, index);
}
