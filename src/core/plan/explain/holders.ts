import { compareText } from "../../../runtime/compare-text.ts";
import { holdingMembers } from "../../job/roles.ts";
import type { Scope } from "../../quota/counters.ts";
import { scopesToRead } from "../../quota/decide.ts";
import type { LimitBook } from "../../quota/limits.ts";
import { scopeKey } from "../../quota/scopes.ts";
import type { Fleet } from "../fit/fleet.ts";
import { amountsOfMembers } from "../model/flavors.ts";
import { memberGroups } from "../model/gang.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import type { HeldByCaller } from "../model/snapshot.ts";
import type { Holding } from "../queues/records.ts";

const HOLDERS_SHOWN = 5;

/** So many scopes are answered from the list of all holdings. For more, it is worth to sort the list by scope. */
const SCANS_MAX = 32;

/** Those who hold tokens but are no gangs of the state, and what a round has just given to gangs. */
export type OtherHolders = {
  readonly callers: readonly HeldByCaller[];
  readonly admissions: readonly PlannedAdmission[];
};

/**
 * The holders of each pool, for messages that say why there is no capacity. Lists nothing before the first question.
 */
export class Holders {
  readonly #fleet: Pick<Fleet, "quota" | "queues" | "allHolds">;
  readonly #others: OtherHolders;
  /** By pool. Null: `largest` was not called yet. */
  #byPool: ReadonlyMap<string, readonly Holding[]> | null = null;
  /** Null: only a few scopes were asked for. */
  #byScope: ReadonlyMap<string, readonly Holding[]> | null = null;
  readonly #largest = new Map<string, readonly string[]>();

  constructor(fleet: Pick<Fleet, "quota" | "queues" | "allHolds">, others: OtherHolders) {
    this.#fleet = fleet;
    this.#others = others;
  }

  /** The holders of most at a scope, at most 5. For a queue, also those of the queues below it. */
  largest(scope: Scope): readonly string[] {
    const key = scopeKey(scope);
    const known = this.#largest.get(key);
    if (known !== undefined) return known;
    const sums = new Map<string, number>();
    for (const { holder, amount } of this.#holdingsAt(scope, key)) {
      sums.set(holder, (sums.get(holder) ?? 0) + amount);
    }
    const largestFirst = [...sums].sort(([a, mine], [b, theirs]) => theirs - mine || compareText(a, b));
    const names = largestFirst.slice(0, HOLDERS_SHOWN).map(([holder]) => holder);
    this.#largest.set(key, names);
    return names;
  }

  #holdingsAt(scope: Scope, key: string): readonly Holding[] {
    const { limits } = this.#fleet.quota;
    this.#byPool ??= Map.groupBy(this.#all(), ({ pool }) => pool);
    if (this.#largest.size < SCANS_MAX) {
      const isCounted = countedAt(scope, limits);
      return (this.#byPool.get(scope.pool) ?? []).filter(isCounted);
    }
    this.#byScope ??= byScope([...this.#byPool.values()].flat(), limits);
    return this.#byScope.get(key) ?? [];
  }

  *#all(): Iterable<Holding> {
    const { gangs, holdings } = this.#fleet.queues;
    for (const { facts } of gangs.values()) {
      if (facts.admissions.length === 0) continue;
      const held = holdings.get(facts) ?? heldBy(facts);
      holdings.set(facts, held);
      yield* held;
    }
    yield* this.#held();
    for (const { allocations, jobUid } of this.#others.admissions) {
      const gang = gangs.get(jobUid)?.facts;
      for (const allocation of allocations) if (gang !== undefined) yield { ...allocation, holder: nameOf(gang) };
    }
    for (const held of this.#others.callers) yield { ...held, holder: `caller ${held.caller}` };
  }

  /** What waiting gangs hold. Leaves out those that the round admits: their admissions include it. */
  *#held(): Iterable<Holding> {
    const admitted = new Set(this.#others.admissions.map(({ jobUid }) => jobUid));
    for (const { gang, amounts } of this.#fleet.allHolds()) {
      const { uid, project, namespace, queue } = gang.facts;
      if (admitted.has(uid)) continue;
      const of = { project, namespace, queue, holder: nameOf(gang.facts) };
      for (const [pool, amount] of Object.entries(amounts)) yield { ...of, pool, amount };
    }
  }
}

function nameOf({ namespace, name }: PlanGang): string {
  return `${namespace}/${name}`;
}

/** The tokens of a gang's admissions that were not released. */
function heldBy(gang: PlanGang): readonly Holding[] {
  const { project, namespace, queue } = gang;
  const holder = nameOf(gang);
  return gang.admissions.flatMap((admission) => {
    if (admission.tokensReleasedMs !== null) return [];
    const groups = memberGroups(gang.ask, holdingMembers(admission));
    return [...amountsOfMembers(groups, admission.flavors)].map(([pool, amount]) => {
      return { pool, project, namespace, queue, holder, amount };
    });
  });
}

/** Tells of holdings of a scope's pool whether they count at the scope. */
function countedAt(scope: Scope, limits: LimitBook): (holding: Holding) => boolean {
  switch (scope.kind) {
    case "pool":
      return () => true;
    case "project":
      return ({ project }) => project === scope.project;
    case "namespace":
      return ({ project, namespace }) => project === scope.project && namespace === scope.namespace;
    case "queue": {
      const key = scopeKey(scope);
      const below = new Map<string | null, boolean>();
      return (holding) => {
        const known = below.get(holding.queue);
        const isBelow = known ?? scopesToRead(holding, limits).some((one) => scopeKey(one) === key);
        below.set(holding.queue, isBelow);
        return isBelow;
      };
    }
  }
}

function byScope(holdings: Iterable<Holding>, limits: LimitBook): Map<string, Holding[]> {
  const sorted = new Map<string, Holding[]>();
  for (const holding of holdings) {
    for (const key of scopesToRead(holding, limits).map(scopeKey)) {
      const known = sorted.get(key);
      if (known === undefined) sorted.set(key, [holding]);
      else known.push(holding);
    }
  }
  return sorted;
}
