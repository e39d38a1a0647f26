/** A group of consecutive members, by index, that run within one domain of a level. */
export type TopologySlice = {
  /** The name of the level, such as `rack`, or the label of its nodes. */
  readonly level: string;
  /** How many members each group has. */
  readonly size: number;
};

export const SLICES_MAX = 16;
/** The most members of a replica type. */
export const SLICE_SIZE_MAX = 10_000;

/** How near each other members run. Has at least one member; empty ones are omitted. */
export type TopologyWish = {
  /** All of them run within one domain of this level, by its name or label. At most one of it and `preferred`. */
  readonly required?: string;
  /** The same if a domain has room; else of the next coarser level, and at last in as few domains as possible. */
  readonly preferred?: string;
  /** Nested, coarse to fine: each size divides the one before it, and the first the number of replicas. */
  readonly slices?: readonly TopologySlice[];
};

/** A wish whose members may be empty. */
type LooseWish = { readonly [Member in keyof TopologyWish]: TopologyWish[Member] | undefined };

/** The wish without its empty members. Undefined: nothing is left. */
export function keptWish(wish: LooseWish | undefined): TopologyWish | undefined {
  const { required, preferred, slices = [] } = wish ?? {};
  if (!required && !preferred && slices.length === 0) return undefined;
  return {
    ...(required ? { required } : {}),
    ...(preferred ? { preferred } : {}),
    ...(slices.length === 0 ? {} : { slices: slices.map(({ level, size }) => ({ level, size })) }),
  };
}

type Wishing = {
  readonly placement?: { readonly topology?: TopologyWish };
  readonly replicaSpecs: Readonly<Record<string, { readonly topology?: TopologyWish }>>;
};

/** True if members of the job run in slices. Then their number is fixed while they run. */
export function hasSlices({ placement, replicaSpecs }: Wishing): boolean {
  const wishes = [placement?.topology, ...Object.values(replicaSpecs).map(({ topology }) => topology)];
  return wishes.some((wish) => (wish?.slices ?? []).length > 0);
}
