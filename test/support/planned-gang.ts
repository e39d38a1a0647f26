import type { PlannedAdmission, PlannedGang } from "../../src/core/plan/model/plan-types.ts";

/** A gang for an admission that no round has planned. */
export function gangOfPlanned(
  { jobUid: uid, generation }: Pick<PlannedAdmission, "jobUid" | "generation">,
  facts: Partial<PlannedGang> = {},
): PlannedGang {
  const place = { namespace: "ml", name: uid, queue: "q", isChained: false };
  return { uid, generation, ...place, priority: 0, createTimeMs: 0, waitsSinceMs: 0, ...facts };
}
