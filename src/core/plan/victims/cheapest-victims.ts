/** Serves gangs that lack only nodes: of the gangs that may be preempted for them, those whose end costs least. */
import { append, maxOf } from "../../../runtime/lists.ts";
import { rootOf } from "../usage/branches.ts";
import { candidatesOf, leavesFor } from "./candidates.ts";
import { candidateOrder } from "./order.ts";
import type { Preemptor, RunningGang, Victim, VictimSearch } from "./running-gang.ts";
import { victimsFor } from "./victims.ts";

/** Below every priority. */
const LOWEST = Number.MIN_SAFE_INTEGER;
/** Of so many candidates at most every set is tried: there are 4,096. */
const CANDIDATES_MAX = 12;

/**
 * The highest priority, the number of gangs, and the tokens that they use, each times the milliseconds of its run. The
 * growth of elastic gangs costs nothing.
 */
type Cost = readonly [priority: number, gangs: number, lost: number];

/**
 * The cheapest of the sets of gangs that Kueue's rules would take if there were no others. With more than
 * `CANDIDATES_MAX` candidates: those that the rules have `found` among all of them.
 */
export function cheapestVictims(
  search: VictimSearch,
  preemptor: Preemptor,
  { found, nowMs }: { readonly found: readonly Victim[]; readonly nowMs: number },
): readonly Victim[] {
  if (found.length === 0) return found;
  const candidates = fewCandidates(search, preemptor);
  return candidates === null ? found : cheapestOf(search, preemptor, { candidates, found, nowMs });
}

function cheapestOf(
  search: VictimSearch,
  preemptor: Preemptor,
  of: { readonly candidates: readonly RunningGang[]; readonly found: readonly Victim[]; readonly nowMs: number },
): readonly Victim[] {
  const { candidates, found, nowMs } = of;
  const known = costOf(gangsIn(found), nowMs);
  const sets = setsOf(candidates, known)
    .map((gangs) => ({ gangs, cost: costOf(gangs, nowMs) }))
    .filter(({ cost }) => compareCosts(cost, known) < 0)
    .sort((a, b) => compareCosts(a.cost, b.cost));
  const tooFew = new Set<number>();
  for (const { gangs, cost } of sets) {
    const [priority] = cost;
    if (tooFew.has(priority)) continue;
    if (!fitsWithout(search, gangs)) {
      const most = candidates.filter((gang) => gang.priority <= priority);
      if (!fitsWithout(search, most)) tooFew.add(priority);
      continue;
    }
    const victims = victimsFor({ ...search, mayTake: (gang) => gangs.includes(gang) }, preemptor);
    if (victims.length > 0) return victims;
  }
  return found;
}

/** True if the first victims cost less than the others. */
export function isCheaper(one: readonly Victim[], other: readonly Victim[], nowMs: number): boolean {
  return compareCosts(costOf(gangsIn(one), nowMs), costOf(gangsIn(other), nowMs)) < 0;
}

/** All candidates. Null: there are more than `CANDIDATES_MAX`. */
function fewCandidates(search: VictimSearch, preemptor: Preemptor): readonly RunningGang[] | null {
  const preemptorLeaf = search.quota.branches.leaf(preemptor.account.queue);
  if (preemptorLeaf === null) return [];
  const all: RunningGang[] = [];
  for (const leaf of leavesFor(search, rootOf(preemptorLeaf), preemptor.needed)) {
    append(all, candidatesOf(search, preemptor, { leaf, preemptorLeaf }));
    if (all.length > CANDIDATES_MAX) return null;
  }
  return all.sort(candidateOrder(preemptor.account.queue, search.prefer));
}

/** All sets of at least one gang, but for those that surely cost more than a known one. */
function setsOf(gangs: readonly RunningGang[], known: Cost): readonly (readonly RunningGang[])[] {
  let sets: readonly PartialSet[] = [{ gangs: [], priority: LOWEST, count: 0 }];
  for (const gang of gangs) {
    const larger = sets.map((set) => withGang(set, gang));
    // No gang that comes to a set makes it cheaper.
    sets = [...sets, ...larger.filter(({ priority, count }) => compareCosts([priority, count, known[2]], known) <= 0)];
  }
  return sets.slice(1).map((set) => set.gangs);
}

/** Gangs, the highest priority among them, and their number, both without growth. */
type PartialSet = { readonly gangs: readonly RunningGang[]; readonly priority: number; readonly count: number };

function withGang({ gangs, priority, count }: PartialSet, gang: RunningGang): PartialSet {
  const all = [...gangs, gang];
  if (gang.isGrowth === true) return { gangs: all, priority, count };
  return { gangs: all, priority: Math.max(priority, gang.priority), count: count + 1 };
}

/** True if nodes have the capacity. What quotas say, the rules decide. */
function fitsWithout(search: VictimSearch, gangs: readonly RunningGang[]): boolean {
  return search.fitsWithout?.(gangs.map((gang) => ({ gang, reason: "InClusterQueue" }))) ?? true;
}

function gangsIn(victims: readonly Victim[]): readonly RunningGang[] {
  return victims.map(({ gang }) => gang);
}

function costOf(all: readonly RunningGang[], nowMs: number): Cost {
  const gangs = all.filter(({ isGrowth }) => isGrowth !== true);
  const lost = gangs.reduce((sum, { uses, admitTimeMs }) => {
    const amount = [...uses.values()].reduce((all, one) => all + one, 0);
    return sum + amount * (nowMs - admitTimeMs);
  }, 0);
  return [
    maxOf(
      gangs.map(({ priority }) => priority),
      LOWEST,
    ),
    gangs.length,
    lost,
  ];
}

function compareCosts(a: Cost, b: Cost): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
