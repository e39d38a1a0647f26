import type {
  ClusterRefusal,
  Plan,
  PlannedAdmission,
  QuotaRefusal,
  Refusal,
} from "../../../src/core/plan/model/plan-types.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import { sumsOf } from "./plan-world.ts";

const PLANS_MAX = 20;

/** The world once plan after plan was recorded, until one admits nothing. */
export function settled(from: PlanSnapshot, admissionsOf: (from: PlanSnapshot) => readonly PlannedAdmission[]) {
  let world = from;
  for (let at = 0; at < PLANS_MAX; at++) {
    const admissions = admissionsOf(world);
    if (admissions.length === 0) return world;
    world = recorded(world, admissions);
  }
  throw new Error(`the world still admits gangs after ${PLANS_MAX} plans`);
}

/** The world once some admissions are recorded. No node shows their pods yet. */
function recorded(from: PlanSnapshot, admissions: readonly PlannedAdmission[]): PlanSnapshot {
  const byUid = new Map(admissions.map((one) => [one.jobUid, one]));
  const gangs = [...from.waiting, ...from.admitted].map((gang) => {
    const planned = byUid.get(gang.uid);
    if (planned === undefined) return gang;
    const { admission: number, cluster, members, flavors, flavorLabels } = planned;
    const ends = { admitTimeMs: 0, state: "live" as const, tokensReleasedMs: null, goneMs: null };
    const others = gang.admissions.filter((old) => old.number !== number);
    const lastAdmission = Math.max(number, gang.lastAdmission);
    const live = { number, cluster, members, flavors, flavorLabels, ...ends };
    return { ...gang, waits: false, admissions: [...others, live], lastAdmission };
  });
  const sums = new Map(from.sums.map((sum) => [scopeKey(sum.scope), sum]));
  for (const { scope, used } of sumsOf(admissions.flatMap(({ allocations }) => allocations))) {
    const key = scopeKey(scope);
    sums.set(key, { scope, used: used + (sums.get(key)?.used ?? 0) });
  }
  const clusters = from.clusters.map((one) => {
    const more = admissions.filter(({ cluster }) => cluster === one.name).length;
    return { ...one, admissionCounter: one.admissionCounter + more };
  });
  return {
    ...from,
    waiting: gangs.filter(({ waits }) => waits),
    admitted: gangs.filter(({ waits }) => !waits).sort((a, b) => (a.uid < b.uid ? -1 : 1)),
    sums: [...sums.values()],
    clusters,
  };
}

/** An admission without its planned nodes, which have laws of their own. */
export function withoutNodes({ runs: _, ...planned }: PlannedAdmission): PlannedAdmission {
  return planned;
}

/** A plan without the numbers of its refusals, which depend on the moment of the plan at which they are read. */
export function withoutNumbers({ refusals, ...plan }: Plan) {
  const found = inOrder(refusals).map(({ jobUid, generation, reason, head = null, retryAtMs, clusters, quotas }) => {
    const ofClusters = clusters.map(({ cluster, reason, simulated = false, flavor, need }) => {
      return { cluster, reason, simulated, flavor, need };
    });
    const ofQuotas = quotas.map(({ queue, flavor, scope, reason }) => ({ queue, flavor, scope, reason }));
    return { jobUid, generation, reason, head, retryAtMs, clusters: ofClusters, quotas: ofQuotas };
  });
  return { ...plan, admissions: plan.admissions.map(withoutNodes), refusals: found };
}

/** A plan without the names of nodes that are one of several equally near ones. */
export function withoutTies({ refusals, ...plan }: Plan) {
  const masked = inOrder(refusals).map((refusal) => ({
    ...refusal,
    message: beforeNode(refusal.message),
    clusters: refusal.clusters.map(maskedCluster),
    quotas: refusal.quotas.map(maskedQuota),
  }));
  return { ...plan, admissions: plan.admissions.map(withoutNodes), refusals: masked };
}

function inOrder(refusals: readonly Refusal[]): readonly Refusal[] {
  return refusals.toSorted((a, b) => (a.jobUid < b.jobUid ? -1 : 1));
}

export function maskedCluster(refusal: ClusterRefusal) {
  const { blocked } = refusal;
  const size = (blocked?.obstacles ?? []).map((one) => {
    return one.kind === "resource" ? (one.need - one.available) / one.need : 1;
  });
  const near = blocked && { role: blocked.role, placed: blocked.placed, never: blocked.never };
  const sum = size.reduce((all, one) => all + one, 0).toFixed(6);
  return { ...refusal, message: beforeNode(refusal.message), blocked: near, count: size.length, size: sum };
}

/** Room that is kept for another gang counts only where it is in the way. */
export function maskedQuota(refusal: QuotaRefusal) {
  return refusal.reason === "Reserved" ? refusal : { ...refusal, reserved: 0 };
}

function beforeNode(message: string): string {
  return message.replace(/(?:node \S+|\d+ nodes) (?:lacks?|has|have|does|do|takes?) .*$/, "");
}
