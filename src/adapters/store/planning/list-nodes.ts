/**
 * Lists nodes of clusters. The order and the filter of a list need facts of every node, so the process keeps these in
 * memory and reads what has changed; of a page's nodes it reads the records. It costs nothing while nobody asks.
 */
import { setImmediate } from "node:timers/promises";
import { type ListedCluster, NodeBook } from "../../../core/admin/nodes/node-book.ts";
import {
  type HoldingJob,
  type ListedNode,
  type NodePage,
  type NodeQuery,
  rolesOf,
} from "../../../core/admin/nodes/node-page.ts";
import { KEY_TYPES } from "../../../core/admin/nodes/node-query.ts";
import { type SelectedNodes, selectNodes } from "../../../core/admin/nodes/select-nodes.ts";
import { PAGE_BYTES_MAX } from "../../../core/job/request/list.ts";
import type { Ask } from "../../../core/plan/model/ask.ts";
import type { CapacityEntry } from "../../../core/plan/model/capacity-entry.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Semaphore } from "../../../runtime/semaphore.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import type { Executor } from "../db/db.ts";
import { UUID } from "../jobs/list-jobs.ts";
import { type CapacityHead, capacityChanges } from "./fleet-capacity.ts";
import { legacyCapacity } from "./fleet-settings.ts";

/** After so long without a call, the facts are dropped. The next call reads all of them again. */
const IDLE_MS_MAX = 180_000;

type Row = ListedCluster & CapacityHead;

type Selected = SelectedNodes & { readonly rows: readonly Row[] };

/** Makes the function that lists nodes. `notFound`: there is no cluster of the name. */
export function nodeLister(executor: Executor, clock: Pick<Clock, "nowMs">) {
  // One call after the other moves the facts, and finds its page before the next one moves them.
  const turns = new Semaphore(1);
  let book = new NodeBook();
  let usedMs = Number.NEGATIVE_INFINITY;
  return async (query: NodeQuery): Promise<NodePage | "notFound" | "badCursor"> => {
    const after = query.after === null ? null : decodeCursor(query.after, orderName(query), KEY_TYPES[query.order]);
    if (query.after !== null && after === null) return "badCursor";
    const found = await turns.run(async () => {
      const nowMs = clock.nowMs();
      if (nowMs - usedMs > IDLE_MS_MAX) book = new NodeBook();
      usedMs = nowMs;
      const rows = await follow(executor, book, query);
      return rows === null ? null : { rows, ...selectNodes(book, rows, { query, after }) };
    });
    return found === null ? "notFound" : readPage(executor, found, query);
  };
}

/** The name under which cursors of this list are kept apart from those of others. */
function orderName({ order }: NodeQuery): string {
  return `nodes ${order}`;
}

/** Brings the facts of the clusters that a query is about to the present. Null: the named one does not exist. */
async function follow(executor: Executor, book: NodeBook, query: NodeQuery): Promise<readonly Row[] | null> {
  const all = await executor.query<Row>(CLUSTERS, [query.cluster]);
  if (query.cluster === null) book.keepOnly(new Set(all.map(({ name }) => name)));
  else if (all.length === 0) return null;
  const rows = all.filter(({ name }) => query.maySee(name));
  for (const row of rows) {
    book.follow(row);
    for (let more = true; more; ) {
      const read = await capacityChanges(executor, { clusters: [row], known: book });
      for (const change of read.changes) book.apply(change);
      more = read.more;
      // An embedded database answers without I/O: others get their turn between the clusters.
      if (read.changes.length > 0) await setImmediate();
    }
  }
  return rows;
}

const CLUSTERS = `
select name, flavors, cordoned, simulated, reachable, version, capacity_epoch as epoch, capacity_sequence as sequence,
       coalesce(observed_ms, capacity_ms) is not null as observed, observed_ms as "legacyMs",
       coalesce(observed_ms, capacity_ms) as "observedMs"
  from clusters where forgotten_ms is null and ($1::text is null or name = $1) order by name`;

