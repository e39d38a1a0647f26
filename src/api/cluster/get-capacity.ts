/** Shows the nodes of clusters, and the jobs that hold them as far as the caller may see these. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HoldingJob, ListedNode, NodePage, NodeQuery } from "../../core/admin/nodes/node-page.ts";
import type { NodeOrder } from "../../core/admin/nodes/node-query.ts";
import {
  flavorsOf,
  gpusOf,
  gpusRequested,
  type NodeState as State,
  sumOf,
  troubleOf,
} from "../../core/admin/nodes/node-standing.ts";
import { PAGE_BYTES_MAX } from "../../core/job/request/list.ts";
import { podName } from "../../core/kinds/pod-name.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { BoundMember } from "../../core/plan/model/snapshot.ts";
import { subtractResources } from "../../core/pods/resources.ts";
import {
  type GetCapacityRequest,
  GetCapacityResponseSchema,
  type HolderPodSchema,
  type NodeHolder,
  type NodeHolderSchema,
  type NodeSchema,
  NodeState,
  NodeView,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { contentHash } from "../../runtime/content-hash.ts";
import type { Admin } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import { badPageToken, notFound } from "../rpc/rpc-error.ts";
import { Encoded } from "../rpc/service-definition.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { clusterRef, toQuantities } from "./convert-cluster.ts";

type CapacityPorts = { readonly admin: Pick<Admin, "listNodes">; readonly kinds: Registry };

/** Clients that know no pages expect all nodes of a cluster. */
const PAGE_SIZE_DEFAULT = 1_000;

const STATES: Readonly<Record<number, State>> = {
  [NodeState.READY]: "READY",
  [NodeState.NOT_READY]: "NOT_READY",
  [NodeState.CORDONED]: "CORDONED",
  [NodeState.LEAVING]: "LEAVING",
};

export async function getCapacity(
  { admin, kinds }: CapacityPorts,
  request: GetCapacityRequest,
  { access }: Pick<CallContext, "access">,
): Promise<Encoded> {
  const sight = sightOf(access);
  const page = await admin.listNodes(queryOf(request, access, sight));
  if (page === "notFound") throw notFound(clusterRef(request.name));
  if (page === "badCursor") throw badPageToken();
  const isFull = request.view !== NodeView.BASIC;
  const show = (listed: ListedNode) => toProtoNode(listed, { page, sight, isFull, kinds });
  const fitting = firstThatFit(page.nodes, show);
  const next = fitting.length < page.nodes.length ? page.nodes[fitting.length - 1]?.cursor : page.next;
  const named = page.clusters.find(({ name }) => name === request.name);
  const rest = {
    cluster: request.name,
    observeTime: toTimestamp(named?.observedMs ?? null),
    nextPageToken: next ?? "",
    total: page.total,
    version: page.version,
    clusters: page.clusters.map(toProtoCluster),
  };
  return Encoded.joined([...fitting, Encoded.of(GetCapacityResponseSchema, rest)]);
}

/** The jobs that may be named to a caller. */
type Sight = {
  /** The namespaces of these jobs. Null: all. */
  readonly namespaces: readonly string[] | null;
  readonly mayName: (namespace: string) => boolean;
};

function sightOf(access: CallAccess): Sight {
  const namespaces = access.namespaces("jobs.get");
  const seen = new Set(namespaces);
  return { namespaces, mayName: (namespace) => namespaces === null || seen.has(namespace) };
}

function queryOf(request: GetCapacityRequest, access: CallAccess, { namespaces }: Sight): NodeQuery {
  const { names = [], flavors = [], states = [] } = request.filter ?? {};
  const filter = { names, flavors, states: states.flatMap((state) => STATES[state] ?? []) };
  return {
    cluster: request.name || null,
    maySee: (name) => access.may("clusters.get", { kind: "cluster", name }),
    filter,
    order: (request.orderBy || "cluster") as NodeOrder,
    pageSize: request.pageSize || PAGE_SIZE_DEFAULT,
    after: request.pageToken || null,
    newerThan: request.newerThan || null,
    scope: contentHash([request.name, filter, namespaces]),
  };
}

/** Encodes the first of these nodes: as many as fit into one answer, and at least one. */
function firstThatFit(
  nodes: readonly ListedNode[],
  show: (node: ListedNode) => MessageInitShape<typeof NodeSchema>,
): readonly Encoded[] {
  const fitting: Encoded[] = [];
  let bytes = 0;
  for (const node of nodes) {
    const encoded = Encoded.of(GetCapacityResponseSchema, { nodes: [show(node)] });
    bytes += encoded.bytes.length;
    if (bytes > PAGE_BYTES_MAX && fitting.length > 0) break;
    fitting.push(encoded);
  }
  return fitting;
}

