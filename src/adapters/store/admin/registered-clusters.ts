/**
 * Clusters that admins register while the service runs. Every process follows this table: a cluster that is registered
 * is used, one that is deleted or forgotten is left, without a restart.
 */

import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { ClusterRecord, RegistrationOutcome, SourceRefusal, UidRefusal } from "../../../core/admin/cluster.ts";
import type { LossPolicies } from "../../../core/admin/loss-policies.ts";
import type { Topology } from "../../../core/plan/model/topology.ts";
import type { GangSchedulerName } from "../../../core/pods/build/pod-group.ts";
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { type Db, type Executor, json, onlyRow, undoable } from "../db/db.ts";
import { appendAudit } from "./audit.ts";
import { claimUid, freeUid } from "./cluster-uids.ts";
import { getCluster } from "./clusters.ts";
import { forgetClusters, recheckPlaced } from "./forget-clusters.ts";
import { lossPoliciesIn } from "./loss-policies.ts";
import { ensurePools, type PoolBounds } from "./pools.ts";
import { dependentsOf, sourceRefusal, takeSources } from "./secret-sources.ts";
import { retireSimulated, takeRegistrations, takeWithSimulated } from "./simulated-clusters.ts";

export type NewCluster = Pick<ClusterRecord, "name" | "labels" | "flavors"> & {
  /** Omitted: none. */
  readonly topology?: Topology;
  /** Encrypted credentials, or a reference to them: nobody can use the row alone. */
  readonly credentials: JsonObject;
  /** Omitted: none. */
  readonly gangScheduler?: GangSchedulerName;
  /** The uid that the cluster tells. Omitted: it tells none now, and claims one later. */
  readonly uid?: string;
};

/**
 * Registers a cluster, also under the name of a forgotten one. Its flavors become pools. Simulated clusters are retired
 * in the same transaction: once it has committed, no gang is admitted to them. While another cluster is not adopted
 * after a restore, this one is not either: it may have been registered after the dump.
 */
export function registerCluster(db: Db, cluster: NewCluster, bounds: PoolBounds): Promise<RegistrationOutcome> {
  return undoable<RegistrationOutcome>(db, async (tx, undo) => {
    await takeRegistrations(tx);
    await takeWithSimulated(tx, cluster.name);
    const made = await tx.query(REGISTER_CLUSTER, [
      cluster.name,
      json(cluster.labels),
      json(cluster.flavors),
      json(cluster.credentials),
      bounds.nowMs,
      cluster.gangScheduler ?? "none",
      json(cluster.topology ?? []),
    ]);
    if (made.length === 0) return { kind: "exists" };
    const unfit = await sourceRefusal(tx, { cluster: cluster.name, credentials: cluster.credentials });
    if (unfit !== null) return undo(unfit);
    await freeUid(tx, cluster.name);
    const retired = await retireSimulated(tx);
    const outcome = await claimed(tx, cluster, bounds);
    if (outcome.kind !== "done") return undo(outcome);
    const after = { ...settingsOf(outcome.record), credentials: shownCredentials(cluster.credentials) };
    const details = { before: null, after, retired };
    await appendAudit(tx, { timeMs: bounds.nowMs, action: "RegisterCluster", subject: cluster.name, details });
    return { ...outcome, retired };
  });
}

const REGISTER_CLUSTER = `
insert into clusters as c
  (name, labels, flavors, simulated, credentials, create_ms, gang_scheduler, topology, unadopted_ms, returning_ms)
select $1::text, $2::jsonb, $3::json, false, $4::json, $5::bigint, $6::text, $7::jsonb, restored.ms, restored.ms
  from (select min(unadopted_ms) as ms from clusters where forgotten_ms is null) restored
on conflict (name) do update
   set labels = excluded.labels, flavors = excluded.flavors, simulated = false, simulation = null,
       topology = excluded.topology, credentials = excluded.credentials,
       create_ms = excluded.create_ms, gang_scheduler = excluded.gang_scheduler, version = c.version + 1,
       forgotten_ms = null, cordoned = false, returning_ms = excluded.create_ms,
       unadopted_ms = excluded.unadopted_ms
 where c.forgotten_ms is not null
returning name`;

/**
 * Replaces labels and flavors, levels and gang scheduler unless they are omitted, and credentials unless they are null.
 * Refuses credentials of another cluster. Version 0: any version.
 */
