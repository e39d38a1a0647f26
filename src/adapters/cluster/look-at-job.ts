import { LABEL } from "../../core/job/labels.ts";
import { podView } from "../../core/pods/pod-view.ts";
import type { ObservedCluster } from "../../core/reconcile/decision.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";
import { objectView } from "./kept-objects.ts";

const PAGE = 500;

/** Lists everything of one job: what the API server has now, not what a watch has told. Null where a list fails. */
export async function lookAtJob(
  client: Pick<KubeClient, "request">,
  of: { readonly cluster: string; readonly installation: string; readonly jobUid: string },
  signal: AbortSignal,
): Promise<ObservedCluster | null> {
  const labelSelector = `${LABEL.installation}=${of.installation},${LABEL.jobUid}=${of.jobUid}`;
  // Anchors come last: a pod that a late call makes after the pods were listed is then known by its anchor, or collected with it.
  const pods = await list(client, { resource: "pods", labelSelector }, signal);
  const services = pods && (await list(client, { resource: "services", labelSelector }, signal));
  const anchors = services && (await list(client, { resource: "configmaps", labelSelector }, signal));
  if (pods === null || services === null || anchors === null) return null;
  return {
    cluster: of.cluster,
    pods: pods.map(podView),
    services: services.map(objectView),
    anchors: anchors.map(objectView),
  };
}

async function list(
  client: Pick<KubeClient, "request">,
  { resource, labelSelector }: { readonly resource: string; readonly labelSelector: string },
  signal: AbortSignal,
): Promise<readonly JsonObject[] | null> {
  const items: JsonObject[] = [];
  let next = "";
  do {
    const query = { labelSelector, limit: String(PAGE), ...(next === "" ? {} : { continue: next }) };
    const page = await client.request({ method: "GET", path: `/api/v1/${resource}`, query }, signal);
    if (page.kind === "failed") return null;
    items.push(...arrayAt(page.object, "items").filter(isJsonObject));
    next = stringAt(objectAt(page.object, "metadata"), "continue") ?? "";
  } while (next !== "");
  return items;
}
