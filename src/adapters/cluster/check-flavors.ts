/** Finds flavors that no node of a cluster belongs to, before a gang waits for such nodes. */
import type { ClusterFinding } from "../../core/admin/cluster.ts";
import { flavorProblem } from "../../core/admin/flavor-nodes.ts";
import type { ClusterFlavor, NodeCapacity } from "../../core/plan/model/snapshot.ts";
import { nameHelp } from "../../core/pods/nearest-name.ts";
import { readResources } from "../../core/pods/resources.ts";
import type { Json } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";

const PAGE_SIZE = 500;
/** Room for the nodes of the largest clusters. A server that sends more pages proves nothing about its nodes. */
const PAGES_MAX = 40;
/** Names of Kubernetes. The server may be any that a caller names, so no other text of it is passed on. */
const NAME = /^[\w./-]{1,317}$/;

/** A warning for each flavor without nodes. Empty also if the nodes cannot be listed: missing permissions say that. */
export async function flavorFindings(
  client: Pick<KubeClient, "request">,
  flavors: readonly ClusterFlavor[],
): Promise<readonly ClusterFinding[]> {
  if (flavors.length === 0) return [];
  const nodes = await listNodes(client);
  if (nodes === null) return [];
  const help = nameHelp();
  return flavors.flatMap((flavor) => {
    const problem = flavorProblem(flavor, nodes, help);
    if (problem === null) return [];
    return [{ severity: "WARNING", code: "FlavorWithoutNodes", message: `flavor ${flavor.name}: ${problem}` }];
  });
}

type ListedNode = Pick<NodeCapacity, "labels" | "allocatable">;

async function listNodes(client: Pick<KubeClient, "request">): Promise<readonly ListedNode[] | null> {
  const nodes: ListedNode[] = [];
  let next = "";
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = { limit: String(PAGE_SIZE), ...(next === "" ? {} : { continue: next }) };
    const listed = await client.request({ method: "GET", path: "/api/v1/nodes", query });
    if (listed.kind === "failed") return null;
    for (const node of arrayAt(listed.object, "items")) nodes.push(readNode(node));
    next = stringAt(objectAt(listed.object, "metadata"), "continue") ?? "";
    if (next === "") return nodes;
  }
  return null;
}

function readNode(node: Json): ListedNode {
  const labels = Object.entries(stringMapAt(objectAt(node, "metadata"), "labels"));
  const allocatable = Object.entries(readResources(objectAt(objectAt(node, "status"), "allocatable")));
  return {
    labels: Object.fromEntries(labels.filter(([key, value]) => NAME.test(key) && (value === "" || NAME.test(value)))),
    allocatable: Object.fromEntries(allocatable.filter(([name]) => NAME.test(name))),
  };
}