export function updateCluster(
  db: Db,
  cluster: Pick<ClusterRecord, "name" | "labels" | "flavors" | "version"> & {
    readonly credentials: JsonObject | null;
    /** The uid that the cluster tells by the new credentials. Omitted: it tells none, or the credentials stay. */
    readonly uid?: string;
    readonly topology?: Topology;
    readonly gangScheduler?: GangSchedulerName;
  },
  bounds: PoolBounds,
): Promise<ChangeOutcome<ClusterRecord> | UidRefusal | SourceRefusal> {
  return undoable<ChangeOutcome<ClusterRecord> | UidRefusal | SourceRefusal>(db, async (tx, undo) => {
    await takeSources(tx, cluster.credentials);
    const [locked] = await tx.query<{ credentials: JsonObject | null }>(LOCK_TO_CHANGE, [cluster.name]);
    const before = await getCluster(tx, cluster.name);
    const changed = await tx.query(UPDATE_CLUSTER, [
      cluster.name,
      json(cluster.labels),
      json(cluster.flavors),
      jsonOrNull(cluster.credentials),
      cluster.version,
      cluster.gangScheduler ?? null,
      jsonOrNull(cluster.topology),
    ]);
    if (changed.length === 0) return undo(unchanged(before));
    const unfit = await sourceRefusal(tx, { cluster: cluster.name, credentials: cluster.credentials });
    if (unfit !== null) return undo(unfit);
    const outcome = await claimed(tx, cluster, bounds);
    if (outcome.kind !== "done") return undo(outcome);
    const details = {
      before: before && { ...settingsOf(before), ...replacedCredentials(cluster, locked?.credentials ?? null) },
      after: { ...settingsOf(outcome.record), ...replacedCredentials(cluster, cluster.credentials) },
    };
    await appendAudit(tx, { timeMs: bounds.nowMs, action: "UpdateCluster", subject: cluster.name, details });
    return outcome;
  });
}

/** Null: the column stays as it is. */
function jsonOrNull(value: JsonObject | Topology | null | undefined): string | null {
  return value === null || value === undefined ? null : json(value);
}

/** Why an update has changed nothing. */
function unchanged(record: ClusterRecord | null): ChangeOutcome<ClusterRecord> {
  if (record === null) return { kind: "notFound" };
  return record.simulated ? { kind: "inUse", by: "this process, which simulates it" } : { kind: "stale" };
}

const LOCK_TO_CHANGE = "select credentials from clusters where name = $1 for no key update";

const UPDATE_CLUSTER = `
update clusters
   set labels = $2::jsonb, flavors = $3::json, credentials = coalesce($4::json, credentials),
       gang_scheduler = coalesce($6, gang_scheduler), topology = coalesce($7::jsonb, topology), version = version + 1
 where name = $1 and not simulated and forgotten_ms is null and ($5::bigint = 0 or version = $5)
returning name`;

/**
 * Deletes a cluster that has no gangs. `forget`: the cluster is gone for good, so gangs that were placed there count as
 * gone. The row of a forgotten cluster stays, so that every process notices. So does the row of a simulated cluster, so
 * that it is not started again; on such a cluster only live gangs count.
 */
export async function deleteCluster(
  db: Db,
  name: string,
  how: { readonly forget: boolean; readonly nowMs: number },
): Promise<ChangeOutcome<null>> {
  const outcome = await db.tx((tx) => remove(tx, name, how));
  // In a transaction of its own: jobs are locked before clusters.
  if (outcome.kind === "done") await recheckPlaced(db, [name], how.nowMs);
  return outcome;
}

async function remove(
  tx: Executor,
  name: string,
  { forget, nowMs }: { readonly forget: boolean; readonly nowMs: number },
): Promise<ChangeOutcome<null>> {
  // Locks the row: an admission raises the cluster's counter, so it comes before this transaction or is refused.
  const [locked] = await tx.query<{ simulated: boolean }>(LOCK_CLUSTER, [name]);
  if (locked === undefined) return { kind: "notFound" };
  const { simulated } = locked;
  const { placed } = onlyRow(await tx.query<{ placed: number }>(simulated ? COUNT_LIVE : COUNT_PLACED, [name]));
  if (placed > 0 && !forget) {
    const gangs = placed === 1 ? "1 gang that is" : `${placed} gangs that are`;
    return { kind: "inUse", by: `${gangs} placed there; wait for their end, or forget it if it is gone for good` };
  }
  const [dependent] = forget ? [] : await dependentsOf(tx, name);
  if (dependent !== undefined) {
    const by = `cluster ${dependent}, whose kubeconfig is in a Secret there; update or remove that cluster first`;
    return { kind: "inUse", by };
  }
  if (forget || simulated) await forgetClusters(tx, { names: [name], simulation: "removed", nowMs });
  else await tx.query("delete from clusters where name = $1", [name]);
  const details = { before: { simulated }, forgotten: forget, placedGangs: placed };
  await appendAudit(tx, { timeMs: nowMs, action: "DeleteCluster", subject: name, details });
  return { kind: "done", record: null };
}

function settingsOf({ labels, flavors, topology, gangScheduler }: ClusterRecord) {
  return { labels, flavors, topology, gangScheduler };
}

/** Credentials are told by their kind alone, a reference to a Secret by its names. */
function shownCredentials(credentials: JsonObject): Json {
  return (credentials["kind"] === "secret" ? credentials : credentials["kind"]) ?? null;
}

