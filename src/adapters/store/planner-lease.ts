import { type Executor, onlyRow, storable } from "./db.ts";

/** Takes the planner's lease and returns its new epoch; whoever held it can no longer record. */
export async function takePlannerLease(executor: Executor, holder: string): Promise<number> {
  const rows = await executor.query<{ epoch: number }>(TAKE_LEASE, [storable(holder)]);
  return onlyRow(rows).epoch;
}

const TAKE_LEASE = `
insert into leases as l (name, holder, epoch) values ('planner', $1, 1)
on conflict (name) do update set holder = excluded.holder, epoch = l.epoch + 1
returning epoch`;

/** True while the lease is at that epoch, and until the transaction ends. */
export async function holdsPlannerLease(tx: Executor, epoch: number): Promise<boolean> {
  const rows = await tx.query("select 1 from leases where name = 'planner' and epoch = $1 for key share", [epoch]);
  return rows.length === 1;
}
