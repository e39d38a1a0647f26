import type { RunningGang, Taker, VictimSearch } from "../preempt/running-gang.ts";
import type { WaitingGangs } from "../preempt/waiting-gangs.ts";
import type { PlannedVictim } from "../preemption.ts";
import type { PlanQueue } from "../snapshot.ts";
import { type AskShape, amountsByPool, type SizedAsk, unitsOf } from "./ask-shape.ts";
import type { PoolAmounts } from "./branch-use.ts";
import { type Branch, rootOf } from "./branches.ts";
import { choiceOf, choicesOf, type Flavors } from "./choices.ts";
import { compareEntries } from "./entry-order.ts";
import type { Entry, Lane, Line } from "./gang-lines.ts";
import type { Runner } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/** So many kinds of waiting gangs of a queue are looked at, the first ones. */
const KINDS_MAX = 64;

type Asking = { readonly lane: Lane; readonly entry: Entry; readonly wants: PoolAmounts };

/** The gangs that may have others preempted, as searches for victims see them, and what waits beside them. */
export class Takers {
  readonly #parts: Parts;
  readonly #given: () => number;
  readonly #kinds = new Map<Line, { readonly version: number; readonly kinds: readonly Kind[] }>();

  /** `given`: a number that rises whenever the round gives a waiting gang something. */
  constructor(parts: Parts, given: () => number) {
    this.#parts = parts;
    this.#given = given;
  }

  /**
   * True for a gang that was preempted, until a gang of its tree is submitted, resized or ends, or a quota or policy
   * changes. Otherwise it could take back at once what it gave, and gangs could take turns for ever.
   */
  wasPreempted({ gang, line }: Entry): boolean {
    if (gang.preemptedIn === undefined) return false;
    const leaf = this.#parts.quota.branches.leaf(line.name);
    const root = leaf === null ? null : rootOf(leaf);
    if (root === null || this.#digestOf(root) !== gang.preemptedIn) return false;
    this.#parts.lines.digests.noteUsed(root, gang.preemptedIn);
    return true;
  }

  /** Says so for a gang whose tree shares fairly, and would else let it take by its initial share. */
  refusalOf(entry: Entry): { readonly byFinalShareAlone?: true } {
    const leaf = this.wasPreempted(entry) ? this.#parts.quota.branches.leaf(entry.line.name) : null;
    const strategies = leaf === null ? null : rootOf(leaf).policy.fairSharing;
    const isByInitial = strategies?.length === 0 || strategies?.includes("LESS_THAN_INITIAL_SHARE") === true;
    return isByInitial ? { byFinalShareAlone: true } : {};
  }

  /** A victim with the digest of its tree, if it gives way whole. */
  inTree(victim: PlannedVictim): PlannedVictim {
    const leaf = victim.keeps === undefined ? this.#parts.quota.branches.leaf(victim.queue) : null;
    return leaf === null ? victim : { ...victim, treeDigest: this.#digestOf(rootOf(leaf)) };
  }

  #digestOf(root: Branch): string {
    return this.#parts.lines.digests.of(root, this.#parts.quota.queues);
  }

  /** A gang that may have others preempted. */
  takerOf({ lane, entry, wants }: Asking, needed: ReadonlySet<string>): Taker {
    const { createTimeMs } = entry.gang;
    const { account, priority } = lane;
    return { account, priority, createTimeMs, wants, needed, wasPreempted: this.wasPreempted(entry) };
  }

  /** A search that knows what waits in the taker's queue beside it, also what backs off or drains. */
  searchBeside(search: VictimSearch, entry: Entry): VictimSearch {
    const wasPreempted = (gang: RunningGang) => this.wasPreempted((gang as Runner).entry);
    return { ...search, others: () => this.#othersOf(entry), wasPreempted };
  }

  #othersOf(entry: Entry): readonly WaitingGangs[] {
    const others: WaitingGangs[] = [];
    for (const { first, kind } of this.#kindsIn(entry.line)) {
      const count = kind.count - Number(first === entry || (first.lane !== null && first.lane === entry.lane));
      if (count > 0) others.push(count === kind.count ? kind : { ...kind, count });
    }
    return others;
  }

  /** The first kinds of gangs that wait in a queue. They are the same until the round gives one of them something. */
  #kindsIn(line: Line): readonly Kind[] {
    const version = this.#given();
    const known = this.#kinds.get(line);
    if (known?.version === version) return known.kinds;
    const kinds: Kind[] = [];
    for (const lane of lanesOf(line)) {
      if (kinds.length === KINDS_MAX) break;
      const [first] = lane.at === 0 ? lane.entries : lane.entries.slice(lane.at, lane.at + 1);
      if (first !== undefined) kinds.push(this.#kindOf(first, lane.entries.length - lane.at));
    }
    const held = line.held.size === 0 ? [] : [...line.held].filter(mayRun).sort(compareEntries);
    for (const one of held.slice(0, KINDS_MAX)) kinds.push(this.#kindOf(one, 1));
    this.#kinds.set(line, { version, kinds });
    return kinds;
  }

  #kindOf(first: Entry, count: number): Kind {
    const { priority, createTimeMs } = first.gang;
    const gangs = first.lane?.entries ?? [first];
    const wasPreempted = gangs.some((one) => this.wasPreempted(one));
    return { first, kind: { choices: this.#choicesOf(first), count, priority, createTimeMs, wasPreempted } };
  }

  #choicesOf({ shape, line }: Entry): WaitingGangs["choices"] {
    const { quota, choices, clustersVersion } = this.#parts;
    const queue = quota.queues.get(line.name);
    if (queue === undefined) return [];
    const known = choices.get(shape);
    if (known?.queue === queue && known.clustersVersion === clustersVersion) return known.choices;
    const made = this.#makeChoices(shape, queue);
    choices.set(shape, { queue, clustersVersion, choices: made });
    return made;
  }

  #makeChoices(shape: AskShape, queue: PlanQueue): WaitingGangs["choices"] {
    const { resources, excludes } = this.#parts;
    const amounts = (sized: SizedAsk, flavors: Flavors) =>
      amountsByPool(unitsOf(sized, resources), choiceOf({ shape }, flavors, resources));
    return choicesOf({ shape }, queue, { resources, excludes }).map((flavors) => {
      return { all: amounts(shape.all, flavors), fewest: amounts(shape.fewest ?? shape.all, flavors) };
    });
  }
}

/** Alike gangs of a queue that wait, and the first of them. */
type Kind = { readonly first: Entry; readonly kind: WaitingGangs };

/** The amounts of a shape by the flavors of a queue, while its quotas and the clusters stay as they are. */
export type ShapeChoices = {
  readonly queue: PlanQueue;
  readonly clustersVersion: number;
  readonly choices: WaitingGangs["choices"];
};

/** The lanes in the order of their first gangs, as it was when the round began. */
function lanesOf({ order, lanes }: Line): readonly Lane[] {
  const isBefore = (a: Lane, b: Lane) => compareEntries(a.entries[0] as Entry, b.entries[0] as Entry);
  return order ?? [...lanes.values()].filter(({ entries }) => entries.length > 0).sort(isBefore);
}

/** False for a gang that does not come to run until somebody changes that, or another job ends. */
function mayRun({ gang }: Entry): boolean {
  return !gang.suspended && gang.awaitsResult === null;
}
