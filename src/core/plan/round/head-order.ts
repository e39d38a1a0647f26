import { Heap } from "../../../runtime/heap.ts";
import { compareRanked, type Ranked } from "../queues/order.ts";
import type { GangRecord } from "../queues/records.ts";
import { type BranchUse, borrowsWith, guaranteeLeft, type PoolAmounts } from "../usage/branch-use.ts";
import { type Branch, rootOf } from "../usage/branches.ts";
import { compareShares, type Share, shareOf } from "../usage/shares.ts";

/** The first gang of a queue in one cycle, as far as the order of the heads depends on it. */
export type Head = {
  readonly gang: Pick<GangRecord, "facts" | "account">;
  /** Its priority in the order of admission, when the cycle began. */
  readonly rank: number;
  /** The leaf that the gang is charged to. Null: its queue is in no tree. */
  readonly leaf: Branch | null;
  /** The amounts that the gang takes of each pool. */
  readonly requested: PoolAmounts;
  /** How far it borrows, when the cycle began: see `borrowingLevel`. */
  readonly level: number;
};

type OrderedHead = Ranked & { readonly level: number };

/**
 * Without fair sharing: borrowing from nearer goes first, then higher effective priority, the older gang, the smaller
 * uid.
 */
export function compareHeads(a: OrderedHead, b: OrderedHead): number {
  return a.level - b.level || compareRanked(a, b);
}

/**
 * The order in which a cycle decides about its heads, which is Kueue's. In a tree with fair sharing, the heads below
 * each branch compete: the one whose branch does not borrow goes first, then the one whose branch has the lower share
 * with the gang admitted, then the higher effective priority, the older gang, the smaller uid. The winners compete in
 * the branch above. Winners of trees, and heads of trees without fair sharing, compete as `compareHeads` says.
 */
export class HeadOrder<H extends Head> {
  readonly #all: Contest<H>;
  #started = false;

  constructor(quota: BranchUse, heads: readonly H[]) {
    const fair = new FairTrees<H>(quota);
    const firsts: Contestant<H>[] = [];
    for (const head of heads) {
      if (competesInTree(head)) fair.add(head);
      else firsts.push({ head, from: null, ranking: null });
    }
    for (const from of fair.contests()) firsts.push({ head: from.winner as H, from, ranking: null });
    this.#all = new Contest(firsts, (a, b) => compareHeads(a.head, b.head) < 0, null);
  }

  /** The next head. Undefined: none is left. Call it again once the head that it returned was admitted or not. */
  next(): H | undefined {
    if (this.#started) this.#all.dropWinner();
    this.#started = true;
    return this.#all.winner;
  }
}

/** How the branch of a contestant ranks with its head admitted. */
type Ranking = { readonly borrows: boolean; readonly share: Share };

/** A head, or the winner of the contest in the branch below. */
type Contestant<H extends Head> = { head: H; readonly from: Contest<H> | null; ranking: Ranking | null };

type Judge<H> = (head: H) => Ranking;

/** The heads below one branch. */
class Contest<H extends Head> {
  readonly #contestants: Heap<Contestant<H>>;
  /** How this branch ranks in the contest above with a head admitted. Null: only heads are compared there. */
  readonly judge: Judge<H> | null;

  constructor(
    all: readonly Contestant<H>[],
    before: (a: Contestant<H>, b: Contestant<H>) => boolean,
    judge: Judge<H> | null,
  ) {
    this.#contestants = new Heap(all, before);
    this.judge = judge;
  }

  get winner(): H | undefined {
    return this.#contestants.peek()?.head;
  }

  /** Only the branches that hold the winner rank otherwise than before. */
  dropWinner(): void {
    const first = this.#contestants.peek();
    first?.from?.dropWinner();
    const next = first?.from?.winner;
    if (first === undefined || next === undefined) {
      this.#contestants.pop();
      return;
    }
    first.head = next;
    first.ranking = first.from?.judge?.(next) ?? null;
    this.#contestants.settle();
  }
}

/** The heads of trees with fair sharing, by the branch in which they compete. */
class FairTrees<H extends Head> {
  readonly #quota: BranchUse;
  readonly #heads = new Map<Branch, H[]>();
  readonly #below = new Map<Branch, Set<Branch>>();
  readonly #roots = new Set<Branch>();

  constructor(quota: BranchUse) {
    this.#quota = quota;
  }

  /** Adds a head that competes in a tree. */
  add(head: H): void {
    const parent = head.leaf?.parent as Branch;
    const heads = this.#heads.get(parent) ?? [];
    heads.push(head);
    this.#heads.set(parent, heads);
    let at = parent;
    for (; at.parent !== null; at = at.parent) {
      const below = this.#below.get(at.parent) ?? new Set<Branch>();
      below.add(at);
      this.#below.set(at.parent, below);
    }
    this.#roots.add(at);
  }

  contests(): readonly Contest<H>[] {
    return [...this.#roots].map((root) => this.#contestIn(root));
  }

  #contestIn(branch: Branch): Contest<H> {
    const all: Contestant<H>[] = (this.#heads.get(branch) ?? []).map((head) => {
      return { head, from: null, ranking: this.#judge(head.leaf as Branch, head) };
    });
    for (const child of this.#below.get(branch) ?? []) {
      const from = this.#contestIn(child);
      const head = from.winner as H;
      all.push({ head, from, ranking: this.#judge(child, head) });
    }
    return new Contest(all, goesFirst, (head) => this.#judge(branch, head));
  }

  /** How a branch ranks with a head below it admitted. */
  #judge(branch: Branch, { leaf, requested }: H): Ranking {
    let added = requested;
    for (let at = leaf; at !== null && at !== branch; at = at.parent) added = passedOn(this.#quota, at, added);
    return { borrows: this.#borrows(branch, requested, added), share: shareOf(this.#quota, branch, added) };
  }

  /** True if a branch would use more than its quota of a pool of which a head requests some. */
  #borrows(branch: Branch, requested: PoolAmounts, added: PoolAmounts): boolean {
    for (const [name, amount] of requested) {
      const pool = branch.pools.get(name);
      if (amount > 0 && pool !== undefined && borrowsWith(this.#quota, pool, added.get(name) ?? 0)) return true;
    }
    return false;
  }
}

/** True for a head that competes with others below a branch of a tree with fair sharing. */
function competesInTree({ leaf }: Head): boolean {
  const parent = leaf?.parent ?? null;
  return parent !== null && rootOf(parent).policy.fairSharing !== null;
}

/** What the branch above counts of amounts that are added below it: all that exceeds the branch's guarantee. */
function passedOn(use: BranchUse, branch: Branch, added: PoolAmounts): PoolAmounts {
  let passed: Map<string, number> | null = null;
  for (const [name, amount] of added) {
    const pool = branch.pools.get(name);
    const left = pool === undefined ? 0 : guaranteeLeft(use, pool);
    if (left === 0) continue;
    passed ??= new Map(added);
    passed.set(name, Math.max(0, amount - left));
  }
  return passed ?? added;
}

function goesFirst<H extends Head>(a: Contestant<H>, b: Contestant<H>): boolean {
  const one = a.ranking as Ranking;
  const other = b.ranking as Ranking;
  if (one.borrows !== other.borrows) return other.borrows;
  return (compareShares(one.share, other.share) || compareRanked(a.head, b.head)) < 0;
}