/** The credentials before or after an update that replaces them. */
function replacedCredentials(update: { readonly credentials: JsonObject | null }, credentials: JsonObject | null) {
  return update.credentials === null || credentials === null ? {} : { credentials: shownCredentials(credentials) };
}

const LOCK_CLUSTER = "select simulated from clusters where name = $1 and forgotten_ms is null for update";

const COUNT_PLACED = "select count(distinct job_uid)::int as placed from admission_clusters where cluster = $1";

const COUNT_LIVE = "select count(*)::int as placed from admissions where cluster = $1 and state = 'live'";

/** A cluster that counts as lost. */
export type LostCluster = {
  /** The last fence of an admission before that. */
  readonly fence: string;
  /** For how long its observer has asked it in vain. */
  readonly silenceMs: number;
  readonly sinceMs: number;
};

/** The clusters that processes connect to, and the forgotten ones, which count as empty. */
export async function listCredentials(executor: Executor): Promise<{
  readonly registered: readonly {
    readonly name: string;
    readonly credentials: JsonObject;
    readonly gangScheduler: GangSchedulerName;
  }[];
  /** Only the process that simulates them connects to these. */
  readonly simulated: readonly string[];
  readonly forgotten: readonly string[];
  readonly lost: ReadonlyMap<string, LostCluster>;
  /** Whether gangs in lost clusters wait for them. */
  readonly policies: LossPolicies;
  /** Those that answer again, are adopted, and may have objects of gangs that have left them. */
  readonly returning: readonly string[];
  /** Those whose observer waits for an answer. */
  readonly silent: readonly string[];
  /** Those that nobody has adopted after the database was restored. */
  readonly unadopted: readonly string[];
}> {
  const rows = await executor.query<CredentialsRow>(LIST_CREDENTIALS);
  const without = rows.filter(({ credentials }) => credentials === null);
  const lost = new Map(
    rows.flatMap(({ name, lostFence: fence, silenceMs, lostMs }) =>
      fence === null ? [] : [[name, { fence, silenceMs, sinceMs: lostMs ?? 0 }] as const],
    ),
  );
  return {
    registered: rows.flatMap(({ name, credentials, gangScheduler }) =>
      credentials === null ? [] : [{ name, credentials, gangScheduler }],
    ),
    simulated: without.filter(({ isForgotten }) => !isForgotten).map(({ name }) => name),
    forgotten: without.filter(({ isForgotten }) => isForgotten).map(({ name }) => name),
    lost,
    policies: await lossPoliciesIn(executor, [...lost.keys()]),
    returning: rows.filter(({ isReturning }) => isReturning).map(({ name }) => name),
    silent: rows.filter(({ isSilent }) => isSilent).map(({ name }) => name),
    unadopted: rows.filter(({ isUnadopted }) => isUnadopted).map(({ name }) => name),
  };
}

type CredentialsRow = {
  readonly name: string;
  readonly credentials: JsonObject | null;
  readonly gangScheduler: GangSchedulerName;
  readonly isForgotten: boolean;
  readonly lostFence: string | null;
  readonly silenceMs: number;
  readonly lostMs: number | null;
  readonly isReturning: boolean;
  readonly isSilent: boolean;
  readonly isUnadopted: boolean;
};

const LIST_CREDENTIALS = `
select name, credentials, gang_scheduler as "gangScheduler", forgotten_ms is not null as "isForgotten",
       case when lost_ms is not null then coalesce(lost_fence, '0') end as "lostFence",
       silence_ms as "silenceMs", lost_ms as "lostMs",
       reachable and returning_ms is not null and unadopted_ms is null as "isReturning", silence_ms > 0 as "isSilent",
       unadopted_ms is not null as "isUnadopted"
  from clusters where credentials is not null or simulated or forgotten_ms is not null order by name`;

/** The stored credentials of one cluster. Null: there is no such cluster, or it has none. */
export async function credentialsOf(executor: Executor, name: string): Promise<JsonObject | null> {
  const [row] = await executor.query<{ credentials: JsonObject | null }>(
    "select credentials from clusters where name = $1 and forgotten_ms is null",
    [name],
  );
  return row?.credentials ?? null;
}

/** Gives a cluster its uid and its pools, and returns its record, or why it cannot have them. */
async function claimed(
  tx: Executor,
  { name, uid, flavors }: Pick<NewCluster, "name" | "uid" | "flavors">,
  bounds: PoolBounds,
) {
  const taken = uid === undefined ? null : await claimUid(tx, { cluster: name, uid });
  if (taken !== null) return taken;
  const record = await getCluster(tx, name);
  if (record === null) throw new Error(`cluster ${name} is gone in the transaction that wrote it`);
  const pools = flavors.map((flavor) => flavor.name);
  const refused = await ensurePools(tx, pools, bounds);
  return refused?.kind === "tooManyPools" ? refused : { kind: "done" as const, record };
}
