import type { Job } from "./job.ts";

/** True for a waiting job that may be answered by another's result, and does not know yet: it is not admitted meanwhile. */
export function awaitsResult({ spec, status, cancel, deleteTimeMs }: Job): boolean {
  const { cacheKey, suspend } = spec.runPolicy;
  if (cacheKey === undefined || suspend === true || cancel !== null || deleteTimeMs !== null) return false;
  return status.phase === "WAITING" && status.cache?.state !== "miss";
}
