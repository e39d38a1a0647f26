/**
 * Victims that can be taken one after another, each allowed at that moment, and none of which can be spared so that the
 * rest still fits and is legal. A gang of the preemptor's own queue that would fit again at once counts as one that
 * stays.
 */
import { maxOf } from "../../../runtime/lists.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import type { Rule } from "./rule.ts";
import {
  dischargeGangs,
  goesWithMinimum,
  hasGrowthIn,
  type RunningGang,
  type Victim,
  whileGone,
} from "./running-gang.ts";

/** Of so many gangs every legal set is looked at. */
const EXACT_GANGS_MAX = 8;
/** So many candidates they may be: an elastic gang is one with its growth, and one without. */
export const FEW_CANDIDATES_MAX = 2 * EXACT_GANGS_MAX;
/** And so many sets at most, for some 10 ms: an elastic gang may give up its growth alone, which makes more of them. */
const EXACT_SETS_MAX = 1_024;
/** A second pass looks at so many gangs, the first ones: its time grows with the third power of their number. */
const SECOND_PASS_MAX = 48;

type Of = { readonly quota: QuotaState; readonly rule: Rule };

/** Some gangs in an order in which each may be taken. Null: none was found. The state counts all of them. */
export function inLegalOrder(of: Of, gangs: readonly RunningGang[]): readonly Victim[] | null {
  if (gangs.some((gang) => !goesWithGrowth(of.rule, gang, gangs))) return null;
  for (const order of [ownFirst(of.rule, gangs), gangs]) {
    const { mark } = of.quota;
    const taken = takeAllowed(of, order, () => false);
    of.quota.undo(mark);
    if (taken.length === gangs.length) return taken;
  }
  return setsOf(gangs) <= EXACT_SETS_MAX ? exactOrder(of, gangs) : null;
}

/**
 * The best legal set for a preemptor. Null: there is none, or there are too many gangs and a second pass finds none.
 */
export function legalVictims(of: Of): readonly Victim[] | null {
  const { candidates } = of.rule;
  if (candidates.length === 0 || !fitsWithoutAll(of)) return null;
  const gangs = new Set(candidates.map(({ uid }) => uid)).size;
  const isFew = gangs <= EXACT_GANGS_MAX && setsOf(candidates) <= EXACT_SETS_MAX;
  return isFew ? exactVictims(of) : secondPass(of);
}

/** True if the preemptor fits once every candidate is gone, whether or not all of them may go. */
function fitsWithoutAll({ quota, rule }: Of): boolean {
  const all = rule.candidates.map((gang): Victim => ({ gang, reason: "InClusterQueue" }));
  return whileGone(quota, rule.candidates, () => rule.fits(all));
}

/** How many sets there are of some gangs. The growth of an elastic gang goes before the gang. */
function setsOf(gangs: readonly RunningGang[]): number {
  const parts = Map.groupBy(gangs, ({ uid }) => uid);
  return [...parts.values()].reduce((sets, { length }) => sets * (length + 1), 1);
}

/** Those of the own queue before all others, because the preemptor's share only falls with them. */
function ownFirst(rule: Rule, gangs: readonly RunningGang[]): readonly RunningGang[] {
  return [...gangs.filter(rule.isOwn), ...gangs.filter((gang) => !rule.isOwn(gang))];
}

/** False for an elastic gang that would go while its growth stays. */
function goesWithGrowth({ candidates }: Rule, gang: RunningGang, gone: readonly RunningGang[]): boolean {
  return !hasGrowthIn(gang, candidates) || hasGrowthIn(gang, gone);
}

/** Takes gangs that are allowed, each as soon as it is, until they are enough. The state counts them no more. */
function takeAllowed(
  { quota, rule }: Of,
  gangs: readonly RunningGang[],
  areEnough: (taken: readonly Victim[]) => boolean,
): Victim[] {
  const taken: Victim[] = [];
  const left = new Set(gangs);
  for (let before = -1; before < taken.length; ) {
    before = taken.length;
    for (const gang of left) {
      const reason = hasGrowthIn(gang, left) ? null : rule.reasonFor(gang);
      if (reason === null) continue;
      dischargeGangs(quota, [gang]);
      left.delete(gang);
      taken.push({ gang, reason });
      if (areEnough(taken)) return taken;
    }
  }
  return taken;
}

/** What comes of a set that was reached: nothing, no larger set is looked at, or the walk ends. */
type Next = "goOn" | "enough" | "stop";

/** Visits each set of gangs that can be taken one after another, once. */
class SetWalk {
  readonly #of: Of;
  readonly #gangs: readonly RunningGang[];
  readonly #visit: (taken: readonly Victim[]) => Next;
  readonly #seen = new Set<number>();
  readonly #taken: Victim[] = [];

  /** `visit` sees a set while the state counts none of it. */
  constructor(of: Of, gangs: readonly RunningGang[], visit: (taken: readonly Victim[]) => Next) {
    this.#of = of;
    this.#gangs = gangs;
    this.#visit = visit;
  }

