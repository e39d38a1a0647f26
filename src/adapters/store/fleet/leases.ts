import { type Executor, storable } from "../db/db.ts";

/** A lease at one of its epochs: every take-over raises the epoch. */
export type LeaseEpoch = { readonly name: string; readonly epoch: number };

/** The lease of the one planner that may admit. */
export const PLANNER_LEASE = "planner";
/** The lease of the one process that gives changes their positions. */
export const SEQUENCER_LEASE = "sequencer";
/** The lease of the one process whose metrics show the whole fleet. */
export const SURVEY_LEASE = "survey";
/** The lease of the one process that may record a cluster's capacity. */
export function observerLease(cluster: string): string {
  return `observer/${cluster}`;
}

/**
 * Takes a lease and returns its new epoch; its former holder can no longer record. Null if a living member holds the
 * lease.
 */
export async function takeLease(executor: Executor, name: string, holder: string): Promise<number | null> {
  const [taken] = await executor.query<{ epoch: number }>(TAKE_LEASE, [name, storable(holder)]);
  return taken?.epoch ?? null;
}

const TAKE_LEASE = `
insert into leases as l (name, holder, epoch) values ($1, $2, 1)
on conflict (name) do update set holder = excluded.holder, epoch = l.epoch + 1
 where l.holder = excluded.holder or not exists (select from workers where name = l.holder)
returning epoch`;

/** True if the lease is at that epoch; then no other can take it until the transaction ends. */
export async function holdsLease(tx: Executor, lease: LeaseEpoch): Promise<boolean> {
  const rows = await tx.query("select 1 from leases where name = $1 and epoch = $2 for key share", [
    lease.name,
    lease.epoch,
  ]);
  return rows.length === 1;
}
