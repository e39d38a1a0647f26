import type { BucketLease, BucketView } from "../../../core/job/bucket.ts";
import { type Executor, onlyRow, storable } from "../db/db.ts";

/** The workers, the buckets that this worker holds, and the buckets that no living worker holds. */
export async function bucketsOf(executor: Executor, worker: string): Promise<BucketView> {
  return onlyRow(await executor.query<BucketView>(BUCKETS_OF, [storable(worker)]));
}

const BUCKETS_OF = `
select coalesce((select json_agg(name order by name) from workers where takes_buckets), '[]') as workers,
       coalesce((
         select json_agg(
                  json_strip_nulls(json_build_object('bucket', bucket, 'epoch', epoch, 'alone', nullif(alone, false)))
                  order by bucket
                )
           from bucket_leases where worker = $1
       ), '[]') as mine,
       coalesce((
         select json_agg(bucket order by bucket) from bucket_leases b
          where worker <> $1 and not exists (select from workers w where w.name = b.worker)
       ), '[]') as free`;

/**
 * Takes those of these buckets (null: of all) that no other living worker holds. Their former holders can no longer
 * record for their jobs. Waits for records that have locked a bucket's row. Locks rows in one order, so that two
 * workers never wait for each other in a circle. A bucket whose former holder has ended without giving it up, again
 * soon after it had taken the bucket in the same way, is marked `alone`.
 */
export async function takeBuckets(
  executor: Executor,
  worker: string,
  buckets: readonly number[] | null = null,
  nowMs = 0,
): Promise<readonly BucketLease[]> {
  const given = [storable(worker), buckets, nowMs, nowMs - SOON_MS];
  const taken = await executor.query<BucketLease>(TAKE_BUCKETS, given);
  return taken.map(({ alone, ...lease }) => (alone ? { ...lease, alone } : lease));
}

/** A worker that ends within ten minutes after it took a bucket may have ended because of it. A minute to notice. */
const SOON_MS = 11 * 60_000;

const TAKE_BUCKETS = `
with free as (
  select bucket, worker <> '' and worker <> $1 as died from bucket_leases b
   where ($2::smallint[] is null or bucket = any($2::smallint[]))
     and (worker = $1 or not exists (select from workers w where w.name = b.worker))
   order by bucket
     for update
), taken as (
  update bucket_leases l
     set worker = $1, epoch = l.epoch + 1, alone = l.alone or (free.died and coalesce(l.died_ms > $4, false)),
         died_ms = case when free.died then $3 else l.died_ms end
    from free
   where l.bucket = free.bucket
  returning l.bucket, l.epoch, l.alone
)
select bucket, epoch, alone from taken order by bucket`;

/** Frees buckets of this worker, which must have stopped working on them. */
export async function giveBuckets(executor: Executor, worker: string, buckets: readonly number[]): Promise<void> {
  await executor.query(GIVE_BUCKETS, [storable(worker), buckets]);
}

const GIVE_BUCKETS = `
with own as (
  select bucket from bucket_leases where worker = $1 and bucket = any($2::smallint[]) order by bucket for no key update
)
update bucket_leases set worker = '' where bucket in (select bucket from own)`;
