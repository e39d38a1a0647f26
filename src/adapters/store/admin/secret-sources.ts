/** The clusters whose kubeconfigs are in Secrets, and the clusters that have these Secrets. */
import { judgeSource, type KnownSource, type SourceRefusal } from "../../../core/admin/cluster.ts";
import { type JsonObject, stringAt } from "../../../runtime/json.ts";
import type { Executor } from "../db/db.ts";
import { takeRegistrations } from "./simulated-clusters.ts";

/**
 * Why the credentials cannot be those of the cluster: they refer to a Secret of a cluster that cannot have it. Within a
 * transaction, a source that is found stays until the end. Null: they can.
 */
export async function sourceRefusal(
  executor: Executor,
  { cluster, credentials }: { readonly cluster: string; readonly credentials: JsonObject | null },
): Promise<SourceRefusal | null> {
  if (credentials === null || stringAt(credentials, "kind") !== "secret") return null;
  const source = stringAt(credentials, "cluster") ?? "";
  return judgeSource({ cluster, source }, await executor.query<KnownSource>(LOCK_SOURCES, [source, cluster]));
}

/** Lets changes of references follow each other: two clusters cannot refer to Secrets of each other. */
export async function takeSources(tx: Executor, credentials: JsonObject | null): Promise<void> {
  if (credentials !== null && stringAt(credentials, "kind") === "secret") await takeRegistrations(tx);
}

const SOURCE = "case when credentials->>'kind' = 'secret' then credentials->>'cluster' end";

/** A deletion of the source waits for this lock, and sees the reference then. */
const LOCK_SOURCES = `
select name, simulated, ${SOURCE} as source from clusters
 where forgotten_ms is null and (name = $1 or ${SOURCE} = $2) order by name for key share`;

/** The clusters whose kubeconfigs are in Secrets of this one. */
export async function dependentsOf(executor: Executor, cluster: string): Promise<readonly string[]> {
  const rows = await executor.query<{ name: string }>(LIST_DEPENDENTS, [cluster]);
  return rows.map(({ name }) => name);
}

const LIST_DEPENDENTS = `
select name from clusters where forgotten_ms is null and ${SOURCE} = $1 order by name`;
