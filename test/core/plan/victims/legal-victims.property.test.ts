import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FairSharingStrategy } from "../../../../src/core/plan/model/queue-policy.ts";
import {
  borrowsWith,
  childTowards,
  commonAncestor,
  fitsInQuota,
  isWithinQuota,
} from "../../../../src/core/plan/usage/branch-use.ts";
import { type Branch, upward } from "../../../../src/core/plan/usage/branches.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { compareShares, shareOf } from "../../../../src/core/plan/usage/shares.ts";
import { allows } from "../../../../src/core/plan/victims/candidates.ts";
import { accountOf, someQueues } from "../usage/tree-world.ts";
import {
  fitsBeside,
  neededOf,
  oneStrategy,
  someStrategies,
  someWorld,
  stateWith,
  victimsIn,
  type World,
  type WorldGang,
} from "./gang-world.ts";

/** Of so many candidates, victims are found if and only if a legal set exists. */
const EXACT_MAX = 8;
const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 600);
const SEED = Number(process.env["GANGWAY_SEED"] ?? 1);

/** Adds growth to some gangs: the members of an elastic gang beyond its minimum are a candidate of their own. */
const withGrowth = (worlds: fc.Arbitrary<World>): fc.Arbitrary<World> =>
  fc
    .tuple(worlds, fc.subarray([0, 1, 2, 3, 4, 5, 6, 7, 8], { maxLength: 3 }), fc.integer({ min: 1, max: 4 }))
    .map(([world, elastic, more]) => {
      const gangs = world.gangs.flatMap((gang, at): WorldGang[] => {
        if (!elastic.includes(at)) return [gang];
        const [[pool] = ["", 0]] = [...gang.uses];
        return [{ ...gang, uses: new Map([[pool, more]]), isGrowth: true }, gang];
      });
      return { ...world, gangs };
    });

type Claim = "own" | "reclaim" | "reclaimWithinQuota" | "reclaimWhileBorrowing";

/** The law by its definition: each question makes its state of use anew. */
class Oracle {
  readonly world: World;
  readonly needed: ReadonlySet<string>;
  readonly candidates: readonly WorldGang[];
  readonly #start: QuotaState;
  readonly #charged: QuotaState;