async function readPage(executor: Executor, selected: Selected, query: NodeQuery): Promise<NodePage> {
  const { rows, nodes, total, version, clusters } = selected;
  const wanted = nodes.slice(0, query.pageSize);
  const entries = await readEntries(executor, rows, wanted);
  const byName = new Map(rows.map((row) => [row.name, row]));
  const listed = entries.found.flatMap(({ place, entry }): ListedNode[] => {
    const asked = wanted[place];
    if (asked === undefined || entry.kind !== "node" || entry.node === null) return [];
    const { cluster } = asked.node;
    const cursor = encodeCursor(orderName(query), asked.key);
    const clusterFlavors = byName.get(cluster)?.flavors ?? [];
    return [{ cluster, node: entry.node, clusterFlavors, members: entry.members, cursor }];
  });
  const last = wanted[entries.read - 1];
  const isLast = entries.read === nodes.length || last === undefined;
  return {
    nodes: listed,
    jobs: await holdingJobs(executor, listed),
    next: isLast ? null : encodeCursor(orderName(query), last.key),
    total,
    version,
    clusters,
  };
}

type Entries = {
  readonly found: readonly { readonly place: number; readonly entry: CapacityEntry }[];
  /** How many of the wanted ones fit. Those of them that are gone meanwhile are not found. */
  readonly read: number;
};

async function readEntries(executor: Executor, rows: readonly Row[], wanted: Selected["nodes"]): Promise<Entries> {
  if (wanted.length === 0) return { found: [], read: 0 };
  const recorded = await executor.query<{ place: number; entry: CapacityEntry; fits: boolean }>(ENTRIES, [
    wanted.map(({ node }) => node.cluster),
    wanted.map(({ node }) => node.name),
  ]);
  const passed = recorded.find(({ fits }) => !fits);
  const read = passed === undefined ? wanted.length : passed.place;
  const legacy = await legacyEntries(executor, rows, wanted);
  const found = [...recorded.filter(({ fits }) => fits), ...legacy];
  return { found: found.filter(({ place }) => place < read).sort((a, b) => a.place - b.place), read };
}

/** The first one always fits. Places begin with 0. */
const ENTRIES = `
with wanted as (
  select cluster, name, (place - 1)::int as place
    from unnest($1::text[], $2::text[]) with ordinality as w (cluster, name, place)
), measured as (
  select w.place, e.cluster, e.name, sum(octet_length(e.entry::text)) over (order by w.place) as bytes,
         row_number() over (order by w.place) as nth
    from wanted w join cluster_capacity e on e.cluster = w.cluster and e.kind = 'node' and e.name = w.name
   where e.entry is not null
)
select m.place, nth = 1 or bytes <= ${PAGE_BYTES_MAX} as fits,
       case when nth = 1 or bytes <= ${PAGE_BYTES_MAX} then e.entry end as entry
  from measured m join cluster_capacity e on e.cluster = m.cluster and e.kind = 'node' and e.name = m.name
 order by m.place`;

/** Nodes of clusters whose capacity a program of the version before has recorded in one piece. */
async function legacyEntries(
  executor: Executor,
  rows: readonly Row[],
  wanted: Selected["nodes"],
): Promise<Entries["found"]> {
  const found: { place: number; entry: CapacityEntry }[] = [];
  for (const { name: cluster } of rows.filter(({ legacyMs }) => legacyMs !== null)) {
    const capacity = await legacyCapacity(executor, cluster);
    const byName = new Map(capacity?.nodes.map((node) => [node.name, node]));
    for (const [place, { node: asked }] of wanted.entries()) {
      const node = asked.cluster === cluster ? byName.get(asked.name) : undefined;
      if (node !== undefined) found.push({ place, entry: { kind: "node", name: node.name, node, members: [] } });
    }
  }
  return found;
}

async function holdingJobs(executor: Executor, nodes: readonly ListedNode[]): Promise<ReadonlyMap<string, HoldingJob>> {
  const uids = new Set(nodes.flatMap(({ members }) => members.map(({ jobUid }) => jobUid)));
  // A pod may carry any text as its label.
  const known = [...uids].filter((uid) => UUID.test(uid));
  if (known.length === 0) return new Map();
  const rows = await executor.query<Omit<HoldingJob, "roles"> & { readonly hash: string | null }>(JOBS, [known]);
  const hashes = [...new Set(rows.flatMap(({ hash }) => hash ?? []))];
  const asks = await executor.query<{ hash: string; ask: Ask }>(ASKS, [hashes]);
  const roles = new Map(asks.map(({ hash, ask }) => [hash, rolesOf(ask)]));
  return new Map(rows.map(({ hash, ...job }) => [job.uid, { ...job, roles: roles.get(hash ?? "") ?? {} }]));
}

const JOBS = `
select uid, namespace, name, kind, queue, created_by as "createdBy", ask_hash as hash,
       spec->'kindSpec' as "kindSpec"
  from jobs where uid = any($1::uuid[])`;

const ASKS = "select hash, ask from asks where hash = any($1::text[])";
