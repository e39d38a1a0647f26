import type { LogTarget } from "../../core/job/container-log.ts";
import { currentAdmission, type Job } from "../../core/job/job.ts";
import { replicaKey, rolesOf } from "../../core/job/roles.ts";
import type { Kind } from "../../core/kinds/kind.ts";
import { podName } from "../../core/kinds/pod-name.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { notFound } from "../rpc/rpc-error.ts";

/** One replica whose log is read. */
export type LogReplica = {
  readonly role: string;
  readonly index: number;
  /** `Worker/0` */
  readonly key: string;
  readonly container: string;
  readonly pod: string;
};

/**
 * Returns the replicas that `Worker/0`, `Worker` or an empty name selects, in the order of their roles. Throws
 * NOT_FOUND if there is none.
 */
export function replicasNamed(
  { job, kind }: { readonly job: Job; readonly kind: Kind | undefined },
  { named, container }: { readonly named: string; readonly container: string },
): readonly LogReplica[] {
  const [role = "", index] = named.split("/");
  const roles = rolesOf(job.spec).filter((one) => role === "" || one.toLowerCase() === role.toLowerCase());
  const replicas = roles.flatMap((one) => {
    const count = job.spec.replicaSpecs[one]?.replicas ?? 0;
    const all = Array.from({ length: count }, (_, at) => at);
    const chosen = index === undefined ? all : all.filter((at) => at === Number(index));
    return chosen.map(
      (at): LogReplica => ({
        role: one,
        index: at,
        key: replicaKey(one, at),
        container: container || usualContainer(job, kind, one),
        pod: podName({ job, kind, role: one, index: at }),
      }),
    );
  });
  if (replicas.length > 0) return replicas;
  throw notFound({ type: "replica", name: `${job.namespace}/${job.name}${named === "" ? "" : `/${named}`}` });
}

/** Returns the kind's default container if the template has it, else the first container. */
function usualContainer(job: Job, kind: Kind | undefined, role: string): string {
  const template = objectAt({ template: job.spec.replicaSpecs[role]?.template }, "template");
  const names = arrayAt(objectAt(template, "spec"), "containers").map((one) => stringAt(one, "name") ?? "");
  const usual = kind?.defaultContainer ?? "";
  return names.includes(usual) ? usual : (names[0] ?? "");
}

/** Returns the pod of a replica under the job's current admission. Null: the replica is not admitted. */
export function targetOf(
  job: Job,
  { role, index, pod }: LogReplica,
  { follow }: Pick<LogTarget, "follow">,
): LogTarget | null {
  const admission = currentAdmission(job);
  if (admission === null || admission.cluster === null || index >= (admission.members[role] ?? 0)) return null;
  return {
    cluster: admission.cluster,
    namespace: job.namespace,
    pod,
    jobUid: job.uid,
    admission: admission.number,
    follow,
  };
}
