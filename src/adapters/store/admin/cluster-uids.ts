/** Which cluster has which uid. No two clusters that are in use have the same one. */
import type { UidRefusal } from "../../../core/admin/cluster.ts";
import type { Executor } from "../db/db.ts";

/** A cluster by its name, and the uid that its API server tells. */
export type TellsUid = { readonly cluster: string; readonly uid: string };

/**
 * Gives a cluster its uid. Null: it has this uid, now or since an earlier call. Of two clusters that claim one uid at
 * the same time, the second waits for the first's row and is refused.
 */
export async function claimUid(tx: Executor, told: TellsUid): Promise<UidRefusal | null> {
  if (await takeCluster(tx, told.cluster)) {
    await tx.query(FREE_FORGOTTEN);
    await tx.query(CLAIM_UID, [told.uid, told.cluster]);
  }
  return uidRefusal(tx, told);
}

/**
 * Keeps the cluster's record until the transaction ends. Clusters are locked before their uids. False: there is none;
 * one that is made from here on is not locked.
 */
async function takeCluster(tx: Executor, cluster: string): Promise<boolean> {
  const locked = await tx.query("select 1 from clusters where name = $1 for key share", [cluster]);
  return locked.length === 1;
}

/** Takes the uid away from clusters that were forgotten: what they were may be registered again. */
const FREE_FORGOTTEN = `
with forgotten as (
  select uid from cluster_uids
   where cluster in (select name from clusters where forgotten_ms is not null)
   order by uid
     for update
)
delete from cluster_uids where uid in (select uid from forgotten)`;

/** Takes the uid away from the name of a forgotten cluster, which is registered again: it may name another one now. */
export async function freeUid(tx: Executor, cluster: string): Promise<void> {
  await tx.query("delete from cluster_uids where cluster = $1", [cluster]);
}

const CLAIM_UID = `
insert into cluster_uids (uid, cluster)
select $1::text, name from clusters where name = $2 and forgotten_ms is null
on conflict do nothing`;

/** Why a cluster cannot have this uid. Null: it has it, or nothing keeps it from having it. */
export async function uidRefusal(executor: Executor, { cluster, uid }: TellsUid): Promise<UidRefusal | null> {
  const taken = await executor.query<TellsUid>(SELECT_TAKEN, [uid, cluster]);
  const holder = taken.find((row) => row.uid === uid);
  if (holder !== undefined) return holder.cluster === cluster ? null : { kind: "sameCluster", uid, as: holder.cluster };
  const [own] = taken;
  return own === undefined ? null : { kind: "otherCluster", uid, registered: own.uid };
}

const SELECT_TAKEN = `
select u.uid, u.cluster from cluster_uids u join clusters c on c.name = u.cluster
 where (u.uid = $1 or u.cluster = $2) and c.forgotten_ms is null`;

/**
 * Gives a cluster its uid, whoever had it: the process that simulates a cluster knows better than every record. A
 * cluster that was deleted meanwhile gets none.
 */
export async function setUid(tx: Executor, { cluster, uid }: TellsUid): Promise<void> {
  if (!(await takeCluster(tx, cluster))) return;
  await tx.query(FREE_OTHERS, [uid, cluster]);
  await tx.query(SET_UID, [uid, cluster]);
}

const SET_UID = `
insert into cluster_uids (uid, cluster)
select $1::text, name from clusters where name = $2
on conflict do nothing`;

const FREE_OTHERS = `
with other as (
  select uid from cluster_uids where (uid = $1) <> (cluster = $2) order by uid for update
)
delete from cluster_uids where uid in (select uid from other)`;
