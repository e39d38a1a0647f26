import { replicaName, soleReplicaName } from "../job/names.ts";
import { kindOf } from "./registry.ts";

/** Whose pod is named. */
export type NamedReplica = {
  readonly job: { readonly name: string; readonly spec: { readonly kind: string } };
  readonly role: string;
  readonly index: number;
};

/** The name of a replica's pod and service: with its index, unless its kind says that the type's only pod has none. */
export function podName({ job, role, index }: NamedReplica): string {
  const bounds = kindOf(job.spec.kind)?.roles?.find(({ name }) => name === role);
  return bounds?.unnumbered ? soleReplicaName(job.name, role) : replicaName(job.name, role, index);
}
