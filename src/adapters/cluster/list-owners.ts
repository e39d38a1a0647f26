import { LABEL } from "../../core/job/labels.ts";
import { type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";
import { keepConfigMap, keepPod } from "./kept-objects.ts";
import { listAll } from "./list-job.ts";
import { type OwnObject, ownObjects } from "./own-objects.ts";

/** An object of an admission, and the job that its labels name. */
export type NamedOwner = OwnObject & { readonly namespace: string; readonly jobName: string };

/** The owners of the pods and config maps of this installation, listed anew. Null: the API server does not answer. */
export async function listOwners(
  client: Pick<KubeClient, "request">,
  installation: string,
  signal: AbortSignal,
): Promise<readonly NamedOwner[] | null> {
  const labelSelector = `${LABEL.installation}=${installation},${LABEL.jobUid}`;
  const pods = await listAll(client, { path: "/api/v1/pods", labelSelector }, signal);
  const maps = pods && (await listAll(client, { path: "/api/v1/configmaps", labelSelector }, signal));
  if (pods === null || maps === null) return null;
  return [
    ...pods.flatMap((pod) => named(pod, ownObjects([[keepPod(pod, installation)]]))),
    ...maps.flatMap((map) => named(map, ownObjects([[keepConfigMap(map, installation)]]))),
  ];
}

function named(object: JsonObject, owners: Iterable<OwnObject>): readonly NamedOwner[] {
  const metadata = objectAt(object, "metadata");
  const namespace = stringAt(metadata, "namespace") ?? "";
  const jobName = stringMapAt(metadata, "labels")[LABEL.jobName] ?? "";
  return [...owners].map((owner) => ({ ...owner, namespace, jobName }));
}
