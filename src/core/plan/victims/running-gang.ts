import type { PreemptionReason } from "../../job/preemption.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import type { Branch } from "../usage/branches.ts";
import type { Account } from "../usage/quota-levels.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import type { WaitingGangs } from "./waiting-gangs.ts";

/** A gang that uses tokens, as the search for victims sees it. The state of use counts what it uses. */
export type RunningGang = {
  readonly uid: string;
  readonly account: Account;
  readonly priority: number;
  readonly createTimeMs: number;
  readonly admitTimeMs: number;
  /** True: it is being preempted already. It is taken first, because that costs nothing more. */
  readonly evicted: boolean;
  readonly uses: PoolAmounts;
  /**
   * True: these are only the members of an elastic gang beyond its minimum, which go before whole gangs. The gang
   * itself is another one of its uid, which uses the rest. Omitted: false.
   */
  readonly isGrowth?: boolean;
};

/** A gang that waits for tokens, and may have others preempted. */
export type Preemptor = {
  readonly account: Account;
  readonly priority: number;
  readonly createTimeMs: number;
  /** All that it asks for, by pool. */
  readonly requested: PoolAmounts;
  /** The pools of which it does not get enough now. Only gangs that use one of them are taken. */
  readonly needed: ReadonlySet<string>;
  /** True: it has the quota, and lacks only nodes. Omitted: false. */
  readonly lacksOnlyNodes?: boolean;
  /** True: it was preempted, and its tree has not changed since. Omitted: false. */
  readonly wasPreempted?: boolean;
};

/** Whom a preemptor may have preempted, and what must hold for it to fit. */
export type VictimSearch = {
  /** The state of use. A search charges and discharges it, and leaves it as it was. */
  readonly quota: QuotaState;
  /** The running gangs of one queue. Those of queues below it are not among them. */
  readonly gangsOf: (queue: string) => readonly RunningGang[];
  /** The leaves of a tree that have running gangs which use one of some pools. Omitted: all may have. */
  readonly leavesWith?: (root: Branch, pools: ReadonlySet<string>) => readonly Branch[];
  /** What waits in the preemptor's queue beside it, in their order. Omitted: nothing does. */
  readonly others?: () => readonly WaitingGangs[];
  /** The amounts of a running gang by each choice of flavors that it has once it waits. Omitted: it has none. */
  readonly choicesOf?: (gang: RunningGang) => WaitingGangs["choices"];
  /** True for a gang that was preempted, and whose tree has not changed since. Omitted: none was. */
  readonly wasPreempted?: (gang: RunningGang) => boolean;
  /** Leaves out gangs that are protected. Omitted: none is. */
  readonly mayTake?: (gang: RunningGang) => boolean;
  /** What must hold besides quota once these gangs are gone, such as capacity on nodes. Omitted: nothing. */
  readonly fitsWithout?: (gone: readonly Victim[]) => boolean;
  /** False: surely that never holds, also if only some of these gangs are gone. Omitted: nothing is known. */
  readonly mayFitWithout?: (gone: readonly RunningGang[]) => boolean;
  /** Orders gangs that are equal in all but their uids. Omitted: by uid. */
  readonly prefer?: (a: RunningGang, b: RunningGang) => number;
};

export type Victim = { readonly gang: RunningGang; readonly reason: PreemptionReason };

/** Takes off the use what gangs are charged with. `undo` charges it again. */
export function dischargeGangs(quota: QuotaState, gangs: Iterable<Pick<RunningGang, "account" | "uses">>): void {
  for (const { account, uses } of gangs) for (const [pool, amount] of uses) quota.discharge(account, pool, amount);
}

/** Charges gangs with what they use. */
export function chargeGangs(quota: QuotaState, gangs: Iterable<Pick<RunningGang, "account" | "uses">>): void {
  for (const { account, uses } of gangs) for (const [pool, amount] of uses) quota.charge(account, pool, amount);
}

/** Asks while the use does not count these gangs. */
export function whileGone<T>(
  quota: QuotaState,
  gangs: Iterable<Pick<RunningGang, "account" | "uses">>,
  ask: () => T,
): T {
  const { mark } = quota;
  dischargeGangs(quota, gangs);
  const answer = ask();
  quota.undo(mark);
  return answer;
}

/** True for the minimum of an elastic gang whose growth is among these. */
export function hasGrowthIn({ uid, isGrowth }: RunningGang, gangs: Iterable<RunningGang>): boolean {
  if (isGrowth === true) return false;
  for (const one of gangs) if (one.uid === uid && one.isGrowth === true) return true;
  return false;
}

/** True for the growth of an elastic gang whose minimum is a victim, too. It cannot stay without that. */
export function goesWithMinimum({ uid, isGrowth }: RunningGang, victims: readonly Victim[]): boolean {
  return isGrowth === true && victims.some(({ gang }) => gang.uid === uid && gang.isGrowth !== true);
}

/** Counts what a preemptor asks for as used. */
export function chargeRequests(
  quota: QuotaState,
  { account, requested }: Pick<Preemptor, "account" | "requested">,
): void {
  for (const [pool, amount] of requested) quota.charge(account, pool, amount);
}
