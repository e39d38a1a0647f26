import { choicesOf } from "../fit/flavor-choices.ts";
import { choiceOf, type Flavors } from "../fit/flavors.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlannedVictim } from "../model/preemption.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import { type AskShape, amountsOf, type SizedAsk } from "../queues/ask-shape.ts";
import { compareGangs } from "../queues/order.ts";
import type { GangClass, GangQueue, GangRecord, RunningAdmission } from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { type Branch, rootOf } from "../usage/branches.ts";
import type { Preemptor, RunningGang, VictimSearch } from "../victims/running-gang.ts";
import type { WaitingGangs } from "../victims/waiting-gangs.ts";

/** The most kinds of waiting gangs of a queue that a search looks at. It takes the first ones. */
const KINDS_MAX = 64;

type Asking = { readonly gangClass: GangClass; readonly gang: GangRecord; readonly requested: PoolAmounts };

/** The gangs that may have others preempted, as searches for victims see them, and what waits beside them. */
export class Preemptors {
  readonly #fleet: Fleet;
  readonly #given: () => number;
  readonly #kinds = new Map<GangQueue, { readonly version: number; readonly kinds: readonly Kind[] }>();

  /** `given`: a number that rises whenever the round gives a waiting gang something. */
  constructor(fleet: Fleet, given: () => number) {
    this.#fleet = fleet;
    this.#given = given;
  }

