/** What one round decides at most. */
export type RoundBounds = {
  /** The most admissions and growths that are planned. The next round plans the others. */
  readonly admissionsMax: number;
  /** The most gangs whose reasons are reported. The next round reports the others. Omitted: all are reported. */
  readonly refusalsMax?: number;
  /** The most cycles. The next round plans the others. Omitted: as many as admit a gang. */
  readonly cyclesMax?: number;
  /** The most gangs for which the round looks whom they may preempt. Later rounds look for the others. Omitted: all. */
  readonly searchesMax?: number;
  /** The most reservations that a pool has at a time. Omitted: one. */
  readonly reservationsPerPool?: number;
  /** Asked at least once a gang. True: the round ends at once and throws `RoundStopped`. Omitted: never. */
  readonly isStopped?: () => boolean;
};

/** Thrown by a round that was stopped. The state has lost its order then: make a new one. */
export class RoundStopped extends Error {
  constructor() {
    super("the planner's round was stopped");
  }
}
