/**
 * Flavors of gangs whose replica types get different ones, by Kueue's rules: in the order of the types, each one gets
 * the best flavor beside what those before it take of the same pools.
 */
import { flavorsKey } from "../fit/flavors.ts";
import { type FlavorRules, flavorsOfSlots, needOf, possibleIn, type RoleSlot, withOthers } from "../fit/role-slots.ts";
import { CHOICES_MAX } from "../model/flavors.ts";
import type { QueuePolicy } from "../model/queue-policy.ts";
import type { AskShape, SizedAsk } from "../queues/ask-shape.ts";
import {
  combined,
  inOrder,
  joined,
  NOTHING,
  type OfResource,
  type RankedChoice,
  type RankedPick,
} from "./ranked-order.ts";

/** So many amounts of pools at most are asked about for one gang, since others may have to be preempted for each. */
const ASKED_MAX = 2 * CHOICES_MAX;
/** So many beginnings of choices at most are gone on with. */
const STEPS_MAX = 8 * CHOICES_MAX;

type Of = Pick<FlavorRules, "excludes" | "inOneCluster"> & {
  readonly shape: AskShape;
  readonly sized: SizedAsk;
  readonly policy: QueuePolicy;
  /** How many resources the gang requests. */
  readonly width: number;
  /** How a gang gets so much of a flavor. Null: it does not. */
  readonly choiceOf: (flavor: string, need: number) => RankedPick | null;
  /** The choices in which all types get the same flavors. */
  readonly together: () => Iterable<RankedChoice>;
};

/**
 * The first choice is Kueue's. The others come in the order of one type: those that end the search, then the better
 * before the worse. If there are too many, the last ones are those in which all types get the same.
 */
export function* rankedByRole(slots: readonly RoleSlot[], of: Of): Generator<RankedChoice> {
  const { shape, policy, width } = of;
  const search = new Search(slots, of);
  const found = search.from([], NOTHING, new Map());
  const choiceOf = (pick: RankedPick) => ({ ...pick, flavors: flavorsOfSlots(shape, slots, pick.flavors, width) });
  const keys = new Set<string>();
  const first = found.next();
  function* inTurn(): Generator<RankedPick> {
    if (first.done === true) return;
    yield first.value;
    yield* inOrder(found, policy);
  }
  for (const pick of inTurn()) {
    const choice = choiceOf(pick);
    keys.add(flavorsKey(choice.flavors));
    yield choice;
  }
  if (search.isCut) for (const choice of of.together()) if (!keys.has(flavorsKey(choice.flavors))) yield choice;
}

class Search {
  readonly #slots: readonly RoleSlot[];
  readonly #of: Of;
  /** By flavor and amount. */
  readonly #known = new Map<string, RankedPick | null>();
  #found = 0;
  #steps = 0;
  /** True if choices were left out, because there are too many. */
  isCut = false;

  constructor(slots: readonly RoleSlot[], of: Of) {
    this.#slots = slots;
    this.#of = of;
  }

  /** The choices that begin with some flavors, which take these amounts of pools. */
  *from(
    picked: readonly string[],
    before: RankedPick,
    amounts: ReadonlyMap<string, number>,
  ): Generator<RankedPick, void, undefined> {
    const slots = this.#slots.filter(({ roleAt }, at) => at >= picked.length && roleAt === this.#roleAt(picked.length));
    if (slots.length === 0) {
      this.#found += 1;
      this.isCut ||= this.#found > CHOICES_MAX;
      if (!this.isCut) yield before;
      return;
    }
    for (const pick of this.#choicesOf(slots, picked, amounts)) {
      this.#steps += 1;
      this.isCut ||= this.#steps > STEPS_MAX;
      if (this.isCut) return;
      const taken = new Map(amounts);
      for (const [at, slot] of slots.entries()) {
        const flavor = pick.flavors[at] ?? "";
        taken.set(flavor, (taken.get(flavor) ?? 0) + needOf(this.#of.sized, slot));
      }
      yield* this.from([...picked, ...pick.flavors], joined(before, pick), taken);
    }
  }

  #roleAt(at: number): number | undefined {
    return this.#slots[at]?.roleAt;
  }

  /** The flavors of one replica type, the best first. */
  #choicesOf(
    slots: readonly RoleSlot[],
    picked: readonly string[],
    amounts: ReadonlyMap<string, number>,
  ): Iterable<RankedPick> {
    const { sized, excludes, policy } = this.#of;
    const choices = slots.map((slot): OfResource => {
      const need = needOf(sized, slot);
      const flavors = need === 0 ? this.#withoutMembers(slot, picked) : withOthers(slot.flavors, picked, this.#of);
      return { resource: slot.resource, flavors, choices: this.#ranked(flavors, need, amounts) };
    });
    const [only] = choices;
    if (only !== undefined && choices.length === 1) return inOrder(only.choices, policy);
    return combined(choices, { policy, areApart: (one, other) => excludes(one.flavor, other.flavor) });
  }

  #withoutMembers(slot: RoleSlot, picked: readonly string[]): readonly string[] {
    return possibleIn([...this.#slots.slice(0, picked.length), slot], picked, {
      ...this.#of,
      need: 0,
      excludes: () => false,
    });
  }

  *#ranked(flavors: readonly string[], need: number, amounts: ReadonlyMap<string, number>): Generator<RankedPick> {
    for (const flavor of flavors) {
      const choice = this.#choiceOf(flavor, need + (amounts.get(flavor) ?? 0));
      if (choice !== null) yield choice;
    }
  }

  #choiceOf(flavor: string, need: number): RankedPick | null {
    const key = `${need} ${flavor}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.isCut ||= this.#known.size >= ASKED_MAX;
    if (this.isCut) return null;
    const made = this.#of.choiceOf(flavor, need);
    this.#known.set(key, made);
    return made;
  }
}
