/** Lists nodes of clusters in memory, with the contract of the port of `api`. */

import type { ClusterRecord } from "../../src/core/admin/cluster.ts";
import { NodeBook } from "../../src/core/admin/nodes/node-book.ts";
import {
  type HoldingJob,
  type ListedNode,
  type NodePage,
  type NodeQuery,
  rolesOf,
} from "../../src/core/admin/nodes/node-page.ts";
import { selectNodes } from "../../src/core/admin/nodes/select-nodes.ts";
import type { Job } from "../../src/core/job/job.ts";
import { askMembers } from "../../src/core/plan/model/ask.ts";
import { type CapacityEntry, entriesOf, presentEntry } from "../../src/core/plan/model/capacity-entry.ts";

type Fleet = {
  readonly clusters: ReadonlyMap<string, ClusterRecord>;
  readonly entries: ReadonlyMap<string, readonly CapacityEntry[]>;
  readonly jobs: readonly Job[];
};

export function listMemoryNodes(
  query: NodeQuery,
  { clusters, entries, jobs }: Fleet,
): NodePage | "notFound" | "badCursor" {
  const after = query.after === null ? null : keyIn(query.after, query.order);
  if (query.after !== null && after === null) return "badCursor";
  if (query.cluster !== null && !clusters.has(query.cluster)) return "notFound";
  const book = new NodeBook();
  const rows = [...clusters.values()].filter(
    ({ name }) => query.maySee(name) && (query.cluster === null || name === query.cluster),
  );
  const known = new Map<string, CapacityEntry>();
  for (const { name, flavors, capacity } of rows) {
    const own = entries.get(name) ?? (capacity === null ? [] : entriesOf(capacity));
    for (const entry of own) known.set(`${name}/${entry.name}`, entry);
    book.follow({ name, flavors });
    book.apply({ kind: "capacity", cluster: name, epoch: 1, since: null, sequence: 1, changes: own.map(presentEntry) });
  }
  const { nodes, ...rest } = selectNodes(book, rows, { query, after });
  const page = nodes.slice(0, query.pageSize);
  const listed = page.flatMap(({ node: { cluster, name }, key }): ListedNode[] => {
    const entry = known.get(`${cluster}/${name}`);
    if (entry?.kind !== "node" || entry.node === null) return [];
    const clusterFlavors = clusters.get(cluster)?.flavors ?? [];
    return [{ cluster, node: entry.node, members: entry.members, clusterFlavors, cursor: cursorOf(key, query.order) }];
  });
  const next = nodes.length > page.length ? (listed.at(-1)?.cursor ?? null) : null;
  return { ...rest, nodes: listed, next, jobs: new Map(jobs.map((job) => [job.uid, holdingJob(job)])) };
}

function holdingJob({ uid, namespace, name, createdBy, spec }: Job): HoldingJob {
  const { queue } = spec.runPolicy.schedulingPolicy;
  return {
    uid,
    namespace,
    name,
    kind: spec.kind,
    queue,
    createdBy,
    kindSpec: spec.kindSpec,
    roles: rolesOf(askMembers(spec)),
  };
}

function cursorOf(key: readonly (string | number)[], order: string): string {
  return Buffer.from(JSON.stringify([order, ...key])).toString("base64url");
}

function keyIn(cursor: string, order: string): readonly (string | number)[] | null {
  try {
    const [of, ...key] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    return of === order ? key : null;
  } catch {
    return null;
  }
}
