/**
 * Chooses flavors for gangs whose replica types get different ones: in the order of the types, each one gets a flavor
 * beside what those before it take of the same pools. The choices come in the order of the quotas, that of the first
 * type first.
 */
import { append } from "../../../runtime/lists.ts";
import { CHOICES_MAX, isForTokens } from "../model/flavors.ts";
import type { AskShape, SizedAsk } from "../queues/ask-shape.ts";
import { closingOf, concernsTokens, isNever } from "../usage/quota-blocks.ts";
import type { QuotaBlock, QuotaState } from "../usage/quota-state.ts";
import type { ClassAsk, Flavors } from "./flavors.ts";
import { type FlavorRules, flavorsOfSlots, needOf, possibleIn, type RoleSlot } from "./role-slots.ts";

/** So many flavors of types at most are asked about for one gang. Each costs as much as one of a gang of one type. */
const STEPS_MAX = 8 * CHOICES_MAX;

type Of = Pick<FlavorRules, "excludes" | "inOneCluster"> & {
  readonly sized: SizedAsk;
  readonly quota: QuotaState;
  /** How many resources the gang requests. */
  readonly width: number;
};

/** What the quotas of a queue allow the types of a gang. */
type Walk = {
  /** Possible now, and possible now or as soon as pools have capacity. */
  readonly open: readonly Flavors[];
  readonly inLine: readonly Flavors[];
  /** The levels that keep types from flavors that would be next: while they have no capacity, no more is possible. */
  readonly closedBy: readonly QuotaBlock[];
  readonly lacksTokens: boolean;
  readonly cut: boolean;
};

/** Finds every choice that quotas allow. */
export function walkSlots(gangClass: ClassAsk, slots: readonly RoleSlot[], of: Of): Walk {
  const walk = new SlotWalk(gangClass, slots, of);
  walk.visit(true);
  const { open, inLine, closedBy, lacksTokens, cut } = walk;
  return { open, inLine, closedBy: [...closedBy.values()], lacksTokens, cut };
}

class SlotWalk {
  readonly open: Flavors[] = [];
  readonly inLine: Flavors[] = [];
  /** By level and amount. */
  readonly closedBy = new Map<string, QuotaBlock>();
  lacksTokens = false;
  cut = false;
  readonly #gangClass: ClassAsk;
  readonly #slots: readonly RoleSlot[];
  readonly #of: Of;
  readonly #needs: readonly number[];
  /** What the flavors that are picked take of each pool. */
  readonly #amounts = new Map<string, number>();
  readonly #picked: string[] = [];
  #steps = 0;

  constructor(gangClass: ClassAsk, slots: readonly RoleSlot[], of: Of) {
    this.#gangClass = gangClass;
    this.#slots = slots;
    this.#of = of;
    this.#needs = slots.map((slot) => needOf(of.sized, slot));
  }

  /** Finds the choices that begin with the flavors that are picked. `isOpen`: these are possible now. */
  visit(isOpen: boolean): void {
    const picked = this.#picked;
    if (picked.length === this.#slots.length) {
      const flavors = flavorsOfSlots(this.#gangClass.shape, this.#slots, picked, this.#of.width);
      this.inLine.push(flavors);
      if (isOpen) this.open.push(flavors);
      return;
    }
    const own = this.#needs[picked.length] as number;
    for (const flavor of possibleIn(this.#slots, picked, { ...this.#of, need: own })) {
      this.#steps += 1;
      this.cut ||= this.#steps > STEPS_MAX || this.inLine.length >= CHOICES_MAX;
      if (this.cut) return;
      this.#visitWith(flavor, own, isOpen);
    }
  }

  #visitWith(flavor: string, own: number, isOpen: boolean): void {
    const before = this.#amounts.get(flavor) ?? 0;
    const blocks = own === 0 ? [] : this.#blocksOf(flavor, before + own);
    const closing = closingOf(blocks);
    this.lacksTokens ||= blocks.some(concernsTokens);
    if (closing !== undefined && isOpen) this.closedBy.set(`${closing.level} ${closing.leastNeed}`, closing);
    if (!blocks.every(isForTokens)) return;
    this.#amounts.set(flavor, before + own);
    this.#picked.push(flavor);
    this.visit(isOpen && closing === undefined);
    this.#picked.pop();
    this.#amounts.set(flavor, before);
  }

  #blocksOf(flavor: string, need: number): readonly QuotaBlock[] {
    const { quota } = this.#of;
    const { account, priority } = this.#gangClass;
    if (quota.admits(account, flavor, { need, priority })) return [];
    const { resource = "" } = this.#slots[this.#picked.length] ?? {};
    return quota.blocks(account, flavor, { resource, need, priority });
  }
}

