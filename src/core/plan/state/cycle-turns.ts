import type { Assignment } from "./assignment.ts";
import type { Entry, Lane, Line } from "./gang-lines.ts";
import { canGrow } from "./grow.ts";
import type { Head } from "./head-order.ts";
import type { LaneWalk } from "./lane-walk.ts";
import type { Parts } from "./state-parts.ts";

/** A queue that takes part in the round. */
export type CycleTurns = {
  readonly line: Line;
  readonly isStrict: boolean;
  /** The place of its next gang that grows. */
  growing: number;
  /** Null: none of its lanes was looked at yet. */
  lanes: LaneWalk | null;
  /** True: these are the lanes that are awake, or for which something may have come, alone. */
  onlyWakeful: boolean;
  /** Its first head of the round, behind which its lanes are decided later; `all` of them are. Null: none yet. */
  first: Entry | "all" | null;
  /** True: the lanes behind that were told to look for victims. */
  searchesBehind: boolean;
  /** True: the head of a strict queue was refused. */
  ended: boolean;
};

/** The first gang of a queue in one cycle: one that grows, or the first of a lane with what it would get. */
export type CycleHead = Head & {
  readonly turns: CycleTurns;
  readonly entry: Entry;
  readonly waits: WaitingHead | null;
};

/** A lane, and what its first gang would get. */
export type WaitingHead = { readonly lane: Lane; readonly assignment: Assignment };

/** A queue that no cycle has come to yet. */
export function newTurns(line: Line, isStrict: boolean): CycleTurns {
  const none = { growing: 0, lanes: null, first: null };
  return { line, isStrict, ...none, onlyWakeful: false, searchesBehind: false, ended: false };
}

/** The next gang of a queue that can grow now. Those before it cannot in this round. */
export function nextGrowing(parts: Parts, turns: CycleTurns): Entry | undefined {
  const { growing } = turns.line;
  for (; turns.growing < growing.length; turns.growing++) {
    if (canGrow(parts, growing[turns.growing] as Entry)) break;
  }
  return growing[turns.growing];
}