  constructor(world: World) {
    this.world = world;
    this.#start = stateWith(world, world.gangs);
    this.needed = neededOf(world, this.#start);
    this.candidates = world.gangs.filter((gang) => this.#isCandidate(gang));
    this.#charged = this.#chargedWith(world.gangs);
  }

  leafIn(state: QuotaState, queue: string): Branch {
    return state.branches.leaf(queue) as Branch;
  }

  #chargedWith(running: readonly WorldGang[]): QuotaState {
    const state = stateWith(this.world, running);
    const { queue, requested } = this.world.taker;
    for (const [pool, amount] of requested) state.charge(accountOf(state, queue), pool, amount);
    return state;
  }

  isOwn = ({ queue }: WorldGang): boolean => queue === this.world.taker.queue;

  #isCandidate(gang: WorldGang): boolean {
    const { taker: preemptor, spared } = this.world;
    const [leaf, preemptorLeaf] = [this.leafIn(this.#start, gang.queue), this.leafIn(this.#start, preemptor.queue)];
    const { withinQueue, reclaimWithinTree } = preemptorLeaf.policy;
    const policy = this.isOwn(gang) ? withinQueue : reclaimWithinTree;
    if (policy === "NEVER" || spared.has(gang.uid) || ![...this.needed].some((pool) => gang.uses.has(pool)))
      return false;
    const isInTree = [...upward(leaf)].at(-1) === [...upward(preemptorLeaf)].at(-1);
    const borrows = this.isOwn(gang) || !isWithinQuota(this.#start, leaf, this.needed);
    return isInTree && borrows && allows(policy, preemptor, gang);
  }

  isAllowed(gang: WorldGang, gone: readonly WorldGang[], way: Way): boolean {
    const growth = this.candidates.find((one) => one.uid === gang.uid && one.isGrowth === true);
    if (growth !== undefined && gang.isGrowth !== true && !gone.includes(growth)) return false;
    if (this.isOwn(gang)) return true;
    const rest = this.world.gangs.filter((one) => !gone.includes(one));
    return way.fair === null ? this.#byClaim(gang, rest, way.borrowing) : this.#byShares(gang, rest, way.fair);
  }

  #byShares(gang: WorldGang, rest: readonly WorldGang[], strategies: readonly FairSharingStrategy[]): boolean {
    const state = this.#chargedWith(rest);
    const [leaf, preemptorLeaf] = [this.leafIn(state, gang.queue), this.leafIn(state, this.world.taker.queue)];
    const ancestor = commonAncestor(leaf, preemptorLeaf);
    const below = [...upward(leaf)].slice(0, -1).filter((branch) => branch.height < (ancestor?.height ?? 0));
    const path = below.slice(0, below.indexOf(childTowards(ancestor, leaf)) + 1);
    if (path.slice(1).some((branch) => isWithinQuota(state, branch, this.needed))) return false;
    if (!shareOf(state, leaf).borrows) return false;
    const hasGrowth = this.candidates.some((one) => one.uid === gang.uid && one.isGrowth === true);
    if (gang.isGrowth !== true && hasGrowth && isWithinQuota(state, leaf, this.needed)) return false;
    const own = [...upward(this.leafIn(this.#charged, this.world.taker.queue))];
    const reclaims = own
      .slice(
        0,
        own.findIndex(({ name, height }) => name === ancestor?.name && height === ancestor.height),
      )
      .some((branch) => isWithinQuota(this.#charged, branch, this.needed));
    if (reclaims) return true;
    const share = shareOf(state, childTowards(ancestor, preemptorLeaf));
    const target = childTowards(ancestor, leaf);
    if (compareShares(share, shareOf(state, target)) >= 0) return false;
    if (strategies.includes("LESS_THAN_INITIAL_SHARE")) return true;
    for (const [pool, amount] of gang.uses) state.discharge(accountOf(state, gang.queue), pool, amount);
    return compareShares(share, shareOf(state, target)) <= 0;
  }

  #byClaim(gang: WorldGang, rest: readonly WorldGang[], borrowing: boolean): boolean {
    if (borrowing && this.claimOf(gang) === "reclaimWithinQuota") return false;
    const state = stateWith(this.world, rest);
    const [leaf, preemptorLeaf] = [this.leafIn(state, gang.queue), this.leafIn(state, this.world.taker.queue)];
    const ancestor = commonAncestor(leaf, preemptorLeaf);
    for (const branch of upward(leaf)) {
      if (branch === ancestor) return true;
      if (isWithinQuota(state, branch, this.needed)) return false;
    }
    return false;
  }

  claimOf(gang: WorldGang): Claim {
    if (this.isOwn(gang)) return "own";
    const { taker: preemptor } = this.world;
    const [leaf, preemptorLeaf] = [this.leafIn(this.#start, gang.queue), this.leafIn(this.#start, preemptor.queue)];
    const ancestor = commonAncestor(leaf, preemptorLeaf);
    let requested: World["taker"]["requested"] = preemptor.requested;
    for (const branch of upward(preemptorLeaf)) {
      if (branch === ancestor) break;
      const { fits, passed } = fitsInQuota(this.#start, branch, requested);
      if (fits) return "reclaim";
      requested = passed;
    }
    const { policy, maxPriority } = preemptorLeaf.policy.borrowWithin;
    const isLow = gang.priority < preemptor.priority && (maxPriority === null || gang.priority <= maxPriority);
    return policy !== "NEVER" && isLow ? "reclaimWhileBorrowing" : "reclaimWithinQuota";
  }

  /** Whether the preemptor's queue may borrow, for each attempt (`preemption.go`, `classicalPreemptions`). */
  ways(): readonly Way[] {
    const preemptorLeaf = this.leafIn(this.#start, this.world.taker.queue);
    const { fairSharing } = ([...upward(preemptorLeaf)].at(-1) as Branch).policy;
    if (fairSharing !== null) return [{ fair: fairSharing, borrowing: true }];
    const way = (borrowing: boolean): Way => ({ fair: null, borrowing });
    const claims = this.candidates.map((gang) => this.claimOf(gang));
    if (claims.every((claim) => claim === "own")) return [way(true)];
    if (preemptorLeaf.policy.borrowWithin.policy !== "NEVER") return [way(true), way(false)];
    const isUnder = [...this.needed].every((name) => {
      const pool = preemptorLeaf.pools.get(name);
      return pool !== undefined && !borrowsWith(this.#start, pool, 1);
    });
    return isUnder ? [way(true), way(false)] : [way(true)];
  }

  fits(gone: readonly WorldGang[], { borrowing }: Way): boolean {
    const rest = this.world.gangs.filter((one) => !gone.includes(one));
    if (!fitsBeside(this.world, rest)) return false;
    if (borrowing) return true;
    const state = stateWith(this.world, rest);
    const leaf = this.leafIn(state, this.world.taker.queue);
    return fitsInQuota(state, leaf, this.world.taker.requested).fits;
  }

  /** The sets that can be taken one after another. */
  legalSets(way: Way): ReadonlySet<number> {
    const legal = new Set([0]);
    for (const set of legal) {
      const gone = this.gangsIn(set);
      for (const [at, gang] of this.candidates.entries()) {
        if ((set & (1 << at)) === 0 && this.isAllowed(gang, gone, way)) legal.add(set | (1 << at));
      }
    }
    return legal;
  }

  gangsIn(set: number): readonly WorldGang[] {
    return this.candidates.filter((_, at) => (set & (1 << at)) !== 0);
  }

  /** Legal, enough, without a gang that can be spared, and without one of the own queue that would fit again. */
  isFinal(set: number, legal: ReadonlySet<number>, way: Way): boolean {
    const gone = this.gangsIn(set);
    if (set === 0 || !legal.has(set) || !this.fits(gone, way)) return false;
    return this.candidates.every((gang, at) => {
      const rest = set & ~(1 << at);
      const isWhole = gang.isGrowth === true && gone.some(({ uid, isGrowth }) => uid === gang.uid && isGrowth !== true);
      if (rest === set || isWhole || !this.fits(this.gangsIn(rest), way)) return true;
      return !this.isOwn(gang) && !legal.has(rest);
    });
  }
}

type Way = { readonly fair: readonly FairSharingStrategy[] | null; readonly borrowing: boolean };

const met = { found: 0, none: 0, notFirst: 0 };

for (const [name, worlds] of Object.entries({
  classic: someWorld(fc.constant(null)),
  "fair, by one strategy": someWorld(oneStrategy),
  fair: someWorld(someStrategies),
  "fair, within queues": someWorld(
    someStrategies,
    someQueues.map((queues) =>
      queues.map((queue, at) => {
        const withinQueue = at % 2 === 0 ? ("LOWER_PRIORITY" as const) : ("LOWER_OR_NEWER_EQUAL_PRIORITY" as const);
        return { ...queue, parent: at === 0 ? null : "q0", policy: { ...queue.policy!, withinQueue } };
      }),
    ),
  ),
})) {
  test(`${name}: victims are legal and needed, and found if and only if some are`, () => {
    const property = fc.property(withGrowth(worlds), (world) => {
      const oracle = new Oracle(world);
      if (oracle.needed.size === 0 || new Set(oracle.candidates.map(({ uid }) => uid)).size > EXACT_MAX) return;
      const victims = victimsIn(world, stateWith(world, world.gangs));
      const all = oracle.ways().map((way) => ({ way, legal: oracle.legalSets(way) }));
      if (victims.length === 0) {
        met.none += 1;
        for (const { way, legal } of all) {
          const enough = [...legal].find((set) => oracle.isFinal(set, legal, way));
          const missed = enough === undefined ? "" : JSON.stringify(oracle.gangsIn(enough).map(({ uid }) => uid));
          assert.equal(missed, "", "a legal set was not found");
        }
        return;
      }
      met.found += 1;
      const keys = new Set(victims.map(({ gang }) => `${gang.uid} ${gang.isGrowth}`));
      const set = oracle.candidates.reduce((sum, { uid, isGrowth }, at) => {
        return keys.has(`${uid} ${isGrowth}`) ? sum | (1 << at) : sum;
      }, 0);
      assert.equal(oracle.gangsIn(set).length, victims.length);
      const isFinal = all.some(({ way, legal }) => oracle.isFinal(set, legal, way));
      assert.ok(isFinal, `${[...keys].join()} are not legal, or one of them can be spared`);
    });
    fc.assert(property, { numRuns: WORLDS, seed: SEED });
  });
}

test("the worlds met preemptors with victims and without", () => {
  assert.ok(met.found > WORLDS / 20 && met.none > WORLDS / 20, JSON.stringify(met));
});
