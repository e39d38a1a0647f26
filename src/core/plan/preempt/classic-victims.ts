import type { PreemptionReason } from "../../job/preemption.ts";
import { type BranchUse, borrowsWith, fitsInQuota, isWithinQuota } from "../state/branch-use.ts";
import { type Branch, upward } from "../state/branches.ts";
import { candidatesOf } from "./candidates.ts";
import { legalVictims } from "./legal-victims.ts";
import { candidateOrder, turnOf } from "./order.ts";
import type { Rule } from "./rule.ts";
import type { RunningGang, Taker, Victim, VictimSearch } from "./running-gang.ts";
import { Taking } from "./taking.ts";

/**
 * Why a gang may be taken. `reclaim`: it borrows quota of a branch in which the taker would stay. `reclaimWithinQuota`:
 * it may go only if the taker's queue does not borrow itself.
 */
type Claim = "ownQueue" | "reclaim" | "reclaimWithinQuota" | "reclaimWhileBorrowing";

type Candidate = {
  readonly gang: RunningGang;
  readonly leaf: Branch;
  /** The lowest branch that holds both the gang and the taker. Null: they are in one queue. */
  readonly ancestor: Branch | null;
  readonly claim: Claim;
};

/** The candidates of each class, in the order in which the classes are taken. */
type Classes = { readonly reclaim: Candidate[]; readonly byPriority: Candidate[]; readonly ownQueue: Candidate[] };

const REASONS: Readonly<Record<Claim, PreemptionReason>> = {
  ownQueue: "InClusterQueue",
  reclaim: "InCohortReclamation",
  reclaimWithinQuota: "InCohortReclamation",
  reclaimWhileBorrowing: "InCohortReclaimWhileBorrowing",
};

/**
 * The gangs that must give way for a taker, by Kueue's classic rules (`preemption.go`, `classical`). Empty: it does not
 * fit, whoever gives way.
 */
export function classicVictims(search: VictimSearch, taker: Taker, takerLeaf: Branch): readonly Victim[] {
  const classes = classesOf(search, taker, takerLeaf);
  const sequence = sequenceOf(search, taker, classes);
  const attempts = attemptsOf(search, { taker, takerLeaf, classes });
  for (const borrowing of attempts) {
    const taking = new Taking(search, taker, takerLeaf);
    const victims = attempt({ search, taker, taking }, sequence, borrowing);
    taking.end();
    if (victims !== null) return victims;
  }
  // Kueue's order alone keeps gangs from taking turns for ever: one that was preempted takes in no other.
  for (const borrowing of taker.wasPreempted === true ? [] : attempts) {
    const taking = new Taking(search, taker, takerLeaf);
    const rule = ruleOf({ search, taker, taking }, sequence, borrowing);
    const victims = legalVictims({ quota: search.quota, rule });
    if (victims !== null) return victims;
  }
  return [];
}

/** Who may go in an attempt, whatever the order. */
function ruleOf({ search, taker, taking }: Attempt, sequence: readonly Candidate[], borrowing: boolean): Rule {
  const allowed = sequence.filter(({ claim }) => !borrowing || claim !== "reclaimWithinQuota");
  const byGang = new Map(allowed.map((candidate) => [candidate.gang, candidate]));
  return {
    candidates: allowed.map(({ gang }) => gang),
    isOwn: ({ account }) => account.queue === taker.account.queue,
    reasonFor: (gang) => {
      const candidate = byGang.get(gang);
      if (candidate === undefined || !stillAboveQuota(search, taker, candidate)) return null;
      return REASONS[candidate.claim];
    },
    fits: (gone) => taking.fits({ borrowing }, gone),
  };
}

type Attempt = { readonly search: VictimSearch; readonly taker: Taker; readonly taking: Taking };

function attempt(
  { search, taker, taking }: Attempt,
  sequence: readonly Candidate[],
  borrowing: boolean,
): readonly Victim[] | null {
  for (const candidate of sequence) {
    if (borrowing && candidate.claim === "reclaimWithinQuota") continue;
    if (!stillAboveQuota(search, taker, candidate)) continue;
    taking.take(candidate.gang, REASONS[candidate.claim]);
    if (taking.fits({ borrowing })) return taking.fillBack({ borrowing });
  }
  return null;
}

