import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { currentAdmission, type Job } from "../job/job.ts";
import { membersOf } from "../job/roles.ts";
import { PODS_TOLD_MAX } from "../job/task-info.ts";
import type { LogTemplate } from "../pods/pod-config.ts";
import { render } from "../pods/variables.ts";
import type { Kind } from "./kind.ts";
import { podName } from "./pod-name.ts";

/** A link to the log of one container. */
export type ContainerLogLink = {
  readonly name: string;
  readonly uri: string;
  readonly replica: string;
  readonly container: string;
};

/**
 * Makes links from templates: one for each template and container of the first pods of the current admission. Templates
 * may use podName, namespace, containerName, cluster, jobName, jobUid, replicaType and replicaIndex. Returns none while
 * the job waits.
 */
export function logLinks(
  job: Job,
  kind: Kind | undefined,
  templates: readonly LogTemplate[],
): readonly ContainerLogLink[] {
  const { cluster = null, members = {} } = currentAdmission(job) ?? {};
  if (cluster === null || templates.length === 0) return [];
  return membersOf(job.spec, members)
    .slice(0, PODS_TOLD_MAX)
    .flatMap(({ role, index }) => {
      const containers = arrayAt(objectAt(job.spec.replicaSpecs[role]?.template, "spec"), "containers");
      return containers.flatMap((one) => {
        const container = stringAt(one, "name") ?? "";
        const variables = {
          podName: podName({ job, kind, role, index }),
          namespace: job.namespace,
          containerName: container,
          cluster,
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