/** Every choice, whether or not quotas allow it. `cut`: these are not all. */
export function mixesOf(
  shape: AskShape,
  slots: readonly RoleSlot[],
  of: Pick<Of, "excludes" | "inOneCluster" | "width">,
): { readonly mixes: readonly Flavors[]; readonly cut: boolean } {
  const { picks, cut } = picksOf(shape.all, slots, of);
  return { mixes: picks.map((picked) => flavorsOfSlots(shape, slots, picked, of.width)), cut };
}

type Steps = { readonly mayTake: (picked: readonly string[]) => boolean; readonly stepsMax: number };

const EVERY_STEP: Steps = { mayTake: () => true, stepsMax: Number.POSITIVE_INFINITY };

/**
 * The flavors of the slots, for as many choices as are tried. `mayTake` tells whether choices may begin with some
 * flavors, and is asked so often at most. `cut`: there are more.
 */
function picksOf(
  sized: SizedAsk,
  slots: readonly RoleSlot[],
  of: Pick<Of, "excludes" | "inOneCluster">,
  { mayTake, stepsMax }: Steps = EVERY_STEP,
): { readonly picks: readonly (readonly string[])[]; readonly cut: boolean } {
  const picks: (readonly string[])[] = [];
  let steps = 0;
  let cut = false;
  const visit = (picked: readonly string[]) => {
    const slot = slots[picked.length];
    if (slot === undefined) {
      picks.push(picked);
      return;
    }
    for (const flavor of possibleIn(slots, picked, { ...of, need: needOf(sized, slot) })) {
      steps += 1;
      cut ||= steps > stepsMax || picks.length >= CHOICES_MAX;
      if (cut) return;
      const more = [...picked, flavor];
      if (mayTake(more)) visit(more);
    }
  };
  visit([]);
  return { picks, cut };
}

/**
 * The levels that are in the way of the choices that may be possible once others use less. If there is no such choice,
 * those that no choice gets past. Each block names the types that would use its pool.
 */
export function blocksOfMixes(gangClass: ClassAsk, slots: readonly RoleSlot[], of: Of): readonly QuotaBlock[] {
  const never: QuotaBlock[] = [];
  const mayTake = (picked: readonly string[]) => {
    const found = blocksOfPool(gangClass, slots, { ...of, picked, pool: picked.at(-1) ?? "" }).filter(isNever);
    append(never, found);
    return found.length === 0;
  };
  const hopeful = picksOf(of.sized, slots, of, { mayTake, stepsMax: STEPS_MAX });
  // After a search that was cut, some choice that was not looked at may be possible.
  if (hopeful.picks.length === 0 && !hopeful.cut) return leastByLevel(never);
  const { picks } = hopeful.picks.length > 0 ? hopeful : picksOf(of.sized, slots, of);
  const blocks = picks.flatMap((picked) => {
    return [...new Set(picked)].flatMap((pool) => blocksOfPool(gangClass, slots, { ...of, picked, pool }));
  });
  return [...new Map(blocks.map((block) => [`${block.level} ${block.need} ${block.reason}`, block])).values()];
}

/** The levels that keep a gang from what the flavors that are picked take of one pool, with the types that take it. */
function blocksOfPool(
  { shape, account, priority }: ClassAsk,
  slots: readonly RoleSlot[],
  of: Of & { readonly picked: readonly string[]; readonly pool: string },
): readonly QuotaBlock[] {
  const { picked, pool } = of;
  const own = slots.filter((_, at) => picked[at] === pool);
  const need = own.reduce((sum, slot) => sum + needOf(of.sized, slot), 0);
  const [{ resource } = { resource: "" }] = own;
  const roles = [...new Set(own.map(({ roleAt }) => shape.ask.roles[roleAt]?.role ?? ""))];
  return of.quota.blocks(account, pool, { resource, need, priority }).map((block) => ({ ...block, roles }));
}

/** Of the blocks of each level, the one for the least amount. */
function leastByLevel(blocks: readonly QuotaBlock[]): readonly QuotaBlock[] {
  const least = new Map<number, QuotaBlock>();
  for (const block of blocks) {
    const known = least.get(block.level);
    if (known === undefined || block.need < known.need) least.set(block.level, block);
  }
  return [...least.values()];
}
