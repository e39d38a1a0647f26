import { isByRole, ofRole } from "../../job/flavor-labels.ts";
import type { TopologyWish } from "../../job/placement/topology-wish.ts";
import { compareRoles, holdingMembers } from "../../job/roles.ts";
import { countable } from "../../quota/allocations.ts";
import { compareDemand } from "../capacity/fit.ts";
import type { Ask, PodClass } from "../model/ask.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import { type MemberCounts, wholeUnits } from "../model/gang.ts";
import type { PlanGang, PlannedFrom } from "../model/plan-gang.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";

/** Members of a gang whose pods a fit cannot tell apart. */
export type AskGroup = {
  readonly podClass: PodClass;
  readonly role: string;
  readonly count: number;
  /** How many of each replica type, in the order of `compareRoles`. */
  readonly roles: readonly { readonly role: string; readonly count: number }[];
  /** What its only replica type wishes for. Omitted: the types wish for nothing of their own. */
  readonly wish?: TopologyWish;
};

/** A number of members of an ask, prepared for fits: pods in classes, those of the largest requests first. */
export type SizedAsk = {
  readonly ask: Ask;
  readonly members: MemberCounts;
  readonly groups: readonly AskGroup[];
  readonly podCount: number;
  /** The whole units that were asked for last, and of which resources. Null: none were. */
  units: { readonly of: readonly string[]; readonly units: Readonly<Record<string, number>> } | null;
};

/** An ask with all members, and with the fewest that its gang accepts. */
export type AskShape = {
  readonly hash: string;
  readonly ask: Ask;
  readonly all: SizedAsk;
  /** Null: no fewer than all. */
  readonly fewest: SizedAsk | null;
  /** Other numbers of members that were asked for. */
  readonly parts: Map<string, SizedAsk>;
  /** The answer of `sharedBetween`, and for which resources. Null: it was not asked. */
  shared: { readonly of: readonly string[]; readonly shared: readonly string[] } | null;
};

export function shapeOf(hash: string, ask: Ask): AskShape {
  const all = sizedAsk(
    ask,
    membersOf(ask, (role) => role.replicas),
  );
  const fewest = sizedAsk(
    ask,
    membersOf(ask, (role) => role.first),
  );
  const isPart = countOf(fewest.members) < countOf(all.members);
  return { hash, ask, all, fewest: isPart ? fewest : null, parts: new Map(), shared: null };
}

/** Those of some resources that pods of several replica types request. */
export function sharedBetween(shape: AskShape, resources: readonly string[]): readonly string[] {
  if (shape.shared?.of === resources) return shape.shared.shared;
  const { roles, podClasses } = shape.ask;
  const shared = resources.filter((resource) => {
    const requesting = roles.filter(({ podClass, replicas }) => {
      return replicas > 0 && (podClasses[podClass]?.requests[resource] ?? 0) > 0;
    });
    return requesting.length > 1;
  });
  shape.shared = { of: resources, shared };
  return shared;
}

/** A part of an ask, which is the same object whenever the same members are asked for. */
export function partOf({ ask, parts }: AskShape, members: MemberCounts): SizedAsk {
  const key = ask.roles.map(({ role }) => members[role] ?? 0).join();
  const part = parts.get(key) ?? sizedAsk(ask, members);
  parts.set(key, part);
  return part;
}

export function sizedAsk(ask: Ask, members: MemberCounts): SizedAsk {
  const merged = new Map<number | string, AskGroup>();
  const roles = [...ask.roles].sort((a, b) => compareRoles(a.role, b.role));
  for (const { role, podClass: at, topology: wish } of roles) {
    const count = members[role] ?? 0;
    const podClass = ask.podClasses[at];
    if (count <= 0 || podClass === undefined) continue;
    const key = wish === undefined ? at : role;
    const known = merged.get(key) ?? { podClass, role, count: 0, roles: [], ...(wish === undefined ? {} : { wish }) };
    merged.set(key, { ...known, count: known.count + count, roles: [...known.roles, { role, count }] });
  }
  const groups = [...merged.values()].sort((a, b) => compareDemand(demandOf(a), demandOf(b)));
  return { ask, members, groups, podCount: groups.reduce((sum, { count }) => sum + count, 0), units: null };
}

