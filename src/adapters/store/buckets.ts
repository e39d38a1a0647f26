import { type Db, type Executor, storable } from "./db.ts";

export type BucketLease = { readonly bucket: number; readonly epoch: number };

/** Takes every bucket for this worker; whoever held one can no longer record for its jobs. */
export function takeBuckets(db: Db, worker: string): Promise<readonly BucketLease[]> {
  return db.tx(async (tx) => {
    await tx.query("insert into workers (name) values ($1) on conflict (name) do nothing", [storable(worker)]);
    return tx.query<BucketLease>(TAKE_BUCKETS, [storable(worker)]);
  });
}

const TAKE_BUCKETS = `
with taken as (
  update bucket_leases set worker = $1, epoch = epoch + 1 returning bucket, epoch
)
select bucket, epoch from taken order by bucket`;

/** True while the bucket is held under that epoch, and until the transaction ends: a take-over waits, the holder's renewals do not. */
export async function holdsBucket(tx: Executor, lease: BucketLease): Promise<boolean> {
  const rows = await tx.query("select 1 from bucket_leases where bucket = $1 and epoch = $2 for key share", [
    lease.bucket,
    lease.epoch,
  ]);
  return rows.length === 1;
}
