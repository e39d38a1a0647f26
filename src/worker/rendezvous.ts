/**
 * The worker that a bucket belongs to: the one for which bucket and name together hash highest. A worker that joins
 * takes an equal part of the buckets of each other worker, and one that leaves hands an equal part to each; no other
 * bucket moves. Null: there are no workers.
 */
export function ownerOf(bucket: number, workers: readonly string[]): string | null {
  let owner: string | null = null;
  let highest = -1;
  for (const worker of workers) {
    const weight = weightOf(bucket, worker);
    if (weight > highest || (weight === highest && owner !== null && worker < owner)) {
      owner = worker;
      highest = weight;
    }
  }
  return owner;
}

/**
 * FNV-1a of the name, then the bucket, mixed as in murmur3: names that differ in one digit must get different weights.
 */
function weightOf(bucket: number, worker: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < worker.length; at += 1) hash = Math.imul(hash ^ worker.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ Math.imul(bucket + 1, 0x9e3779b1), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 15)) >>> 0;
}
