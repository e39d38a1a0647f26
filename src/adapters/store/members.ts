import { type Executor, onlyRow, storable } from "./db.ts";
import type { Lease } from "./leases.ts";

/** Another member as it was seen: one whose counter stays where it is has not renewed. */
export type SeenMember = { readonly name: string; readonly counter: number };

export type NewMember = {
  readonly name: string;
  readonly takesBuckets: boolean;
  /** Others take it for dead when they have seen its counter stand still for so long. */
  readonly leaseMs: number;
};

export type Renewal = {
  /** False where the member has no row: others took it for dead, and what it held is free. */
  readonly alive: boolean;
  readonly others: readonly (SeenMember & { readonly leaseMs: number })[];
  /** The leases that it holds, besides buckets. */
  readonly leases: readonly Lease[];
};

/** Makes a process a member. Its name must be new: one that was taken for dead never comes back under the same. */
export async function joinMembers(executor: Executor, member: NewMember): Promise<void> {
  const { name, takesBuckets, leaseMs } = member;
  await executor.query("insert into workers (name, takes_buckets, lease_ms) values ($1, $2, $3)", [
    storable(name),
    takesBuckets,
    Math.ceil(leaseMs),
  ]);
}

/** Raises a member's counter, and reads what it holds and how far the others are. */
export async function renewMember(executor: Executor, name: string): Promise<Renewal> {
  return onlyRow(await executor.query<Renewal>(RENEW, [storable(name)]));
}

const RENEW = `
with renewed as (
  update workers set counter = counter + 1 where name = $1 returning 1
)
select exists (select from renewed) as alive,
       coalesce((
         select json_agg(json_build_object('name', name, 'counter', counter, 'leaseMs', lease_ms))
           from workers where name <> $1
       ), '[]') as others,
       coalesce((
         select json_agg(json_build_object('name', name, 'epoch', epoch)) from leases where holder = $1
       ), '[]') as leases`;

/** Takes a member for dead, unless it has renewed since it was seen: it loses its row, so that its next renewal tells it. */
export async function declareDead(executor: Executor, seen: SeenMember): Promise<void> {
  await executor.query("delete from workers where name = $1 and counter = $2", [seen.name, seen.counter]);
}

/** Hands over everything that a member holds, at once. */
export async function leaveMembers(executor: Executor, name: string): Promise<void> {
  await executor.query("delete from workers where name = $1", [storable(name)]);
}

/** Takes all members for dead. For a process that knows that it is alone with its database. */
export async function forgetMembers(executor: Executor): Promise<void> {
  await executor.query("delete from workers");
}
