/** How the pods of a JobSet look. Source: `labelAndAnnotateObject` of JobSet, and the Job controller of Kubernetes. */

import type { JsonObject } from "../../../runtime/json.ts";
import { batchIdentity } from "../batch/batch-pods.ts";
import { podSpecOf } from "../containers.ts";
import type { ClusterSpec, Gang, GangService, Replica } from "../kind.ts";
import { groupOfPart } from "../work.ts";
import { childName, childPodName } from "./child-jobs.ts";
import { exclusiveAnnotations, exclusivePlacing, jobKey, ownTopology } from "./exclusive-nodes.ts";
import { type ChildGroup, type JobSetSpec, jobSetOf } from "./jobset-spec.ts";
import { claimObjects, claimVolumes } from "./volume-claims.ts";

const PREFIX = "jobset.sigs.k8s.io/";
const SET_NAME = `${PREFIX}jobset-name`;
/** The value of the label that JobSet makes of a pod's priority class. Its pods get none here. */
const PRIORITY = "0";

export function jobSetPod(replica: Replica): ClusterSpec {
  const { jobName, jobUid, namespace, spec, role, index: part } = replica;
  const set = jobSetOf(spec);
  const group = set.groups.find(({ name }) => name === role);
  if (group === undefined) return { env: {}, initContainers: [] };
  const job = groupOfPart(group, part);
  const childJob = childName(jobName, role, job);
  const index = part - job * group.parts;
  const own = batchIdentity(replica, { jobName: childJob, jobUid, isIndexed: group.batch.isIndexed, index });
  const named = namesOf(set, group, { replica, job, childJob });
  const follows = index > 0 && ownTopology(group) !== null;
  const leaderLabels = follows ? (replica.nodeLabelsOf?.(job * group.parts) ?? null) : null;
  return {
    ...own,
    labels: { ...own.labels, ...named, [`${PREFIX}priority`]: PRIORITY },
    annotations: { ...own.annotations, ...named, ...exclusiveAnnotations(group) },
    ...(set.subdomain === null ? {} : { subdomain: set.subdomain || jobName }),
    volumes: claimVolumes(spec.kindSpec, podSpecOf(replica, role), jobName),
    placing: exclusivePlacing(group, { namespace, childJob, priority: PRIORITY, leaderLabels }),
  };
}

/** The facts that pods have as labels and as annotations. */
function namesOf(
  { groups, coordinator, subdomain }: JobSetSpec,
  group: ChildGroup,
  { replica, job, childJob }: { readonly replica: Replica; readonly job: number; readonly childJob: string },
): Readonly<Record<string, string>> {
  const { jobName, jobUid, namespace, restarts = 0 } = replica;
  const before = groups.slice(0, groups.indexOf(group));
  const sum = (some: readonly ChildGroup[]) => some.reduce((total, { jobs }) => total + jobs, 0);
  const sharing = (some: readonly ChildGroup[]) => some.filter(({ groupName }) => groupName === group.groupName);
  const names = {
    "jobset-name": jobName,
    "jobset-uid": jobUid,
    "replicatedjob-name": group.name,
    "replicatedjob-replicas": group.jobs,
    "global-replicas": sum(groups),
    "job-index": job,
    "job-global-index": sum(before) + job,
    "job-key": jobKey(namespace, childJob),
    "restart-attempt": restarts,
    "group-name": group.groupName,
    "group-replicas": sum(sharing(groups)),
    "job-group-index": sum(sharing(before)) + job,
    ...(coordinator === null ? {} : { coordinator: `${childPodName(jobName, coordinator)}.${subdomain || jobName}` }),
  };
  return Object.fromEntries(Object.entries(names).map(([name, value]) => [PREFIX + name, String(value)]));
}

/** The volume claims of a JobSet. */
export function jobSetClaims(gang: Gang): readonly JsonObject[] {
  return claimObjects(gang, { [SET_NAME]: gang.jobName });
}

/** The service below whose name each pod has a DNS name. */
export function jobSetService({ jobName, spec }: Gang): GangService | null {
  const { subdomain, publishNotReadyAddresses } = jobSetOf(spec);
  if (subdomain === null) return null;
  return { name: subdomain || jobName, selector: { [SET_NAME]: jobName }, publishNotReadyAddresses };
}
