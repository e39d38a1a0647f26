import assert from "node:assert/strict";
import { missOf, offsOf, type Vessel } from "../../support/water-filling.ts";
import type { LedgerView } from "./ledger-view.ts";

/** What the gangs of each leaf ask for in a pool: together, and each of them. They run until something undoes them. */
export type Asked = {
  readonly pool: string;
  readonly demand: ReadonlyMap<string, number>;
  readonly gpus: number;
};

/**
 * A queue that may reclaim from all others uses its own quota at rest, or all that its gangs ask for. Holds if nobody
 * is protected, and the gangs fill nodes and quotas without a gap.
 */
export function requireOwnQuota(view: LedgerView, { pool, demand }: Omit<Asked, "gpus">, queue: string): void {
  const quota = view.queues.find(({ name }) => name === queue)?.quotas.find((one) => one.pool === pool);
  const own = Math.min(quota?.nominal ?? 0, demand.get(queue) ?? 0);
  const used = usedBy(view, pool, queue);
  assert.ok(used >= own, `queue ${queue} uses ${used} of its own ${own} ${pool}`);
}

/**
 * Queues without a quota of their own share by their weights at rest, at every queue of their tree, within one gang.
 * Holds if each may reclaim from all others, nobody is protected, and the gangs fill nodes and quotas without a gap.
 */
export function requireFairShares(view: LedgerView, { pool, demand, gpus }: Asked): void {
  const vesselsBelow = (parent: string): readonly Vessel[] =>
    view.queues
      .filter((one) => one.parent === parent)
      .map(({ name, policy }) => {
        return { name, weight: policy.weight, demand: demand.get(name) ?? 0, below: vesselsBelow(name) };
      });
  const root = view.queues.find(({ parent }) => parent === null)?.name ?? assert.fail("a tree has a root");
  const offs = offsOf(vesselsBelow(root), { used: (leaf) => usedBy(view, pool, leaf), gpus });
  assert.deepEqual(
    offs.flatMap((off) => missOf(off) ?? []),
    [],
    "shares by weights",
  );
  const quota = view.queues.flatMap(({ quotas }) => quotas.filter((one) => one.pool === pool));
  const total = quota.reduce((sum, { nominal }) => sum + nominal, 0);
  const used = [...demand.keys()].reduce((sum, leaf) => sum + usedBy(view, pool, leaf), 0);
  const wanted = [...demand.values()].reduce((sum, amount) => sum + amount, 0);
  assert.equal(used, Math.min(total, wanted), `the tree uses ${used} of ${total} ${pool}, and ${wanted} are wanted`);
}

/**
 * A gang that fits the quota of its own queue and an empty cluster is admitted within this time. Holds without faults,
 * if all gangs end after `runMsMax` at most, and those that come later have no higher priority.
 */
export function boundMs(of: {
  readonly reserveAfterMs: number;
  /** How long all GPUs would be busy with the gangs that came before. */
  readonly olderMs: number;
  readonly runMsMax: number;
  readonly tickMs: number;
}): number {
  // The gangs before it are served first. Then those end that run or start. Each step takes some looks.
  return of.reserveAfterMs + of.olderMs + 2 * of.runMsMax + 20 * of.tickMs;
}

/** `waitsSinceMs`: when it began to wait without faults. Null: it was admitted. */
export function requireSoon(waitsSinceMs: number | null, nowMs: number, boundMs: number): void {
  const waitedMs = waitsSinceMs === null ? 0 : nowMs - waitsSinceMs;
  assert.ok(waitedMs <= boundMs, `a gang that fits its queue and a cluster has waited ${waitedMs} ms of ${boundMs}`);
}

function usedBy({ allocations }: LedgerView, pool: string, queue: string): number {
  return allocations.reduce((sum, one) => {
    return one.queue === queue && one.pool === pool ? sum + one.amount : sum;
  }, 0);
}
