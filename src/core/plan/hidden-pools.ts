/** Takes pools that a caller may not see out of the answer of a simulation, and out of a refusal. */
import type { BlockedPod } from "./blocked-pod.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal } from "./plan-types.ts";

/** Decides which pools a caller may see. */
export type MaySeePool = (name: string) => boolean;

/** The parts of an answer that name pools. */
export type NamesPools = {
  readonly message: string;
  readonly quotas: readonly QuotaRefusal[];
  /** The clusters that the message is about. */
  readonly refusals: readonly ClusterRefusal[];
  readonly admission: PlannedAdmission | null;
};

/** The names of pools in an answer that the caller may not see, the longest first: a name may be a part of another. */
export function hiddenPools(answer: NamesPools, maySee: MaySeePool): readonly string[] {
  const { quotas, refusals, admission } = answer;
  const named = [
    ...quotas.map(({ flavor }) => flavor),
    ...refusals.flatMap(poolsOfCluster),
    ...Object.values(admission?.flavors ?? {}),
    ...(admission?.allocations ?? []).map(({ pool }) => pool),
  ];
  return [...new Set(named)].filter((name) => name !== "" && !maySee(name)).sort((a, b) => b.length - a.length);
}

function poolsOfCluster({ flavor, blocked }: ClusterRefusal): readonly string[] {
  const labels = (blocked?.obstacles ?? []).flatMap((one) => (one.kind === "label" ? (one.flavor ?? []) : []));
  return [...(flavor === null ? [] : [flavor]), ...labels];
}

export function textWithoutPools(text: string, hidden: readonly string[]): string {
  return hidden.reduce((words, name) => words.replaceAll(name, "another pool"), text);
}

export function clusterWithoutPools(refusal: ClusterRefusal, hidden: readonly string[]): ClusterRefusal {
  const { flavor, blocked, message } = refusal;
  return {
    ...refusal,
    message: textWithoutPools(message, hidden),
    flavor: flavor !== null && hidden.includes(flavor) ? null : flavor,
    blocked: blocked && blockedWithoutPools(blocked, hidden),
  };
}

function blockedWithoutPools(blocked: BlockedPod, hidden: readonly string[]): BlockedPod {
  const obstacles = blocked.obstacles.map((one) => {
    if (one.kind !== "label" || !hidden.includes(one.flavor ?? "")) return one;
    const { flavor: _, ...rest } = one;
    return rest;
  });
  return { ...blocked, obstacles };
}

export function admissionWithoutPools(admission: PlannedAdmission, hidden: readonly string[]): PlannedAdmission {
  const shown = Object.entries(admission.flavors).filter(([, flavor]) => !hidden.includes(flavor));
  const allocations = admission.allocations.filter(({ pool }) => !hidden.includes(pool));
  return { ...admission, flavors: Object.fromEntries(shown), allocations };
}
