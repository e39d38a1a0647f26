export const BUCKETS = 1024;

/** The bucket of a job, which never changes: FNV-1a of its uid. */
export function bucketOf(uid: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < uid.length; at += 1) hash = Math.imul(hash ^ uid.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % BUCKETS;
}

/**
 * A bucket that a worker holds, and the epoch under which it may record for the bucket's jobs. `alone`: two workers in
 * a row have ended while they held it, so its jobs are stepped one at a time (`core/blame`). Omitted: they are not.
 */
export type BucketLease = { readonly bucket: number; readonly epoch: number; readonly alone?: boolean };

/** How the buckets are divided among workers, from the view of one worker. */
export type BucketView = {
  /** Every live worker that takes buckets. */
  readonly workers: readonly string[];
  /** The buckets that this worker holds. */
  readonly mine: readonly BucketLease[];
  /** The buckets that no live worker holds. */
  readonly free: readonly number[];
};
