import type { Clock } from "../../../runtime/clock.ts";
import type { Executor } from "../db/db.ts";

/** A read visits every node. Jobs that ask for a resource that no node has read them no more often than this. */
const REMEMBERED_MS = 1_000;

/**
 * Makes the function that reads the resources of nodes as `nodeResources` does. It answers from the last read if that
 * is young, or has all resources that are wanted: these seldom disappear.
 */
export function rememberedResources(executor: Executor, clock: Pick<Clock, "nowMs">) {
  let found: ReadonlySet<string> | null = null;
  let readMs = Number.NEGATIVE_INFINITY;
  return async (wanted: readonly string[]): Promise<ReadonlySet<string> | null> => {
    const nowMs = clock.nowMs();
    const isYoung = nowMs >= readMs && nowMs - readMs < REMEMBERED_MS;
    if (isYoung || wanted.every((resource) => found?.has(resource))) return found;
    found = await nodeResources(executor);
    readMs = nowMs;
    return found;
  };
}

/**
 * The resources that some node of some cluster has. Null: no cluster is registered, or one was not observed yet, so
 * that its nodes may have any.
 */
export async function nodeResources(executor: Executor): Promise<ReadonlySet<string> | null> {
  const rows = await executor.query<{ readonly known: boolean; readonly name: string | null }>(NODE_RESOURCES);
  if (rows.length === 0 || rows.some(({ known }) => !known)) return null;
  return new Set(rows.flatMap(({ name }) => name ?? []));
}

/** A cluster's nodes are entries; a program of the version before writes them into the column `capacity`. */
const NODE_RESOURCES = `
select distinct c.capacity_ms is not null or c.capacity is not null as known, r.name
  from clusters c
  left join lateral (
    select json_object_keys(e.entry->'node'->'allocatable') as name from cluster_capacity e
     where c.capacity is null and e.cluster = c.name and e.kind = 'node' and json_typeof(e.entry->'node') = 'object'
    union all
    select json_object_keys(n->'allocatable') from json_array_elements(c.capacity->'nodes') n
  ) r on true
 where c.forgotten_ms is null`;
