import type { ClusterPlacement } from "./choose-cluster.ts";
import type { FlavorChoice } from "./flavors.ts";
import type { MemberCounts } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlannedAdmission } from "./plan-types.ts";
import type { QuotaBook } from "./quota-book.ts";
import type { Room } from "./rooms.ts";

/** The room and the quota that a plan has left. A decision about a gang changes them only if it admits the gang. */
export type PlanState = {
  readonly book: QuotaBook;
  readonly rooms: Map<string, Room>;
  /** The resources that some cluster counts by flavor. */
  readonly resources: readonly string[];
  readonly nowMs: number;
};

/** An admission, or a growth, for which there is room. */
export type AdmissionDraft = {
  readonly kind: "admit" | "grow";
  readonly number: number;
  readonly members: MemberCounts;
  readonly choice: FlavorChoice;
  readonly amounts: Readonly<Record<string, number>>;
  readonly placement: ClusterPlacement;
};

/** The number of a gang's next admission. Numbers are never used twice: objects of an older one are never adopted. */
export function nextNumber({ lastAdmission }: PlanGang): number {
  return lastAdmission + 1;
}

/** Books the room and the quota of a gang that is admitted or grows. */
export function takeRoom(gang: PlanGang, draft: AdmissionDraft, state: PlanState): PlannedAdmission {
  const { room, left } = draft.placement;
  const planned = plannedOf(gang, draft);
  for (const { pool, amount } of planned.allocations) state.book.charge(gang, pool, amount);
  state.rooms.set(room.cluster.name, { ...room, shapes: left, planned: room.planned + 1, refused: new Map() });
  return planned;
}

export function plannedOf(gang: PlanGang, draft: AdmissionDraft): PlannedAdmission {
  const { kind, number, members, choice, amounts, placement } = draft;
  const { room, nodeLabels } = placement;
  const byPool = new Map<string, number>();
  for (const [resource, amount] of Object.entries(amounts)) {
    const pool = choice[resource] ?? "";
    byPool.set(pool, (byPool.get(pool) ?? 0) + amount);
  }
  const { namespace, project, queue } = gang;
  return {
    kind,
    jobUid: gang.uid,
    askHash: gang.askHash,
    generation: gang.generation,
    admission: number,
    cluster: room.cluster.name,
    ...(room.cluster.simulated === true ? { simulated: true } : {}),
    admissionCounter: room.cluster.admissionCounter + room.planned,
    members,
    flavors: choice,
    nodeLabels,
    allocations: [...byPool].map(([pool, amount]) => ({ pool, amount, project, namespace, queue })),
  };
}
