import { LABEL } from "../../core/job/labels.ts";
import { GANG_SCHEDULERS, type GangScheduler } from "../../core/pods/build/pod-group.ts";
import { type PodView, podView } from "../../core/pods/read/pod-view.ts";
import type { ObservedCluster } from "../../core/reconcile/observed.ts";
import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import type { KubeClient } from "./client.ts";
import { configMapView, objectView, podGroupView } from "./kept-objects.ts";
import { itemsOf } from "./read-answer.ts";

const PAGE = 500;
/** More pages than the objects of any job. A broken server may always name a next page. */
const PAGES_MAX = 200;

/** Lists all objects of one job as the API server has them now, not as a watch has shown them. Null: a list failed. */
export async function listJob(
  client: Pick<KubeClient, "request">,
  of: {
    readonly cluster: string;
    readonly installation: string;
    readonly jobUid: string;
    readonly scheduler?: GangScheduler | null;
  },
  signal: AbortSignal,
): Promise<ObservedCluster | null> {
  const labelSelector = selectorOf(of);
  // Config maps, which include the anchors, are listed last. If a late call creates a pod after the pods were listed,
  // its anchor shows in this list, or Kubernetes deletes the pod with its anchor.
  const pods = await listAll(client, { path: "/api/v1/pods", labelSelector }, signal);
  const services = pods && (await listAll(client, { path: "/api/v1/services", labelSelector }, signal));
  const { scheduler = null } = of;
  const groups = services && (scheduler === null ? [] : await listGroups(client, { scheduler, labelSelector }, signal));
  const configMaps = groups && (await listAll(client, { path: "/api/v1/configmaps", labelSelector }, signal));
  if (pods === null || services === null || groups === null || configMaps === null) return null;
  return {
    cluster: of.cluster,
    pods: pods.map(podView),
    services: services.map(objectView),
    configMaps: configMaps.map(configMapView),
    ...(scheduler === null ? {} : { gang: { scheduler, groups: groups.map(podGroupView) } }),
  };
}

/** Lists the pods of one job in its namespace. Null: the list failed. */
export async function listPods(
  client: Pick<KubeClient, "request">,
  of: { readonly namespace: string; readonly installation: string; readonly jobUid: string },
  signal: AbortSignal,
): Promise<readonly PodView[] | null> {
  const path = `/api/v1/namespaces/${of.namespace}/pods`;
  return (await listAll(client, { path, labelSelector: selectorOf(of) }, signal))?.map(podView) ?? null;
}

function selectorOf({ installation, jobUid }: { readonly installation: string; readonly jobUid: string }): string {
  return `${LABEL.installation}=${installation},${LABEL.jobUid}=${jobUid}`;
}

/** The path of a scheduler's PodGroups in all namespaces. */
export function groupsPath(scheduler: GangScheduler): string {
  return `/apis/${GANG_SCHEDULERS[scheduler].apiVersion}/podgroups`;
}

/** Lists PodGroups. Empty if the cluster does not know the resource. */
async function listGroups(
  client: Pick<KubeClient, "request">,
  { scheduler, labelSelector }: { readonly scheduler: GangScheduler; readonly labelSelector: string },
  signal: AbortSignal,
): Promise<readonly JsonObject[] | null> {
  const path = groupsPath(scheduler);
  const known = await client.request({ method: "GET", path, query: { labelSelector, limit: "1" } }, signal);
  if (known.kind === "failed" && known.status === 404) return [];
  return listAll(client, { path, labelSelector }, signal);
}

/** Lists all objects that a selector selects, page by page. Null: a page failed, or there are too many. */
export async function listAll(
  client: Pick<KubeClient, "request">,
  of: Listing,
  signal: AbortSignal,
): Promise<readonly JsonObject[] | null> {
  const items: JsonObject[] = [];
  let next: string | null = "";
  for (let pages = 0; next !== null; pages += 1) {
    if (pages === PAGES_MAX || items.length > PAGES_MAX * PAGE) return null;
    const page = await pageOf(client, { ...of, from: next }, signal);
    if (page === null) return null;
    append(items, page.items);
    next = page.next;
  }
  return items;
}

type Listing = { readonly path: string; readonly labelSelector: string };
/** Null: this is the last page. */
type ListPage = { readonly items: readonly JsonObject[]; readonly next: string | null };

/** `from`: where the page before ended. Empty: the first page. */
async function pageOf(
  client: Pick<KubeClient, "request">,
  { path, labelSelector, from }: Listing & { readonly from: string },
  signal: AbortSignal,
): Promise<ListPage | null> {
  const query = { labelSelector, limit: String(PAGE), ...(from === "" ? {} : { continue: from }) };
  const page = await client.request({ method: "GET", path, query }, signal);
  const items = page.kind === "failed" ? null : itemsOf(page.object);
  if (page.kind === "failed" || items === null) return null;
  return { items, next: stringAt(objectAt(page.object, "metadata"), "continue") || null };
}
