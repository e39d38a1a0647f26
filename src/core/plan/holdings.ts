import { compareText } from "../../runtime/compare-text.ts";
import type { Scope } from "../quota/counters.ts";
import { type ChargedAllocation, scopesToRead } from "../quota/decide.ts";
import type { LimitBook } from "../quota/limits.ts";
import { scopeKey } from "../quota/scopes.ts";
import { memberGroups, wholeUnits } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/** An amount of a pool and its holder: a job as `namespace/name`, a caller as `caller name`. */
type Holding = ChargedAllocation & { readonly holder: string };

const HOLDERS_SHOWN = 5;

/** The holders of each pool, for messages that say why there is no room. Sorts nothing before the first question. */
export class Holdings {
  readonly #limits: LimitBook;
  readonly #snapshot: PlanSnapshot;
  readonly #added: Holding[] = [];
  /** Null: `largest` was not called yet. */
  #byScope: Map<string, Holding[]> | null = null;
  readonly #largest = new Map<string, readonly string[]>();

  constructor(snapshot: PlanSnapshot, limits: LimitBook) {
    this.#snapshot = snapshot;
    this.#limits = limits;
  }

  add(holding: Holding): void {
    this.#added.push(holding);
    if (this.#byScope === null) return;
    for (const key of this.#keysOf(holding)) {
      put(this.#byScope, key, holding);
      this.#largest.delete(key);
    }
  }

  /** The holders of most at a scope, at most 5. For a queue, also those of the queues below it. */
  largest(scope: Scope): readonly string[] {
    this.#byScope ??= this.#sort();
    const key = scopeKey(scope);
    const known = this.#largest.get(key);
    if (known !== undefined) return known;
    const sums = new Map<string, number>();
    for (const { holder, amount } of this.#byScope.get(key) ?? []) {
      sums.set(holder, (sums.get(holder) ?? 0) + amount);
    }
    const largestFirst = [...sums].sort(([a, mine], [b, theirs]) => theirs - mine || compareText(a, b));
    const names = largestFirst.slice(0, HOLDERS_SHOWN).map(([holder]) => holder);
    this.#largest.set(key, names);
    return names;
  }

  #sort(): Map<string, Holding[]> {
    const { admitted, waiting, callers } = this.#snapshot;
    const byCallers = callers.map((held) => ({ ...held, holder: `caller ${held.caller}` }));
    const byScope = new Map<string, Holding[]>();
    for (const holding of [...[...admitted, ...waiting].flatMap(heldBy), ...byCallers, ...this.#added]) {
      for (const key of this.#keysOf(holding)) put(byScope, key, holding);
    }
    return byScope;
  }

  #keysOf(holding: Holding): readonly string[] {
    return scopesToRead(holding, this.#limits).map(scopeKey);
  }
}

function heldBy(gang: PlanGang): readonly Holding[] {
  const { project, namespace, queue } = gang;
  const holder = `${namespace}/${gang.name}`;
  return gang.admissions.flatMap((admission) => {
    if (admission.tokensReleasedMs !== null) return [];
    const groups = memberGroups(gang.ask, admission.members);
    return Object.entries(admission.flavors)
      .map(([resource, pool]) => ({ pool, project, namespace, queue, holder, amount: wholeUnits(groups, resource) }))
      .filter(({ amount }) => amount > 0);
  });
}

function put(map: Map<string, Holding[]>, key: string, holding: Holding): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [holding]);
  else known.push(holding);
}
