/**
 * Where nodes decide, no other victims that the policies allow would cost less, as brute force finds. If Kueue's rules
 * find no victims at all, since a queue stops to borrow too soon in their order, nobody else is looked for.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import { queue } from "../plan-world.ts";
import { Draw } from "../random-world.ts";
import { SmallFleet } from "../small-fleet.ts";

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 300);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);
const GANGS_MAX = 12;
/** Far more than all nodes have. */
const PLENTY = 1_000;
const TAKER = { name: "taker", queue: "own", priority: 3 };

/** The highest priority, the number of gangs, and the GPU-seconds that they lose. */
type Cost = readonly [number, number, number];

/** Gangs have come and gone, so that every node has a little that is free. `lentQuota`: that of the other queue. */
function randomFleet(draw: Draw, ownQuota: number, lentQuota: number) {
  const policy = { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "ANY" } as const;
  const nodes = draw.list(2 + draw.upTo(2), () => 4 + draw.upTo(4));
  // Nobody is protected, also not after a preemption.
  const all = { ...DEFAULT_POLICY, minRuntimePreemptMs: 0, minRuntimeReclaimMs: 0 };
  const tree = [
    queue("all", { h100: PLENTY }, { policy: all }),
    queue("own", { h100: ownQuota }, { parent: "all", policy }),
    queue("lent", { h100: lentQuota }, { parent: "all", policy: DEFAULT_POLICY }),
  ];
  const fleet = new SmallFleet(tree, nodes, true);
  for (let at = 0; at < 2 * GANGS_MAX; at++) {
    const of = { priority: draw.upTo(2), pods: 1 + draw.upTo(1), gpus: 1 + draw.upTo(2) };
    fleet.submit({ name: `g${at}`, queue: draw.of(["own", "lent"]), ...of, createTimeMs: at });
    fleet.step();
    fleet.nowMs += draw.upTo(3) * 1_000;
    if (draw.chance(0.2)) fleet.end(draw.of(fleet.running().map(({ uid }) => uid)));
  }
  for (const { uid, waits } of [...fleet.gangs.values()]) if (waits) fleet.end(uid);
  for (const { uid } of fleet.running().slice(GANGS_MAX)) fleet.end(uid);
  return fleet;
}

function costOf(gangs: readonly PlanGang[], nowMs: number): Cost {
  const lost = gangs.reduce((sum, gang) => sum + gpusOf(gang) * (nowMs - admitTimeOf(gang)), 0);
  return [Math.max(...gangs.map(({ priority }) => priority)), gangs.length, lost];
}

function compareCosts(a: Cost, b: Cost): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/** Other queues first, lower priority, admitted later, uid. */
function inOrder(gangs: readonly PlanGang[]): readonly PlanGang[] {
  const isOwn = (gang: PlanGang) => (gang.queue === TAKER.queue ? 1 : 0);
  return [...gangs].sort(
    (a, b) =>
      isOwn(a) - isOwn(b) || a.priority - b.priority || admitTimeOf(b) - admitTimeOf(a) || (a.uid < b.uid ? -1 : 1),
  );
}

/** True if the policies let these gangs give way in their order: the other queue borrows until the last one. */
function isAllowed(fleet: SmallFleet, gone: readonly PlanGang[], lentQuota: number): boolean {
  let used = fleet.used("lent");
  for (const gang of inOrder(gone)) {
    if (gang.queue === TAKER.queue) {
      if (gang.priority >= TAKER.priority) return false;
      continue;
    }
    if (used <= lentQuota) return false;
    used -= gpusOf(gang);
  }
  return true;
}

function fitsWithout(
  fleet: SmallFleet,
  gone: readonly PlanGang[],
  of: { readonly pods: number; readonly gpus: number },
) {
  const free = fleet.freeGpus().map((gpus, at) => {
    const used = fleet.gpusOnNodes()[at];
    return gone.reduce((sum, { uid }) => sum + (used?.get(uid) ?? 0), gpus);
  });
  return free.reduce((sum, gpus) => sum + Math.floor(gpus / of.gpus), 0) >= of.pods;
}

function gpusOf({ ask }: PlanGang): number {
  const { replicas = 0 } = ask.roles[0] ?? {};
  return replicas * ((ask.podClasses[0]?.requests["nvidia.com/gpu"] ?? 0) / 1000);
}

function admitTimeOf({ admissions }: PlanGang): number {
  return admissions.at(-1)?.admitTimeMs ?? 0;
}

function subsets<T>([first, ...rest]: readonly T[]): readonly (readonly T[])[] {
  if (first === undefined) return [[]];
  const without = subsets(rest);
  return [...without, ...without.map((set) => [first, ...set])];
}

test("where nodes decide, the victims cost what brute force finds, and are allowed by the policies", () => {
  const met = { taken: 0, several: 0, reclaimed: 0, nobody: 0, missed: 0 };
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const draw = new Draw(seed);
    const lentQuota = draw.upTo(8);
    const fleet = randomFleet(draw, PLENTY, lentQuota);
    const of = { pods: 1 + draw.upTo(2), gpus: 1 + draw.upTo(6) };
    const running = fleet.running();
    if (fitsWithout(fleet, [], of)) continue;
    const allowed = subsets(running).filter(
      (gone) => gone.length > 0 && fitsWithout(fleet, gone, of) && isAllowed(fleet, gone, lentQuota),
    );
    const costs = allowed.map((gone) => costOf(gone, fleet.nowMs)).sort(compareCosts);
    fleet.submit({ ...TAKER, ...of });
    const before = new Map(fleet.gangs);
    const nowMs = fleet.nowMs;
    const [preemption] = fleet.step().preemptions;
    const victims = (preemption?.victims ?? []).map(({ jobUid }) => before.get(jobUid) as PlanGang);
    if (victims.length === 0) {
      const own = allowed.filter((gone) => gone.every((gang) => gang.queue === TAKER.queue));
      assert.deepEqual(own, [], `seed ${seed}: nobody gives way`);
      met.nobody += 1;
      if (allowed.length > 0) met.missed += 1;
      continue;
    }
    assert.ok(victims.every(({ uid }) => running.some((one) => one.uid === uid)));
    const words = `seed ${seed}: ${victims.map(({ uid }) => uid).join(", ")}`;
    assert.deepEqual(costOf(victims, nowMs), costs[0], words);
    met.taken += 1;
    if (victims.length > 1) met.several += 1;
    if (victims.some((gang) => gang.queue !== TAKER.queue)) met.reclaimed += 1;
  }
  const { taken, several, reclaimed, nobody, missed } = met;
  assert.ok(missed < WORLDS / 20, JSON.stringify(met));
  assert.ok(taken > WORLDS / 4 && several > WORLDS / 20 && reclaimed > WORLDS / 20 && nobody > 0, JSON.stringify(met));
});
