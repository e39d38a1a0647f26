/** The rule by which gangs are preempted, apart from the search for those that do. */
import type { PreemptionReason } from "../../job/preemption.ts";
import type { RunningGang, Victim } from "./running-gang.ts";

/**
 * A set of victims is legal if they can be taken one after another, each allowed at that moment. The state of use
 * counts what is not taken yet.
 */
export type Rule = {
  /** True for a gang of the preemptor's own queue. */
  readonly isOwn: (gang: RunningGang) => boolean;
  /** Every gang that the policies of the preemptor's queue let go, in the order of Kueue. */
  readonly candidates: readonly RunningGang[];
  /** Why a candidate may go at this moment. Null: it may not. */
  readonly reasonFor: (gang: RunningGang) => PreemptionReason | null;
  /** True if the preemptor fits now that these are gone. */
  readonly fits: (gone: readonly Victim[]) => boolean;
  /**
   * True if a legal set stays legal once its gangs of the preemptor's own queue run again where there is room. The
   * state counts no victim. Omitted: it does.
   */
  readonly lasts?: (victims: readonly Victim[]) => boolean;
};
