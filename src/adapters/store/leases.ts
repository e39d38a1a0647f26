import { type Executor, storable } from "./db.ts";

export type Lease = { readonly name: string; readonly epoch: number };

/** Held by the one planner that may admit. */
export const PLANNER_LEASE = "planner";
/** Held by the one process that gives changes their positions as they come. */
export const SEQUENCER_LEASE = "sequencer";
/** Held by the one process whose word on a cluster's capacity counts. */
export function observerLease(cluster: string): string {
  return `observer/${cluster}`;
}

/**
 * Takes a lease that nobody who lives holds, and returns its new epoch: whoever held it can no longer record. Null where a member that
 * lives has it.
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

/** True while the lease is at that epoch, and until the transaction ends. */
export async function holdsLease(tx: Executor, lease: Lease): Promise<boolean> {
  const rows = await tx.query("select 1 from leases where name = $1 and epoch = $2 for key share", [
    lease.name,
    lease.epoch,
  ]);
  return rows.length === 1;
}
