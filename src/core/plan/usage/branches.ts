import { compareText } from "../../../runtime/compare-text.ts";
import { type TreePlace, type TreeQuota, treePlacesOf } from "../../quota/tree.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import { treeQueue } from "../model/tree-queue.ts";

/** A branch in one pool. */
export type BranchPool = {
  readonly pool: string;
  /** The number of the level at which the state counts its use. */
  readonly level: number;
  /** True: only the allocations that name the queue itself count. False: those of the queues below it count too. */
  readonly ownOnly: boolean;
  /** The branch's quota, with what the branches below lend to it. */
  readonly nominal: number;
  /** The part of `nominal` that the branch above never sees. */
  readonly guarantee: number;
  /** Null: no limit. */
  readonly borrowingLimit: number | null;
  /** What the branch could use if nothing were in use. */
  readonly potential: number;
  /** The height of the branch. */
  readonly height: number;
  /** The branch above in the same pool. Null: the branch is a root. */
  readonly above: BranchPool | null;
};

/** The pools of a branch that count the same resource, and what the branch above can lend of it in all its flavors. */
export type BranchResource = {
  readonly resource: string;
  readonly pools: readonly BranchPool[];
  readonly lendable: number;
};

/**
 * A queue with all queues below it. A queue without queues below is a leaf. One with queues below has one more leaf
 * below it, of the same name, which holds its own gangs: its quota is that of the queue itself, its weight is 1.
 */
export type Branch = {
  readonly name: string;
  readonly parent: Branch | null;
  /** By name; the leaf of the queue itself comes first. Empty: the branch is a leaf. */
  readonly children: readonly Branch[];
  /** The leaves at or below the branch. */
  readonly leaves: readonly Branch[];
  /** The distance to the farthest leaf below. 0: the branch is a leaf. */
  readonly height: number;
  readonly weight: number;
  readonly policy: QueuePolicy;
  readonly pools: ReadonlyMap<string, BranchPool>;
  /** By name. */
  readonly resources: readonly BranchResource[];
};

/** The branches of all trees. */
export type Branches = {
  /** The whole branch of a queue. */
  readonly of: (queue: string) => Branch | null;
  /** The leaf that holds the gangs of a queue. */
  readonly leaf: (queue: string) => Branch | null;
  /** Those for which some queue has a quota. */
  readonly flavors: readonly string[];
};

/** Returns the number of the level at which a queue's use of a pool counts. */
export type LevelOf = (queue: string, pool: string) => number;

export function branchesOf(queues: readonly PlanQueue[], levelOf: LevelOf): Branches {
  const builder = new Builder(queues, levelOf);
  const leaf = (queue: string) => {
    const branch = builder.branches.get(queue) ?? null;
    return branch?.children[0]?.name === queue ? branch.children[0] : branch;
  };
  return { of: (queue) => builder.branches.get(queue) ?? null, leaf, flavors: [...builder.resources.keys()] };
}

/** The branches from a branch up to its root, itself first. */
export function* upward(branch: Branch): Generator<Branch> {
  for (let at: Branch | null = branch; at !== null; at = at.parent) yield at;
}

export function rootOf(branch: Branch): Branch {
  let at = branch;
  while (at.parent !== null) at = at.parent;
  return at;
}

type Draft = Omit<Branch, "children" | "leaves" | "resources"> & {
  children: readonly Branch[];
  leaves: readonly Branch[];
  resources: readonly BranchResource[];
};

/** What a branch could use of each pool of its tree if nothing were in use. */
type Potentials = ReadonlyMap<string, number>;

class Builder {
  readonly branches = new Map<string, Branch>();
  readonly #queues: ReadonlyMap<string, PlanQueue>;
  readonly #below: ReadonlyMap<string | null, readonly TreePlace[]>;
  /** By flavor. */
  readonly resources = new Map<string, string>();
  readonly #levelOf: LevelOf;

