import type { Change } from "../../../core/plan/facts/changes.ts";
import type { Cursor } from "../../../core/plan/facts/facts.ts";
import type { KnownFleet } from "../../../core/plan/facts/fleet-read.ts";
import { entriesOf, presentEntry } from "../../../core/plan/model/capacity-entry.ts";
import { append } from "../../../runtime/lists.ts";
import { capacityPage, capacitySince } from "../admin/cluster-capacity.ts";
import type { Executor } from "../db/db.ts";
import { legacyCapacity, type PlanClusterRow } from "./fleet-settings.ts";

/** How many entries one statement reads at most: the embedded database answers nobody else meanwhile. */
const ENTRY_PAGE = 500;

/** How far a cluster's capacity is recorded. */
export type CapacityHead = Pick<PlanClusterRow, "name" | "epoch" | "sequence" | "observed" | "legacyMs">;

type CapacityChange = Extract<Change, { readonly kind: "capacity" | "unobserved" }>;

type CapacityChanges = { readonly changes: readonly CapacityChange[]; readonly more: boolean };

/** The changes of the capacity of these clusters since the places that are known. */
export async function capacityChanges(
  executor: Executor,
  { clusters, known }: { readonly clusters: readonly CapacityHead[]; readonly known: Pick<KnownFleet, "cursorOf"> },
): Promise<CapacityChanges> {
  const changes: CapacityChange[] = [];
  let more = false;
  for (const cluster of clusters) {
    const at = known.cursorOf(cluster.name);
    const found = await clusterChanges(executor, cluster, at);
    if (found === null) continue;
    changes.push(found);
    more ||= found.kind === "capacity" && found.since !== null && found.changes.length === ENTRY_PAGE;
  }
  return { changes, more };
}

async function clusterChanges(
  executor: Executor,
  row: CapacityHead,
  at: Cursor | null,
): Promise<CapacityChange | null> {
  const { name: cluster, epoch, sequence } = row;
  if (!row.observed) return at === null ? null : { kind: "unobserved", cluster };
  if (row.legacyMs !== null) return legacyList(executor, row, at);
  if (at?.epoch === epoch && at.sequence === sequence) return null;
  if (at === null || at.epoch !== epoch) return fullList(executor, cluster);
  const step = await capacitySince(executor, cluster, { place: at, limit: ENTRY_PAGE });
  if (step === null) return null;
  if (step === "behind") return fullList(executor, cluster);
  const { place, changes } = step;
  return { kind: "capacity", cluster, epoch, since: at.sequence, sequence: place.sequence, changes };
}

/** Every entry, read in pages. Null: the cluster has gone. Begins again if another observer begins meanwhile. */
async function fullList(executor: Executor, cluster: string): Promise<CapacityChange | null> {
  const first = await capacityPage(executor, cluster, { after: null, limit: ENTRY_PAGE });
  if (first === null) return null;
  const { epoch, sequence } = first.place;
  const entries = [...first.entries];
  for (let next = first.next; next !== null; ) {
    const page = await capacityPage(executor, cluster, { after: next, limit: ENTRY_PAGE });
    if (page === null) return null;
    if (page.place.epoch !== epoch) return fullList(executor, cluster);
    append(entries, page.entries);
    next = page.next;
  }
  return { kind: "capacity", cluster, epoch, since: null, sequence, changes: entries.map(presentEntry) };
}

/** The place of a report that a program of the version before has recorded in one piece, between two epochs of ours. */
const BETWEEN = 0.5;

async function legacyList(executor: Executor, row: CapacityHead, at: Cursor | null): Promise<CapacityChange | null> {
  const { name: cluster } = row;
  const place = { epoch: row.epoch + BETWEEN, sequence: row.legacyMs ?? 0 };
  if (at?.epoch === place.epoch && at.sequence === place.sequence) return null;
  const capacity = await legacyCapacity(executor, cluster);
  if (capacity === null) return null;
  return { kind: "capacity", cluster, ...place, since: null, changes: entriesOf(capacity).map(presentEntry) };
}
