import { currentAdmission, type Job } from "../core/job/job.ts";
import { replicaKey, rolesOf } from "../core/job/roles.ts";
import { podName } from "../core/kinds/pod-name.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { arrayAt, objectAt, stringAt } from "../runtime/json.ts";
import type { LogTarget } from "./ports.ts";
import { notFound } from "./rpc-error.ts";

/** One replica whose log is read. */
export type LogReplica = {
  readonly role: string;
  readonly index: number;
  /** `Worker/0` */
  readonly key: string;
  readonly container: string;
};

/** The replicas that `Worker/0`, `Worker` or nothing names, in the order of their roles. Throws NOT_FOUND where there is none. */
export function replicasNamed(job: Job, named: string, container: string): readonly LogReplica[] {
  const [role = "", index] = named.split("/");
  const roles = rolesOf(job.spec).filter((one) => role === "" || one.toLowerCase() === role.toLowerCase());
  const replicas = roles.flatMap((one) => {
    const count = job.spec.replicaSpecs[one]?.replicas ?? 0;
    const all = Array.from({ length: count }, (_, at) => at);
    const chosen = index === undefined ? all : all.filter((at) => at === Number(index));
    return chosen.map((at): LogReplica => {
      return { role: one, index: at, key: replicaKey(one, at), container: container || usualContainer(job, one) };
    });
  });
  if (replicas.length > 0) return replicas;
  throw notFound({ type: "replica", name: `${job.namespace}/${job.name}${named === "" ? "" : `/${named}`}` });
}

/** The container that the kind goes by if the template has it, else the first. */
function usualContainer(job: Job, role: string): string {
  const template = objectAt({ template: job.spec.replicaSpecs[role]?.template }, "template");
  const names = arrayAt(objectAt(template, "spec"), "containers").map((one) => stringAt(one, "name") ?? "");
  const usual = kindOf(job.spec.kind)?.defaultContainer ?? "";
  return names.includes(usual) ? usual : (names[0] ?? "");
}

/** The pod of a replica under the job's current admission; null while it has none. */
export function targetOf(job: Job, { role, index }: LogReplica): LogTarget | null {
  const admission = currentAdmission(job);
  if (admission === null || index >= (admission.members[role] ?? 0)) return null;
  return {
    cluster: admission.cluster,
    namespace: job.namespace,
    pod: podName({ job, role, index }),
    jobUid: job.uid,
    admission: admission.number,
  };
}
