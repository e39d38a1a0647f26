import type { Assignment } from "../assign/assignment.ts";
import { canGrow } from "../assign/grow.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { ClassWalk } from "../queues/class-walk.ts";
import type { GangClass, GangQueue, GangRecord } from "../queues/records.ts";
import type { Head } from "./head-order.ts";

/** A queue that takes part in the round. */
export type CycleSlot = {
  readonly gangQueue: GangQueue;
  readonly isStrict: boolean;
  /** The place of its next gang that grows. */
  growing: number;
  /** Null: none of its gang classes was looked at yet. */
  classes: ClassWalk | null;
  /** True: these are the gang classes that are active, or for which something may have come, alone. */
  onlyCandidates: boolean;
  /**
   * Its first head of the round, behind which its gang classes are decided later; `all` of them are. Null: none yet.
   */
  first: GangRecord | "all" | null;
  /** True: the gang classes behind that were requested to look for victims. */
  searchesBehind: boolean;
  /** True: the head of a strict queue was refused. */
  ended: boolean;
};

/** The first gang of a queue in one cycle: one that grows, or the first of a gang class with what it would get. */
export type CycleHead = Head & {
  readonly slot: CycleSlot;
  readonly gang: GangRecord;
  readonly waits: WaitingHead | null;
};

/** A gang class, and what its first gang would get. */
export type WaitingHead = { readonly gangClass: GangClass; readonly assignment: Assignment };

/** A queue that no cycle has come to yet. */
export function newSlot(gangQueue: GangQueue, isStrict: boolean): CycleSlot {
  const none = { growing: 0, classes: null, first: null };
  return { gangQueue, isStrict, ...none, onlyCandidates: false, searchesBehind: false, ended: false };
}

/** The next gang of a queue that can grow now. Those before it cannot in this round. */
export function nextGrowing(fleet: Fleet, slot: CycleSlot): GangRecord | undefined {
  const { growing } = slot.gangQueue;
  for (; slot.growing < growing.length; slot.growing++) {
    if (canGrow(fleet, growing[slot.growing] as GangRecord)) break;
  }
  return growing[slot.growing];
}