  /** Goes on from a set, which has a bit for each gang. */
  from(set: number): Next {
    for (const [at, gang] of this.#gangs.entries()) {
      const larger = set | (1 << at);
      if (larger === set || this.#seen.has(larger)) continue;
      const reason = this.#reasonFor(gang, set);
      if (reason === null) continue;
      this.#seen.add(larger);
      if (this.#take({ gang, reason }, larger) === "stop") return "stop";
    }
    return "goOn";
  }

  #reasonFor(gang: RunningGang, set: number): Victim["reason"] | null {
    const left = this.#gangs.filter((_, at) => (set & (1 << at)) === 0);
    return hasGrowthIn(gang, left) ? null : this.#of.rule.reasonFor(gang);
  }

  #take(victim: Victim, set: number): Next {
    const { quota } = this.#of;
    const { mark } = quota;
    dischargeGangs(quota, [victim.gang]);
    this.#taken.push(victim);
    const found = this.#visit(this.#taken);
    const next = found === "goOn" ? this.from(set) : found;
    this.#taken.pop();
    quota.undo(mark);
    return next;
  }
}

function exactOrder(of: Of, gangs: readonly RunningGang[]): readonly Victim[] | null {
  let found: readonly Victim[] | null = null;
  const walk = new SetWalk(of, gangs, (taken) => {
    if (taken.length < gangs.length) return "goOn";
    found = [...taken];
    return "stop";
  });
  walk.from(0);
  return found;
}

function exactVictims(of: Of): readonly Victim[] | null {
  const { candidates } = of.rule;
  let best: readonly Victim[] | null = null;
  const walk = new SetWalk(of, candidates, (taken) => {
    if (!isEnough(of, taken)) return "goOn";
    // A larger set has a victim that can be spared.
    if (!isAnySpared(of, taken) && (best === null || compareSets(taken, best, candidates) < 0)) best = [...taken];
    return "enough";
  });
  walk.from(0);
  return best;
}

/** True if a preemptor fits now that these are gone, and keeps its place. */
function isEnough({ rule }: Of, gone: readonly Victim[]): boolean {
  return rule.fits(gone) && (rule.lasts?.(gone) ?? true);
}

/** True if a victim of the own queue would fit again at once. The state counts no victim. */
function isAnySpared({ quota, rule }: Of, victims: readonly Victim[]): boolean {
  return victims.some(({ gang }) => {
    return rule.isOwn(gang) && !goesWithMinimum(gang, victims) && fitsWith({ quota, rule }, victims, gang);
  });
}

/** True if the preemptor fits although one of its victims stays. The state counts no victim. */
function fitsWith({ quota, rule }: Of, victims: readonly Victim[], stays: RunningGang): boolean {
  const { mark } = quota;
  for (const [pool, amount] of stays.uses) quota.charge(stays.account, pool, amount);
  const fits = rule.fits(victims.filter(({ gang }) => gang !== stays));
  quota.undo(mark);
  return fits;
}

/** Orders first the set of lower priorities, of fewer gangs, of less growth, and of the first candidates. */
function compareSets(a: readonly Victim[], b: readonly Victim[], candidates: readonly RunningGang[]): number {
  const costOf = (set: readonly Victim[]) => {
    const whole = set.filter(({ gang }) => gang.isGrowth !== true);
    const places = set.map(({ gang }) => candidates.indexOf(gang)).sort((one, other) => one - other);
    const highest = maxOf(
      whole.map(({ gang }) => gang.priority),
      Number.MIN_SAFE_INTEGER,
    );
    return [highest, whole.length, set.length, ...places];
  };
  const [one, other] = [costOf(a), costOf(b)];
  const at = one.findIndex((cost, place) => cost !== other[place]);
  return at < 0 ? 0 : (one[at] as number) - (other[at] as number);
}

/** Asks those again that were not allowed, once others are taken, and puts back whoever is not needed after all. */
function secondPass(of: Of): readonly Victim[] | null {
  const { quota, rule } = of;
  const { mark } = quota;
  const first = rule.candidates.slice(0, SECOND_PASS_MAX);
  const taken = takeAllowed(of, ownFirst(rule, first), (some) => isEnough(of, some));
  const areEnough = isEnough(of, taken);
  quota.undo(mark);
  return areEnough ? spare(of, taken) : null;
}

/** A legal set without the victims that can be spared. Null: one of the own queue would fit again at once. */
function spare(of: Of, taken: readonly Victim[]): readonly Victim[] | null {
  let victims = taken;
  for (let at = victims.length - 1; at >= 0; at--) {
    const rest = victims.filter((_, place) => place !== at);
    const fits = whileGone(of.quota, gangsOf(rest), () => isEnough(of, rest));
    const ordered = fits ? inLegalOrder(of, gangsOf(rest)) : null;
    if (ordered === null) continue;
    victims = ordered;
    at = victims.length;
  }
  const isFinal = whileGone(of.quota, gangsOf(victims), () => !isAnySpared(of, victims));
  return isFinal ? victims : null;
}

function gangsOf(victims: readonly Victim[]): readonly RunningGang[] {
  return victims.map(({ gang }) => gang);
}