/** False if the gang's queue, or one above it that the taker is not in, is by now within its quota. */
function stillAboveQuota({ quota }: VictimSearch, { needed }: Taker, { leaf, ancestor }: Candidate): boolean {
  if (ancestor === null) return true;
  for (const branch of upward(leaf)) {
    if (branch === ancestor) return true;
    if (isWithinQuota(quota, branch, needed)) return false;
  }
  return true;
}

/** Whether the taker's queue may borrow, for each attempt. */
function attemptsOf(
  { quota }: VictimSearch,
  of: { readonly taker: Taker; readonly takerLeaf: Branch; readonly classes: Classes },
): readonly boolean[] {
  const { reclaim, byPriority } = of.classes;
  if (reclaim.length === 0 && byPriority.length === 0) return [true];
  if (of.takerLeaf.policy.borrowWithin.policy !== "NEVER") return [true, false];
  const { pools } = of.takerLeaf;
  const underQuota = [...of.taker.needed].every((name) => {
    const pool = pools.get(name);
    return pool !== undefined && !borrowsWith(quota, pool, 1);
  });
  if (!underQuota) return [true];
  return reclaim.length === 0 ? [false, true] : [true, false];
}

function classesOf(search: VictimSearch, taker: Taker, takerLeaf: Branch): Classes {
  const own = candidatesOf(search, taker, { leaf: takerLeaf, takerLeaf });
  const ownQueue = own.map((gang): Candidate => ({ gang, leaf: takerLeaf, ancestor: null, claim: "ownQueue" }));
  const others = [...reclaimable(search, taker, takerLeaf)];
  const reclaim = others.filter(({ claim }) => claim === "reclaim");
  return { reclaim, byPriority: others.filter(({ claim }) => claim !== "reclaim"), ownQueue };
}

/**
 * The candidates of other queues, from the nearest ancestor to the root. The taker has a claim to what borrows at an
 * ancestor if it would fit into the quota of a branch below that ancestor.
 */
function* reclaimable(search: VictimSearch, taker: Taker, takerLeaf: Branch): Generator<Candidate> {
  let below = takerLeaf;
  let { fits, passed } = fitsInQuota(search.quota, takerLeaf, taker.wants);
  for (const ancestor of takerLeaf.parent === null ? [] : upward(takerLeaf.parent)) {
    for (const leaf of leavesAboveQuota(search.quota, taker.needed, { branch: ancestor, except: below })) {
      for (const gang of candidatesOf(search, taker, { leaf, takerLeaf })) {
        yield { gang, leaf, ancestor, claim: fits ? "reclaim" : claimByPriority(takerLeaf, taker, gang) };
      }
    }
    const here = fitsInQuota(search.quota, ancestor, passed);
    fits ||= here.fits;
    ({ passed } = here);
    below = ancestor;
  }
}

/**
 * The leaves below a branch that use more than their quota of one of the pools. Leaves out those below a branch that is
 * within its quota of all of them, and those at or below the branch `except`.
 */
function* leavesAboveQuota(
  use: BranchUse,
  pools: ReadonlySet<string>,
  at: { readonly branch: Branch; readonly except: Branch },
): Generator<Branch> {
  for (const child of at.branch.children) {
    if (child === at.except || isWithinQuota(use, child, pools)) continue;
    if (child.children.length === 0) yield child;
    else yield* leavesAboveQuota(use, pools, { branch: child, except: at.except });
  }
}

function claimByPriority({ policy }: Branch, taker: Taker, gang: RunningGang): Claim {
  const { policy: borrowing, maxPriority } = policy.borrowWithin;
  if (borrowing === "NEVER" || gang.priority >= taker.priority) return "reclaimWithinQuota";
  return maxPriority !== null && gang.priority > maxPriority ? "reclaimWithinQuota" : "reclaimWhileBorrowing";
}

function sequenceOf(search: VictimSearch, taker: Taker, classes: Classes): readonly Candidate[] {
  const order = candidateOrder(taker.account.queue, search.prefer);
  const sorted = [classes.reclaim, classes.byPriority, classes.ownQueue].map((list) =>
    [...list].sort((a, b) => order(a.gang, b.gang)),
  );
  const part = (turn: number) => sorted.flatMap((list) => list.filter(({ gang }) => turnOf(gang) === turn));
  return [...part(0), ...part(1), ...part(2)];
}
