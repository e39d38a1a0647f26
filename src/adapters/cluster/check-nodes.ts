/** Finds flavors that no node of a cluster belongs to, and levels that nodes have no label of, before a gang waits. */
import type { ClusterFinding } from "../../core/admin/cluster.ts";
import { flavorProblem } from "../../core/admin/flavor-nodes.ts";
import { hasLabels } from "../../core/job/labels.ts";
import type { ClusterFlavor, NodeCapacity } from "../../core/plan/model/snapshot.ts";
import { type Topology, type UnlabelledLevel, unlabelledLevels } from "../../core/plan/model/topology.ts";
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

/** The settings of a cluster that its nodes must match. Omitted: none. */
type OfNodes = { readonly flavors?: readonly ClusterFlavor[]; readonly topology?: Topology };

/**
 * A warning for each flavor without nodes, and for each level whose label nodes lack. Empty also if the nodes cannot be
 * listed: missing permissions say that.
 */
export async function nodeFindings(
  client: Pick<KubeClient, "request">,
  { flavors = [], topology = [] }: OfNodes,
): Promise<readonly ClusterFinding[]> {
  if (flavors.length + topology.length === 0) return [];
  const nodes = await listNodes(client);
  if (nodes === null) return [];
  const help = nameHelp();
  const warning = (code: string) => (message: string) => ({ severity: "WARNING" as const, code, message });
  return [
    ...flavors
      .flatMap((flavor) => {
        const problem = flavorProblem(flavor, nodes, help);
        return problem === null ? [] : [`flavor ${flavor.name}: ${problem}`];
      })
      .map(warning("FlavorWithoutNodes")),
    ...levelProblems({ flavors, topology }, nodes).map(warning("NodesWithoutLevel")),
  ];
}

/** Nodes of flavors with levels of their own need the labels of these alone. */
function levelProblems({ flavors, topology }: Required<OfNodes>, nodes: readonly ListedNode[]): readonly string[] {
  const own = flavors.filter((flavor) => flavor.topology !== undefined);
  const isOf = (node: ListedNode) => (flavor: ClusterFlavor) => hasLabels(node.labels, flavor.nodeLabels);
  const others = nodes.filter((node) => !own.some(isOf(node)));
  return [
    ...unlabelledLevels(topology, others).map((level) => levelProblem(level, others.length)),
    ...own.flatMap((flavor) => {
      const ofFlavor = nodes.filter((node) => isOf(node)(flavor));
      const levels = unlabelledLevels(flavor.topology ?? [], ofFlavor);
      return levels.map((level) => `flavor ${flavor.name}: ${levelProblem(level, ofFlavor.length)}`);
    }),
  ];
}

function levelProblem({ level, nodes }: UnlabelledLevel, of: number): string {
  return `${nodes} of ${of} nodes do not have the label ${level.label} of the level ${level.name}`;
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
