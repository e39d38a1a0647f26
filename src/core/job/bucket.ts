export const BUCKETS = 1024;

/** The bucket that a job belongs to, for ever: FNV-1a of its uid. */
export function bucketOf(uid: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < uid.length; at += 1) hash = Math.imul(hash ^ uid.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % BUCKETS;
}