  constructor(queues: readonly PlanQueue[], levelOf: LevelOf) {
    this.#queues = new Map(queues.map((queue) => [queue.name, queue]));
    this.#levelOf = levelOf;
    for (const { quotas } of queues) for (const { flavor, resource } of quotas) this.resources.set(flavor, resource);
    const places = treePlacesOf(queues.map(treeQueue));
    const byName = places.toSorted((a, b) => compareText(a.name, b.name));
    this.#below = Map.groupBy(byName, ({ parent }) => parent);
    for (const root of this.#below.get(null) ?? []) this.#add(root, null, { lent: new Map() });
  }

  #add(place: TreePlace, parent: Branch | null, { lent }: { readonly lent: Potentials }): Branch {
    const { name, quotas } = place;
    const below = this.#below.get(name) ?? [];
    const height = this.#heightOf(name);
    const ownOnly = below.length === 0;
    const pools = this.#poolsOf(quotas, { name, parent, height, ownOnly });
    const policy = this.#queues.get(name)?.policy ?? DEFAULT_POLICY;
    const resources = this.#resourcesOf(pools, lent);
    const { weight } = policy;
    const branch: Draft = { name, parent, children: [], leaves: [], height, weight, policy, pools, resources };
    this.branches.set(name, branch);
    if (below.length === 0) {
      branch.leaves = [branch];
      return branch;
    }
    const potentials = new Map(lent);
    for (const [pool, { potential }] of pools) potentials.set(pool, potential);
    const places = below.map((child) => this.#add(child, branch, { lent: potentials }));
    branch.children = [this.#ownLeaf(branch, place, potentials), ...places];
    branch.leaves = branch.children.flatMap(({ leaves }) => leaves);
    return branch;
  }

  #ownLeaf(parent: Branch, { name, quotas }: TreePlace, lent: Potentials): Branch {
    const own = quotas.map((quota) => ({ ...quota, nominal: quota.own, guarantee: 0, borrowingLimit: null }));
    const pools = this.#poolsOf(own, { name, parent, height: 0, ownOnly: true });
    const { policy } = parent;
    const resources = this.#resourcesOf(pools, lent);
    const leaf: Draft = { name, parent, children: [], leaves: [], height: 0, weight: 1, policy, pools, resources };
    leaf.leaves = [leaf];
    return leaf;
  }

  #poolsOf(
    quotas: readonly TreeQuota[],
    of: Pick<Branch, "name" | "parent" | "height"> & { readonly ownOnly: boolean },
  ): ReadonlyMap<string, BranchPool> {
    const { height, ownOnly } = of;
    return new Map(
      quotas.map(({ pool, nominal, guarantee, borrowingLimit }) => {
        const above = of.parent?.pools.get(pool) ?? null;
        const most = borrowingLimit === null ? Number.POSITIVE_INFINITY : nominal - guarantee + borrowingLimit;
        const potential = above === null ? nominal : guarantee + Math.min(above.potential, most);
        const level = this.#levelOf(of.name, pool);
        return [pool, { pool, level, ownOnly, nominal, guarantee, borrowingLimit, potential, height, above }];
      }),
    );
  }

  #resourcesOf(pools: ReadonlyMap<string, BranchPool>, lent: Potentials): readonly BranchResource[] {
    const lendable = new Map<string, number>();
    for (const [pool, potential] of lent) {
      const resource = this.#resourceOf(pool);
      lendable.set(resource, (lendable.get(resource) ?? 0) + potential);
    }
    const byResource = Map.groupBy(pools.values(), ({ pool }) => this.#resourceOf(pool));
    return [...byResource]
      .map(([resource, ofResource]) => ({ resource, pools: ofResource, lendable: lendable.get(resource) ?? 0 }))
      .sort((a, b) => compareText(a.resource, b.resource));
  }

  #resourceOf(pool: string): string {
    return this.resources.get(pool) ?? pool;
  }

  #heightOf(name: string): number {
    const below = this.#below.get(name) ?? [];
    return below.reduce((most, child) => Math.max(most, this.#heightOf(child.name) + 1), 0);
  }
}