  /**
   * True for a gang that was preempted, or lost its place as a nominee, until a gang of its tree is submitted, resized
   * or ends, or a quota or policy changes. Otherwise it could take back at once what it gave, and gangs could take
   * turns for ever. Notes that the search depends on the tree, so that a change of the tree repeats the search.
   */
  #noteIfPreempted(gang: GangRecord): boolean {
    const root = this.#preemptedIn(gang);
    if (root === null) return false;
    this.#fleet.queues.digests.noteUsed(root, this.#digestOf(root));
    return true;
  }

  /** The root of the tree that a gang was preempted in, if the tree has not changed since. Null: none. */
  #preemptedIn({ facts, gangQueue }: GangRecord): Branch | null {
    if (facts.preemptedIn === undefined) return null;
    const leaf = this.#fleet.quota.branches.leaf(gangQueue.name);
    const root = leaf === null ? null : rootOf(leaf);
    return root !== null && this.#digestOf(root) === facts.preemptedIn ? root : null;
  }

  /**
   * Reports a gang that may preempt by its final share alone, although its tree would let it preempt by its initial
   * share. Notes, as every search here, that this depends on the tree.
   */
  refusalOf(gang: GangRecord): { readonly byFinalShareAlone?: true } {
    const leaf = this.#noteIfPreempted(gang) ? this.#fleet.quota.branches.leaf(gang.gangQueue.name) : null;
    const strategies = leaf === null ? null : rootOf(leaf).policy.fairSharing;
    const isByInitial = strategies?.length === 0 || strategies?.includes("LESS_THAN_INITIAL_SHARE") === true;
    return isByInitial ? { byFinalShareAlone: true } : {};
  }

  /** A victim with the digest of its tree, if it is preempted whole. */
  inTree(victim: PlannedVictim): PlannedVictim {
    const treeDigest = victim.keeps === undefined ? this.treeDigestOf(victim.queue) : undefined;
    return treeDigest === undefined ? victim : { ...victim, treeDigest };
  }

  /** The digest of the tree that a queue is in. Undefined: it is in none. */
  treeDigestOf(queue = ""): string | undefined {
    const leaf = this.#fleet.quota.branches.leaf(queue);
    return leaf === null ? undefined : this.#digestOf(rootOf(leaf));
  }

  #digestOf(root: Branch): string {
    return this.#fleet.queues.digests.of(root, this.#fleet.quota.queues);
  }

  /** A gang that may have others preempted. `lacksOnlyNodes`: it has the quota of all that it needs. */
  preemptorOf({ gangClass, gang, requested }: Asking, needed: ReadonlySet<string>, lacksOnlyNodes = false): Preemptor {
    const { createTimeMs } = gang.facts;
    const { account, priority } = gangClass;
    return {
      account,
      priority,
      createTimeMs,
      requested,
      needed,
      lacksOnlyNodes,
      wasPreempted: this.#noteIfPreempted(gang),
    };
  }

  /** A search that knows what waits in the preemptor's queue beside it, also what backs off or drains. */
  searchWithOthers(search: VictimSearch, queued: GangRecord): VictimSearch {
    const wasPreempted = (gang: RunningGang) => this.#noteIfPreempted((gang as RunningAdmission).gang);
    const choicesOf = (gang: RunningGang) => this.#choicesOf((gang as RunningAdmission).gang);
    return { ...search, others: () => this.#othersOf(queued), choicesOf, wasPreempted };
  }

  #othersOf(gang: GangRecord): readonly WaitingGangs[] {
    const others: WaitingGangs[] = [];
    for (const { first, kind } of this.#kindsIn(gang.gangQueue)) {
      const count =
        kind.count - Number(first === gang || (first.gangClass !== null && first.gangClass === gang.gangClass));
      if (count > 0) others.push(count === kind.count ? kind : { ...kind, count });
    }
    return others;
  }

  /** The first kinds of gangs that wait in a queue. They are the same until the round gives one of them something. */
  #kindsIn(gangQueue: GangQueue): readonly Kind[] {
    const version = this.#given();
    const known = this.#kinds.get(gangQueue);
    if (known?.version === version) return known.kinds;
    const kinds: Kind[] = [];
    for (const gangClass of classesOf(gangQueue)) {
      if (kinds.length === KINDS_MAX) break;
      const [first] = gangClass.at === 0 ? gangClass.gangs : gangClass.gangs.slice(gangClass.at, gangClass.at + 1);
      if (first !== undefined) kinds.push(this.#kindOf(first, gangClass.gangs.length - gangClass.at));
    }
    const held = gangQueue.held.size === 0 ? [] : [...gangQueue.held].filter(mayRun).sort(compareGangs);
    for (const one of held.slice(0, KINDS_MAX)) kinds.push(this.#kindOf(one, 1));
    this.#kinds.set(gangQueue, { version, kinds });
    return kinds;
  }

  #kindOf(first: GangRecord, count: number): Kind {
    const { priority, createTimeMs } = first.facts;
    const gangs = first.gangClass?.gangs ?? [first];
    const wasPreempted = gangs.some((one) => this.#noteIfPreempted(one));
    return { first, kind: { choices: this.#choicesOf(first), count, priority, createTimeMs, wasPreempted } };
  }

  #choicesOf({ shape, gangQueue }: GangRecord): WaitingGangs["choices"] {
    const { quota, choices, clustersVersion } = this.#fleet;
    const queue = quota.queues.get(gangQueue.name);
    if (queue === undefined) return [];
    const known = choices.get(shape);
    if (known?.queue === queue && known.clustersVersion === clustersVersion) return known.choices;
    const made = this.#makeChoices(shape, queue);
    choices.set(shape, { queue, clustersVersion, choices: made });
    return made;
  }

  #makeChoices(shape: AskShape, queue: PlanQueue): WaitingGangs["choices"] {
    const { resources } = this.#fleet;
    const amounts = (sized: SizedAsk, flavors: Flavors) =>
      amountsOf(sized, choiceOf({ shape }, flavors, resources), resources);
    return choicesOf({ shape }, queue, this.#fleet).map((flavors) => {
      return { all: amounts(shape.all, flavors), fewest: amounts(shape.fewest ?? shape.all, flavors) };
    });
  }
}

/** Alike gangs of a queue that wait, and the first of them. */
type Kind = { readonly first: GangRecord; readonly kind: WaitingGangs };

/** The gang classes in the order of their first gangs, as it was when the round began. */
function classesOf({ order, classes }: GangQueue): readonly GangClass[] {
  const isBefore = (a: GangClass, b: GangClass) => compareGangs(a.gangs[0] as GangRecord, b.gangs[0] as GangRecord);
  return order ?? [...classes.values()].filter(({ gangs }) => gangs.length > 0).sort(isBefore);
}

/** False for a gang that does not come to run until somebody changes that, or another job ends. */
function mayRun({ facts }: GangRecord): boolean {
  return !facts.suspended && facts.awaitsResult === null;
}
