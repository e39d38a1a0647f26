import type { PreemptionReason } from "../../job/preemption.ts";
import { type BranchUse, borrowsWith, fitsInQuota, isWithinQuota } from "../usage/branch-use.ts";
import { type Branch, upward } from "../usage/branches.ts";
import { candidatesOf } from "./candidates.ts";
import { legalVictims } from "./legal-victims.ts";
import { candidateOrder, turnOf } from "./order.ts";
import { leavesQuotaInUse } from "./own-quota.ts";
import type { Rule } from "./rule.ts";
import { hasGrowthIn, type Preemptor, type RunningGang, type Victim, type VictimSearch } from "./running-gang.ts";
import { Taking } from "./taking.ts";

/**
 * Why a gang may be taken. `reclaim`: it borrows quota of a branch in which the preemptor would stay.
 * `reclaimWithinQuota`: it may go only if the preemptor's queue does not borrow itself.
 */
type Claim = "ownQueue" | "reclaim" | "reclaimWithinQuota" | "reclaimWhileBorrowing";

type Candidate = {
  readonly gang: RunningGang;
  readonly leaf: Branch;
  /** The lowest branch that holds both the gang and the preemptor. Null: they are in one queue. */
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
 * The gangs that must be preempted for a preemptor, by Kueue's classic rules (`preemption.go`, `classical`). Empty: it
 * does not fit, whoever is preempted.
 */
export function classicVictims(search: VictimSearch, preemptor: Preemptor, preemptorLeaf: Branch): readonly Victim[] {
  const classes = classesOf(search, preemptor, preemptorLeaf);
  const sequence = sequenceOf(search, preemptor, classes);
  const attempts = attemptsOf(search, { preemptor, preemptorLeaf, classes });
  for (const borrowing of attempts) {
    const taking = new Taking(search, preemptor, preemptorLeaf);
    const victims = attempt({ search, preemptor, taking }, sequence, borrowing);
    taking.end();
    if (victims !== null) return victims;
  }
  // Kueue's order alone keeps gangs from taking turns for ever: one that was preempted takes in no other.
  for (const borrowing of preemptor.wasPreempted === true ? [] : attempts) {
    const taking = new Taking(search, preemptor, preemptorLeaf);
    const rule = ruleOf({ search, preemptor, taking }, sequence, borrowing);
    const victims = legalVictims({ quota: search.quota, rule });
    if (victims !== null) return victims;
  }
  return [];
}

/** Who may go in an attempt, whatever the order. */
function ruleOf({ search, preemptor, taking }: Attempt, sequence: readonly Candidate[], borrowing: boolean): Rule {
  const allowed = sequence.filter(({ claim }) => !borrowing || claim !== "reclaimWithinQuota");
  const byGang = new Map(allowed.map((candidate) => [candidate.gang, candidate]));
  return {
    candidates: allowed.map(({ gang }) => gang),
    isOwn: ({ account }) => account.queue === preemptor.account.queue,
    reasonFor: (gang) => {
      const candidate = byGang.get(gang);
      if (candidate === undefined || !stillAboveQuota(search, preemptor, candidate)) return null;
      return REASONS[candidate.claim];
    },
    fits: (gone) => taking.fits({ borrowing }, gone),
  };
}

type Attempt = { readonly search: VictimSearch; readonly preemptor: Preemptor; readonly taking: Taking };

function attempt(
  { search, preemptor, taking }: Attempt,
  sequence: readonly Candidate[],
  borrowing: boolean,
): readonly Victim[] | null {
  const stay: RunningGang[] = [];
  for (const candidate of sequence) {
    if (borrowing && candidate.claim === "reclaimWithinQuota") continue;
    // An elastic gang whose growth stays would lose that, too.
    if (hasGrowthIn(candidate.gang, stay) || !stillAboveQuota(search, preemptor, candidate)) {
      stay.push(candidate.gang);
      continue;
    }
    taking.take(candidate.gang, REASONS[candidate.claim]);
    if (taking.fits({ borrowing })) return taking.fillBack({ borrowing });
  }
  return null;
}

/** False if the gang's queue, or one above it that the preemptor is not in, is by now within its quota. */
function stillAboveQuota(search: VictimSearch, preemptor: Preemptor, candidate: Candidate): boolean {
  const { gang, leaf, ancestor, claim } = candidate;
  if (ancestor === null) return true;
  // The victim's queue could take back what it owns: the preemptor's queue borrows it, or nodes are too few for both.
  const { wasPreempted, lacksOnlyNodes } = preemptor;
  const mayTakeBack = wasPreempted === true && (lacksOnlyNodes === true || claim === "reclaimWhileBorrowing");
  if (mayTakeBack && !leavesQuotaInUse(search, preemptor, candidate)) return false;
  const pools = poolsBorrowed(preemptor, gang);
  for (const branch of upward(leaf)) {
    if (branch === ancestor) return true;
    if (isWithinQuota(search.quota, branch, pools)) return false;
  }
  return true;
}

/**
 * The pools of one of which a gang's queue must use more than its quota. Kueue asks for any pool that the preemptor
 * needs, also one that the gang does not use: the gang may then take back its quota, and so both would take turns for
 * ever. So one that was preempted takes only what uses the borrowed quota itself.
 */
function poolsBorrowed({ needed, wasPreempted }: Preemptor, { uses }: RunningGang): ReadonlySet<string> {
  return wasPreempted === true ? new Set([...needed].filter((pool) => (uses.get(pool) ?? 0) > 0)) : needed;
}

/** Whether the preemptor's queue may borrow, for each attempt. */
function attemptsOf(
  { quota }: VictimSearch,
  of: { readonly preemptor: Preemptor; readonly preemptorLeaf: Branch; readonly classes: Classes },
): readonly boolean[] {
  const { reclaim, byPriority } = of.classes;
  if (reclaim.length === 0 && byPriority.length === 0) return [true];
  if (of.preemptorLeaf.policy.borrowWithin.policy !== "NEVER") return [true, false];
  const { pools } = of.preemptorLeaf;
  const underQuota = [...of.preemptor.needed].every((name) => {
    const pool = pools.get(name);
    return pool !== undefined && !borrowsWith(quota, pool, 1);
  });
  if (!underQuota) return [true];
  return reclaim.length === 0 ? [false, true] : [true, false];
}

function classesOf(search: VictimSearch, preemptor: Preemptor, preemptorLeaf: Branch): Classes {
  const own = candidatesOf(search, preemptor, { leaf: preemptorLeaf, preemptorLeaf });
  const ownQueue = own.map((gang): Candidate => ({ gang, leaf: preemptorLeaf, ancestor: null, claim: "ownQueue" }));
  const others = [...reclaimable(search, preemptor, preemptorLeaf)];
  const reclaim = others.filter(({ claim }) => claim === "reclaim");
  return { reclaim, byPriority: others.filter(({ claim }) => claim !== "reclaim"), ownQueue };
}

/**
 * The candidates of other queues, from the nearest ancestor to the root. The preemptor has a claim to what borrows at
 * an ancestor if it would fit into the quota of a branch below that ancestor.
 */
function* reclaimable(search: VictimSearch, preemptor: Preemptor, preemptorLeaf: Branch): Generator<Candidate> {
  let below = preemptorLeaf;
  let { fits, passed } = fitsInQuota(search.quota, preemptorLeaf, preemptor.requested);
  for (const ancestor of preemptorLeaf.parent === null ? [] : upward(preemptorLeaf.parent)) {
    for (const leaf of leavesAboveQuota(search.quota, preemptor.needed, { branch: ancestor, except: below })) {
      for (const gang of candidatesOf(search, preemptor, { leaf, preemptorLeaf })) {
        yield { gang, leaf, ancestor, claim: fits ? "reclaim" : claimByPriority(preemptorLeaf, preemptor, gang) };
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

function claimByPriority({ policy }: Branch, preemptor: Preemptor, gang: RunningGang): Claim {
  const { policy: borrowing, maxPriority } = policy.borrowWithin;
  if (borrowing === "NEVER" || gang.priority >= preemptor.priority) return "reclaimWithinQuota";
  return maxPriority !== null && gang.priority > maxPriority ? "reclaimWithinQuota" : "reclaimWhileBorrowing";
}

function sequenceOf(search: VictimSearch, preemptor: Preemptor, classes: Classes): readonly Candidate[] {
  const order = candidateOrder(preemptor.account.queue, search.prefer);
  const sorted = [classes.reclaim, classes.byPriority, classes.ownQueue].map((list) =>
    [...list].sort((a, b) => order(a.gang, b.gang)),
  );
  const part = (turn: number) => sorted.flatMap((list) => list.filter(({ gang }) => turnOf(gang) === turn));
  return [...part(0), ...part(1), ...part(2)];
}
