import type { ReportedRefusal } from "../../src/core/plan/explain/kept-reason.ts";
import type { Refusal } from "../../src/core/plan/model/plan-types.ts";

/** A refusal with a cause of this key: the head's, if it names one, else a lack of everything. */
export function keyed(refusal: Refusal, causeKey: number): ReportedRefusal {
  const { head } = refusal;
  if (head !== undefined) {
    return { refusal, causeKey, cause: { kind: "behindHead", head: { uid: head, namespace: "team", name: "head" } } };
  }
  const lack = { tried: "all" as const, quotas: [], clusters: { all: [] }, stoppedByQuota: false };
  return { refusal, causeKey, cause: { kind: "lacks", refusal: lack, inLine: [] } };
}
