import { replicaName, soleReplicaName } from "../job/names.ts";
import type { Kind } from "./kind.ts";

/** The replica whose pod is named. */
type NamedReplica = {
  readonly job: { readonly name: string };
  /** The kind of the job. Undefined if it is no longer served. */
  readonly kind: Pick<Kind, "roles"> | undefined;
  readonly role: string;
  readonly index: number;
};

/** The name of a replica's pod and service. It ends with the index, unless the kind says `unnumbered`. */
export function podName({ job, kind, role, index }: NamedReplica): string {
  const bounds = kind?.roles?.find(({ name }) => name === role);
  return bounds?.unnumbered ? soleReplicaName(job.name, role) : replicaName(job.name, role, index);
}
