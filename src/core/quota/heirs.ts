/**
 * Serves nominees, for which others are preempted: what ends of the tokens of others is theirs, and never free for a
 * moment.
 */

/** What a nominee lacks of a pool, and whom its tokens are charged to. Its admission is the one that it is to get. */
export type Heir = {
  readonly id: number;
  readonly jobUid: string;
  readonly admission: number;
  readonly pool: string;
  readonly queue: string;
  readonly project: string;
  readonly namespace: string;
  readonly lacks: number;
  /** True: it gets allocations of its admission. Omitted: it gets holds. */
  readonly boards?: true;
};

/** An allocation that ends or becomes smaller. `kept`: what is left of it. Its heirs are of its pool. */
export type Reduced = { readonly amount: number; readonly kept: number; readonly heirs: readonly Heir[] };

/** A part of a reduced allocation that an heir gets. `kept`: the amount that the allocation has after this cut. */
export type Cut<Line> = {
  readonly line: Line;
  readonly heir: Heir;
  readonly amount: number;
  readonly kept: number;
};

/**
 * Returns what heirs get of reduced allocations, one cut after the other. Each heir gets no more than it lacks; of each
 * allocation, its first heir is served first. The rest goes free.
 */
export function cutsOf<Line extends Reduced>(lines: readonly Line[]): readonly Cut<Line>[] {
  const given = new Map<number, number>();
  return lines.flatMap((line) => {
    let left = line.amount;
    return line.heirs.flatMap((heir): readonly Cut<Line>[] => {
      const before = given.get(heir.id) ?? 0;
      const amount = Math.min(heir.lacks - before, left - line.kept);
      if (amount <= 0) return [];
      given.set(heir.id, before + amount);
      left -= amount;
      return [{ line, heir, amount, kept: left }];
    });
  });
}

/** The start of the names of tokens that were turned over to a job, also after its admission has taken them over. */
export function holdPrefix(jobUid: string): string {
  return `job/${jobUid}/hold/`;
}
