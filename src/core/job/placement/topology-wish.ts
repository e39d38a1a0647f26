/** A group of consecutive members, by index, that run within one domain of a level. */
export type TopologySlice = {
  /** The name of the level, such as `rack`, or the label of its nodes. */
  readonly level: string;
  /** How many members each group has. */
  readonly size: number;
};

/** How near each other members run. Has at least one member; empty ones are omitted. */
export type TopologyWish = {
  /** All of them run within one domain of this level, by its name or label. At most one of it and `preferred`. */
  readonly required?: string;
  /** The same if a domain has room; else of the next coarser level, and at last in as few domains as possible. */
  readonly preferred?: string;
  /** Nested, coarse to fine: each size divides the one before it, and the first the number of replicas. */
  readonly slices?: readonly TopologySlice[];
};

/** The wish without its empty members. Undefined: nothing is left. */
export function keptWish(wish: TopologyWish | undefined): TopologyWish | undefined {
  const { required, preferred, slices = [] } = wish ?? {};
  if (!required && !preferred && slices.length === 0) return undefined;
  return {
    ...(required ? { required } : {}),
    ...(preferred ? { preferred } : {}),
    ...(slices.length === 0 ? {} : { slices: slices.map(({ level, size }) => ({ level, size })) }),
  };
}
