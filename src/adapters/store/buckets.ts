import { type Executor, onlyRow, storable } from "./db.ts";

export type BucketLease = { readonly bucket: number; readonly epoch: number };

export type BucketView = {
  /** Every worker that lives. */
  readonly workers: readonly string[];
  /** What this worker holds. */
  readonly mine: readonly BucketLease[];
  /** What nobody who lives holds. */
  readonly free: readonly number[];
};

/** How the buckets are shared out, as far as it concerns one worker. */
export async function bucketsOf(executor: Executor, worker: string): Promise<BucketView> {
  return onlyRow(await executor.query<BucketView>(BUCKETS_OF, [storable(worker)]));
}

const BUCKETS_OF = `
select coalesce((select json_agg(name order by name) from workers where takes_buckets), '[]') as workers,
       coalesce((
         select json_agg(json_build_object('bucket', bucket, 'epoch', epoch) order by bucket)
           from bucket_leases where worker = $1
       ), '[]') as mine,
       coalesce((
         select json_agg(bucket order by bucket) from bucket_leases b
          where worker <> $1 and not exists (select from workers w where w.name = b.worker)
       ), '[]') as free`;

/**
 * Takes those of these buckets (all if none are named) that nobody else who lives holds; whoever held one can no longer record for its
 * jobs. Waits for records that hold a bucket's row. Rows are taken in one order, so that two workers never wait for each other.
 */
export async function takeBuckets(
  executor: Executor,
  worker: string,
  buckets: readonly number[] | null = null,
): Promise<readonly BucketLease[]> {
  return executor.query<BucketLease>(TAKE_BUCKETS, [storable(worker), buckets]);
}

const TAKE_BUCKETS = `
with free as (
  select bucket from bucket_leases b
   where ($2::smallint[] is null or bucket = any($2::smallint[]))
     and (worker = $1 or not exists (select from workers w where w.name = b.worker))
   order by bucket
     for update
), taken as (
  update bucket_leases l set worker = $1, epoch = l.epoch + 1 from free where l.bucket = free.bucket
  returning l.bucket, l.epoch
)
select bucket, epoch from taken order by bucket`;

/** Gives buckets of this worker free for others. It must have stopped working on them. */
export async function giveBuckets(executor: Executor, worker: string, buckets: readonly number[]): Promise<void> {
  await executor.query("update bucket_leases set worker = '' where worker = $1 and bucket = any($2::smallint[])", [
    storable(worker),
    buckets,
  ]);
}