type Shown = {
  readonly page: NodePage;
  readonly sight: Sight;
  readonly isFull: boolean;
  readonly kinds: Registry;
};

function toProtoNode(listed: ListedNode, shown: Shown): MessageInitShape<typeof NodeSchema> {
  const { cluster, node, clusterFlavors } = listed;
  const trouble = troubleOf(node);
  const gpus = gpusOf(node, clusterFlavors);
  const holders = holdersOf(listed, shown);
  const known = holders.reduce((sum, holder) => sum + holder.gpus, 0);
  const others = Math.max(0, sumOf(gpus, "held") - known);
  const { notReady } = trouble;
  return {
    name: node.name,
    cluster,
    unschedulable: node.unschedulable,
    flavors: [...flavorsOf(node, clusterFlavors)],
    gpus: gpus.map(({ resource, allocatable, held, free }) => ({
      resource,
      allocatable: BigInt(allocatable),
      held: BigInt(held),
      free: BigInt(free),
    })),
    ready: notReady === undefined,
    cordoned: trouble.cordoned ?? false,
    leaving: trouble.leaving ?? false,
    reason: notReady === undefined ? "" : notReady.reason || "NotReady",
    message: notReady?.message ?? "",
    ...(notReady?.sinceMs === undefined ? {} : { since: timestampFromMs(notReady.sinceMs) }),
    holders: holders.map(({ gpus: amount, message }) => ({ ...message, gpus: BigInt(amount) })),
    otherGpus: BigInt(others),
    ...(shown.isFull ? detailsOf(node) : {}),
  };
}

function detailsOf({ labels, taints, allocatable, free }: ListedNode["node"]) {
  return {
    labels: { ...labels },
    taints: taints.map(({ key, value, effect }) => `${key}=${value}:${effect}`),
    allocatable: toQuantities(allocatable),
    free: toQuantities(free),
    held: toQuantities(subtractResources(allocatable, free)),
  };
}

type HolderInit = Exclude<MessageInitShape<typeof NodeHolderSchema>, NodeHolder>;
type Holder = { readonly gpus: number; readonly message: HolderInit };

/** The jobs with members on a node, those with the most GPUs first. */
function holdersOf({ members, clusterFlavors }: ListedNode, shown: Shown): readonly Holder[] {
  const byJob = Map.groupBy(members, ({ jobUid }) => jobUid);
  const holders = [...byJob].map(([uid, own]): Holder => {
    const job = shown.page.jobs.get(uid);
    const gpus = own.reduce((sum, one) => sum + gpusRequested(job?.roles[one.role]?.requests ?? {}, clusterFlavors), 0);
    return { gpus, message: { ...nameOf(uid, job, shown), pods: own.length, members: podsOf(own, job, shown) } };
  });
  return holders.sort((one, other) => other.gpus - one.gpus);
}

function nameOf(uid: string, job: HoldingJob | undefined, { sight }: Shown): HolderInit {
  if (job === undefined) return sight.namespaces === null ? { uid } : {};
  if (!sight.mayName(job.namespace)) return {};
  const { namespace, name, queue, createdBy } = job;
  return { uid, namespace, name, queue, createdBy };
}

/** The names of pods have the name of their job. */
function podsOf(
  members: readonly BoundMember[],
  job: HoldingJob | undefined,
  { sight, isFull, kinds }: Shown,
): MessageInitShape<typeof HolderPodSchema>[] {
  if (!isFull || job === undefined || !sight.mayName(job.namespace)) return [];
  const kind = kinds.kindOf(job.kind);
  const named = { name: job.name, spec: { kindSpec: job.kindSpec, replicaSpecs: {} } };
  return members.map(({ role: label, index }) => {
    const { role = label, requests = {} } = job.roles[label] ?? {};
    return {
      name: podName({ job: named, kind, role, index }),
      replicaType: role,
      index,
      requests: toQuantities(requests),
    };
  });
}

function toProtoCluster(cluster: NodePage["clusters"][number]) {
  const { name, observedMs, reachable, cordoned, simulated, complete, removed } = cluster;
  return {
    name,
    observeTime: toTimestamp(observedMs),
    reachable,
    cordoned,
    simulated,
    complete,
    removed: [...removed],
  };
}
