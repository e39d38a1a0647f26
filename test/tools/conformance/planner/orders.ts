import { compareHeads } from "../../../../src/core/plan/round/head-order.ts";
import type { Branch } from "../../../../src/core/plan/usage/branches.ts";
import { candidateOrder } from "../../../../src/core/plan/victims/order.ts";
import { TargetQueues } from "../../../../src/core/plan/victims/target-queues.ts";
import { runningGang } from "./victims.ts";
import { type CaseGang, type CaseState, leafOf, quotaStateOf } from "./world.ts";

type VictimOrder = { readonly input: { readonly gangs: readonly CaseGang[]; readonly queue: string } };

/** The order of candidates. A gang that was never admitted counts as admitted now. */
export function runVictimOrder({ input: { gangs, queue: preemptorQueue } }: VictimOrder): object {
  const ordered = gangs.map(({ id: uid, queue, priority, admitted, evicted }) => {
    const admitTimeMs = admitted?.sinceMs ?? 0;
    return { uid, account: { queue }, priority, admitTimeMs, evicted: evicted !== undefined };
  });
  return { order: ordered.sort(candidateOrder(preemptorQueue)).map(({ uid }) => uid) };
}

type TargetQueueOrder = {
  readonly input: CaseState & {
    readonly gangs: readonly CaseGang[];
    readonly queue: string;
    readonly candidateQueues: readonly string[];
    /** What is done with each queue in turn: its first gang is taken, or it is dropped. Then: taken. */
    readonly actions: readonly string[];
  };
};

/** The queues that gangs are taken from, in turn. Taking one here takes nothing off the state. */
export function runTargetQueueOrder({ input }: TargetQueueOrder): object {
  const state = quotaStateOf(input, { fairSharing: true, strategies: [] });
  const running = input.gangs.flatMap((gang) => runningGang(state, gang));
  const order = candidateOrder(input.queue);
  const byLeaf = new Map(
    input.candidateQueues.map((queue) => {
      const gangs = running.filter(({ account }) => account.queue === queue);
      return [leafOf(state, queue), gangs.sort(order)] as const;
    }),
  );
  const candidates = { leaves: [...byLeaf.keys()], of: (leaf: Branch) => byLeaf.get(leaf) ?? [] };
  const targets = new TargetQueues(state, leafOf(state, input.queue), { candidates, order });
  const found: string[] = [];
  for (let leaf = targets.next(); leaf !== null; leaf = targets.next()) {
    if (input.actions[found.length] === "drop") targets.drop(leaf);
    else targets.shift(leaf);
    found.push(leaf.name);
  }
  return { order: found };
}

type QueueOrder = {
  readonly input: { readonly gangs: readonly (CaseGang & { readonly borrowingLevel: number })[] };
};

/** The order of heads in trees without fair sharing. */
export function runQueueOrder({ input: { gangs } }: QueueOrder): object {
  const heads = gangs.map(({ id: uid, priority, createTime: createTimeMs, borrowingLevel: level }) => {
    return { level, rank: priority, gang: { facts: { uid, priority, createTimeMs } } };
  });
  return { order: heads.sort(compareHeads).map(({ gang }) => gang.facts.uid) };
}
