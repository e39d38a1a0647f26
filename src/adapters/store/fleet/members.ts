import type { SharedTime } from "../../../runtime/decision-time.ts";
import { type Executor, onlyRow, storable } from "../db/db.ts";
import { SHARED_TIME } from "./decision-clock.ts";
import type { LeaseEpoch } from "./leases.ts";

/** The counter of a member at some moment. A member that renews raises its counter. */
export type MemberCounter = { readonly name: string; readonly counter: number };

export type NewMember = {
  readonly name: string;
  readonly takesBuckets: boolean;
  /** Other members declare this member dead when its counter has not moved for so long on their own clocks. */
  readonly leaseMs: number;
};

export type Renewal = {
  /** False if the member has no row: others declared it dead, and the leases that it held are free. */
  readonly alive: boolean;
  readonly others: readonly (MemberCounter & { readonly leaseMs: number })[];
  /** The leases that the member holds, without those of buckets. */
  readonly leases: readonly LeaseEpoch[];
  readonly time: SharedTime;
};

/** Makes a process a member. Its name must be new: a member that was declared dead never uses its name again. */
export async function joinMembers(executor: Executor, member: NewMember): Promise<void> {
  const { name, takesBuckets, leaseMs } = member;
  await executor.query("insert into workers (name, takes_buckets, lease_ms) values ($1, $2, $3)", [
    storable(name),
    takesBuckets,
    Math.ceil(leaseMs),
  ]);
}

/** Raises a member's counter, and reads the leases that it holds, the counters of the others, and the time. */
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
       ), '[]') as leases,
       ${SHARED_TIME} as time`;

/**
 * Declares a member dead, unless it has renewed since it was seen. It loses its row, which its next renewal notices.
 */
export async function declareDead(executor: Executor, seen: MemberCounter): Promise<void> {
  await executor.query("delete from workers where name = $1 and counter = $2", [seen.name, seen.counter]);
}

/** Ends a membership: every lease that the member holds is free at once. Its buckets name no holder that has died. */
export async function leaveMembers(executor: Executor, name: string): Promise<void> {
  await executor.query(LEAVE, [storable(name)]);
}

const LEAVE = `
with gone as (
  delete from workers where name = $1 returning name
), own as (
  select bucket from bucket_leases where worker in (select name from gone) order by bucket for no key update
)
update bucket_leases set worker = '' where bucket in (select bucket from own)`;

/** Declares all members dead. For a process that is surely alone with its database. */
export async function forgetMembers(executor: Executor): Promise<void> {
  await executor.query(FORGET_ALL);
}

const FORGET_ALL = `
with member as (select name from workers order by name for update)
delete from workers where name in (select name from member)`;
