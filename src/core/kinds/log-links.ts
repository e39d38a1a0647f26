import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { currentAdmission, type Job } from "../job/job.ts";
import { rolesOf } from "../job/roles.ts";
import { PODS_TOLD_MAX } from "../job/task-info.ts";
import type { LogTemplate } from "../pods/pod-config.ts";
import { render } from "../pods/variables.ts";
import { podName } from "./pod-name.ts";

/** Where the log of one container is found. */
export type LogLink = {
  readonly name: string;
  readonly uri: string;
  readonly replica: string;
  readonly container: string;
};

/**
 * Where the logs of a job's containers are found: every template for every container of the first pods of its current admission. Templates
 * know podName, namespace, containerName, cluster, jobName, jobUid, replicaType and replicaIndex. None while the job waits.
 */
export function logLinks(job: Job, templates: readonly LogTemplate[]): readonly LogLink[] {
  const admission = currentAdmission(job);
  if (admission === null || templates.length === 0) return [];
  const replicas = rolesOf(job.spec).flatMap((role) =>
    Array.from({ length: admission.members[role] ?? 0 }, (_, index) => ({ role, index })),
  );
  return replicas.slice(0, PODS_TOLD_MAX).flatMap(({ role, index }) => {
    const containers = arrayAt(objectAt(job.spec.replicaSpecs[role]?.template, "spec"), "containers");
    return containers.flatMap((one) => {
      const container = stringAt(one, "name") ?? "";
      const variables = {
        podName: podName({ job, role, index }),
        namespace: job.namespace,
        containerName: container,
        cluster: admission.cluster,
        jobName: job.name,
        jobUid: job.uid,
        replicaType: role,
        replicaIndex: String(index),
      };
      return templates.map(({ name, uri }) => ({
        name,
        uri: render(uri, { variables }),
        replica: `${role}/${index}`,
        container,
      }));
    });
  });
}
