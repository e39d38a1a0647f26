import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY, FAIR_SHARING_STRATEGIES } from "../../../../src/core/plan/model/queue-policy.ts";
import { compareRanked } from "../../../../src/core/plan/queues/order.ts";
import { compareHeads, type Head, HeadOrder } from "../../../../src/core/plan/round/head-order.ts";
import { borrowingLevel, borrowsWith } from "../../../../src/core/plan/usage/branch-use.ts";
import { type Branch, rootOf } from "../../../../src/core/plan/usage/branches.ts";
import { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { compareShares, shareOf } from "../../../../src/core/plan/usage/shares.ts";
import { job, planGang, pool, queue } from "../plan-world.ts";
import { Draw } from "../random-world.ts";

const WORLDS = 400;
const POOLS = ["gpu/h100", "gpu/a100"];
const met = { fair: 0, admitted: 0, turned: 0 };

function randomQuota(draw: Draw, queues: number): QuotaState {
  const quota = new QuotaState();
  for (const name of POOLS) quota.setPool(name, pool(name));
  for (let at = 0; at < queues; at++) {
    const parent = at === 0 || draw.chance(0.1) ? null : `q${draw.upTo(at - 1)}`;
    const made = queue(`q${at}`, { h100: draw.upTo(8), a100: draw.upTo(8) }, { parent });
    const quotas = made.quotas.map((one) => (draw.chance(0.3) ? { ...one, lendingLimit: draw.upTo(4) } : one));
    const fairSharing = draw.chance(0.7) ? FAIR_SHARING_STRATEGIES : null;
    const policy = { ...DEFAULT_POLICY, fairSharing, weight: draw.of([0, 1, 1, 3]) };
    quota.setQueue(`q${at}`, { ...made, quotas, policy });
  }
  return quota;
}

function randomHead(draw: Draw, quota: QuotaState, name: string): Head {
  const gang = planGang(job({ name, queue: name, priority: draw.upTo(1), createTimeMs: draw.upTo(2), roles: {} }));
  const account = quota.account(name, "research", "ml");
  const requested = new Map(POOLS.map((one) => [one, draw.upTo(6)]));
  const leaf = quota.branches.leaf(name);
  const level = leaf === null ? 0 : borrowingLevel(quota, leaf, requested);
  return { gang: { facts: gang, account }, rank: gang.priority + draw.upTo(1), leaf, requested, level };
}

/** The winner among heads below a branch: every contest is held anew, with each contestant's gang charged. */
function winnerIn(quota: QuotaState, branch: Branch, heads: readonly Head[]): Head | null {
  if (branch.children.length === 0) return heads.find(({ leaf }) => leaf === branch) ?? null;
  const contestants = branch.children.flatMap((child) => {
    const head = winnerIn(quota, child, heads);
    if (head === null) return [];
    const { mark } = quota;
    for (const [name, amount] of head.requested) quota.charge(head.gang.account, name, amount);
    const borrows = [...head.requested].some(([name, amount]) => {
      const of = child.pools.get(name);
      return amount > 0 && of !== undefined && borrowsWith(quota, of, 0);
    });
    const share = shareOf(quota, child);
    quota.undo(mark);
    return [{ head, borrows, share }];
  });
  contestants.sort((a, b) => {
    const nominalFirst = Number(a.borrows) - Number(b.borrows);
    return nominalFirst || compareShares(a.share, b.share) || compareRanked(a.head, b.head);
  });
  return contestants[0]?.head ?? null;
}

function nextOf(quota: QuotaState, heads: readonly Head[]): Head | undefined {
  const firsts = heads.flatMap((head) => {
    const root = head.leaf === null ? null : rootOf(head.leaf);
    if (root === null || root.policy.fairSharing === null) return [head];
    return winnerIn(quota, root, heads) ?? [];
  });
  return firsts.sort(compareHeads)[0];
}

test("heads come in the order that contests give which are all held anew after each winner", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const count = 1 + draw.upTo(9);
    const quota = randomQuota(draw, count);
    const names = draw.list(count, (at) => `q${at}`).filter(() => draw.chance(0.8));
    let left = names.map((name) => randomHead(draw, quota, name));
    const order = new HeadOrder(quota, left);
    const before = left.toSorted(compareHeads);
    for (let head = order.next(); head !== undefined; head = order.next()) {
      assert.equal(head, nextOf(quota, left), `seed ${seed}`);
      if (head !== before[before.length - left.length]) met.turned += 1;
      if (head.leaf !== null && rootOf(head.leaf).policy.fairSharing !== null) met.fair += 1;
      left = left.filter((one) => one !== head);
      if (draw.chance(0.3)) continue;
      met.admitted += 1;
      for (const [name, amount] of head.requested) quota.charge(head.gang.account, name, amount);
    }
    assert.deepEqual(left, [], `seed ${seed}`);
  }
});

test("the contests above met fair trees, admissions, and another order than that without fair sharing", () => {
  assert.ok(met.fair > WORLDS && met.admitted > WORLDS && met.turned > WORLDS / 4, JSON.stringify(met));
});