/** Whole units of a resource that the members request together, as far as amounts are `countable`. */
export function wholeUnitsOf({ groups }: SizedAsk, resource: string): number {
  return countable(
    groups.reduce((sum, { podClass, count }) => sum + count * wholeUnits(podClass.requests, resource), 0),
  );
}

/** The members as groups of one replica type each, those of the largest requests first. */
export function groupsByRole({ ask, members }: Pick<SizedAsk, "ask" | "members">): readonly AskGroup[] {
  const groups = ask.roles.flatMap(({ role, podClass: at, topology: wish }): readonly AskGroup[] => {
    const [count, podClass] = [members[role] ?? 0, ask.podClasses[at]];
    if (count <= 0 || podClass === undefined) return [];
    return [{ podClass, role, count, roles: [{ role, count }], ...(wish === undefined ? {} : { wish }) }];
  });
  return [...groups].sort((a, b) => compareDemand(demandOf(a), demandOf(b)));
}

type Units = Readonly<Record<string, number>>;

/** The whole units of these resources that the members request. Omits resources that they do not request. */
export function unitsOf(sized: SizedAsk, resources: readonly string[]): Units {
  if (sized.units?.of === resources) return sized.units.units;
  const all = resources.map((resource) => [resource, wholeUnitsOf(sized, resource)] as const);
  const units = Object.fromEntries(all.filter(([, amount]) => amount > 0));
  sized.units = { of: resources, units };
  return units;
}

/** The amounts by pool that the members request of these resources. */
export function amountsOf(sized: SizedAsk, choice: FlavorChoice, resources: readonly string[]): PoolAmounts {
  const byPool = new Map<string, number>();
  const add = (pool: string, amount: number) => {
    if (amount > 0) byPool.set(pool, countable((byPool.get(pool) ?? 0) + amount));
  };
  if (!isByRole(choice)) {
    for (const [resource, amount] of Object.entries(unitsOf(sized, resources))) add(choice[resource] ?? "", amount);
    return byPool;
  }
  for (const { role } of sized.ask.roles) {
    const own = ofRole(choice, role);
    for (const resource of resources) add(own[resource] ?? "", unitsOfRole(sized, role, resource));
  }
  return byPool;
}

/** The whole units of a resource that the members of one replica type request. */
export function unitsOfRole({ ask, members }: SizedAsk, role: string, resource: string): number {
  const { podClass = -1 } = ask.roles.find((one) => one.role === role) ?? {};
  const requests = ask.podClasses[podClass]?.requests ?? {};
  return countable((members[role] ?? 0) * wholeUnits(requests, resource));
}

/** The amounts by pool that the members of a gang hold under one of its admissions. */
export function heldUnder(ask: Ask, admission: PlannedFrom, resources: readonly string[]): PoolAmounts {
  return amountsOf(sizedAsk(ask, holdingMembers(admission)), admission.flavors, resources);
}

/** The amount of a resource that the members request, in thousandths of its unit. */
export function demandFor({ groups }: Pick<SizedAsk, "groups">, resource: string): number {
  return groups.reduce((sum, { podClass, count }) => sum + count * (podClass.requests[resource] ?? 0), 0);
}

function membersOf(ask: Ask, countOfRole: (role: Ask["roles"][number]) => number): MemberCounts {
  return Object.fromEntries(ask.roles.map((role) => [role.role, countOfRole(role)]));
}

function countOf(members: MemberCounts): number {
  return Object.values(members).reduce((sum, count) => sum + count, 0);
}

function demandOf({ podClass, role }: AskGroup) {
  return { requests: podClass.requests, role };
}

/** The shapes of the asks that gangs have, each made once, and how many gangs have each. */
export class AskShapes {
  readonly #all = new Map<string, { readonly shape: AskShape; gangs: number }>();

  /** The shape of a gang that comes. */
  add({ askHash, ask }: Pick<PlanGang, "askHash" | "ask">): AskShape {
    const known = this.#all.get(askHash) ?? { shape: shapeOf(askHash, ask), gangs: 0 };
    known.gangs += 1;
    this.#all.set(askHash, known);
    return known.shape;
  }

  /** Records that a gang has gone. */
  drop({ hash }: Pick<AskShape, "hash">): void {
    const known = this.#all.get(hash);
    if (known === undefined) return;
    known.gangs -= 1;
    if (known.gangs === 0) this.#all.delete(hash);
  }
}
