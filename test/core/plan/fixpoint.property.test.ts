import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FairSharingStrategy } from "../../../src/core/plan/model/queue-policy.ts";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import {
  fitsBeside,
  someStrategies,
  stateWith,
  victimsIn,
  type World,
  type WorldGang,
  without,
} from "./victims/gang-world.ts";

/** More actions than any of these worlds needs to come to rest. */
const ACTIONS_MAX = 400;

const POOL = "gpu/h100";

type Fleet = { readonly queues: readonly PlanQueue[]; readonly gangs: readonly WorldGang[] };

/** Queues below one root that share what the root has and what they lend, and gangs that all wait. */
const fleets = (
  strategies: fc.Arbitrary<readonly FairSharingStrategy[] | null>,
  { nominalMax, sizeMax }: { readonly nominalMax: number; readonly sizeMax: number },
): fc.Arbitrary<Fleet> =>
  fc
    .record({
      fairSharing: strategies,
      root: fc.integer({ min: 2, max: 12 }),
      leaves: fc.array(fc.record({ nominal: fc.nat(nominalMax), weight: fc.constantFrom(0, 0.5, 1, 2) }), {
        minLength: 2,
        maxLength: 4,
      }),
      gangs: fc.array(fc.record({ at: fc.nat(), size: fc.integer({ min: 1, max: sizeMax }), priority: fc.nat(1) }), {
        maxLength: 14,
      }),
    })
    .map(({ fairSharing, root, leaves, gangs }) => {
      const queue = (name: string, nominal: number, more: { weight: number; parent: string | null }): PlanQueue => {
        const { parent, weight } = more;
        const policy = { ...DEFAULT_POLICY, weight, fairSharing, reclaimWithinTree: "ANY" as const };
        const quotas = [{ flavor: POOL, resource: "gpu", nominal }];
        return { name, parent, strategy: "BEST_EFFORT_FIFO", policy, quotas };
      };
      const below = leaves.map(({ nominal, weight }, at) => queue(`q${at + 1}`, nominal, { weight, parent: "q0" }));
      const waiting = gangs.map(({ at, size, priority }, number) => ({
        uid: `gang-${String(number).padStart(2, "0")}`,
        queue: `q${1 + (at % leaves.length)}`,
        priority,
        createTimeMs: number,
        admitTimeMs: 0,
        evicted: false,
        uses: new Map([[POOL, size]]),
      }));
      return { queues: [queue("q0", root, { weight: 1, parent: null }), ...below], gangs: waiting };
    });

type AtRest = { readonly running: readonly WorldGang[]; readonly gaveWay: number };

/** Admits the first gang that fits, or that has victims, until nothing moves. */
function comeToRest({ queues, gangs }: Fleet): AtRest {
  let running: readonly WorldGang[] = [];
  let gaveWay = 0;
  for (let actions = 0; actions < ACTIONS_MAX; actions += 1) {
    const next = nextRunning({ queues, gangs }, running, actions);
    if (next === null) return { running, gaveWay };
    gaveWay += running.length + 1 - next.length;
    running = next;
  }
  return assert.fail("gangs preempt each other without end");
}

function nextRunning({ queues, gangs }: Fleet, running: readonly WorldGang[], nowMs: number) {
  for (const gang of gangs.filter(({ uid }) => !running.some((one) => one.uid === uid))) {
    const { uses: requested, ...rest } = gang;
    const world: World = { queues, gangs: running, taker: { ...rest, requested }, spared: new Set() };
    const admitted = { ...gang, admitTimeMs: nowMs };
    if (fitsBeside(world, running)) return [...running, admitted];
    const victims = victimsIn(world, stateWith(world, running));
    if (victims.length > 0) return [...without(running, victims), admitted];
  }
  return null;
}

/** Checks fleets once they are at rest, and that some of their gangs gave way. */
function atRest(some: fc.Arbitrary<Fleet>, law: (fleet: Fleet, running: readonly WorldGang[]) => void): void {
  let gaveWay = 0;
  const property = fc.property(some, (fleet) => {
    const end = comeToRest(fleet);
    gaveWay += end.gaveWay;
    law(fleet, end.running);
  });
  fc.assert(property, { numRuns: 300 });
  assert.ok(gaveWay > 0);
}

test("classic: gangs that take back quota come to rest", () => {
  atRest(fleets(fc.constant(null), { nominalMax: 4, sizeMax: 4 }), () => {});
});

/** Only with gangs of one size are shares level. That larger ones come to rest, too, `rest.property.test.ts` says. */
test("fair: gangs of one device come to rest, and their queues' shares are level within one gang", () => {
  atRest(fleets(someStrategies, { nominalMax: 0, sizeMax: 1 }), ({ queues, gangs }, running) => {
    const used = (queue: string) => running.filter((gang) => gang.queue === queue).length;
    const share = ({ name, policy }: PlanQueue, more: number) => {
      const use = used(name) + more;
      return use === 0 ? 0 : use / (policy?.weight ?? 1);
    };
    const [root, ...leaves] = queues as [PlanQueue, ...PlanQueue[]];
    const waits = leaves.filter(({ name }) => gangs.filter(({ queue }) => queue === name).length > used(name));
    if (waits.length > 0) assert.equal(running.length, root.quotas[0]?.nominal);
    for (const one of waits) {
      for (const other of leaves) if (used(other.name) > 0) assert.ok(share(one, 1) >= share(other, -1));
    }
  });
});
