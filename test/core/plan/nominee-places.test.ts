import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { NotInVain } from "./not-in-vain.ts";
import { playToRest, RESOURCE, RestFleet, type RestGang, type Rooms } from "./rest-world.ts";

const queueOf = (name: string, h100: number, a100 = 0): PlanQueue => ({
  ...{ name, parent: "all", strategy: "BEST_EFFORT_FIFO" },
  quotas: [
    { flavor: "gpu/h100", resource: RESOURCE, nominal: h100 },
    { flavor: "gpu/a100", resource: RESOURCE, nominal: a100 },
  ],
  policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "ANY" },
});

const gang = (uid: string, queue: string, size: number, priority: number): RestGang => {
  return { uid, queue, size, priority, createTimeMs: 0 };
};

type Row = {
  readonly queues: readonly PlanQueue[];
  readonly rooms: Rooms;
  /** Each wave comes once the world is at rest. */
  readonly waves: readonly (readonly RestGang[])[];
  /** These come one round after the last wave. Omitted: none. */
  readonly late?: readonly RestGang[];
  /** How many rounds the first victim takes to leave, then the next one. The last number also counts for all others. */
  readonly drains: readonly number[];
  readonly running: string;
};

const rows: Readonly<Record<string, Row>> = {
  "although an earlier gang of its queue can never run, and others ask for its room": {
    queues: [queueOf("all", 0), queueOf("q", 8), queueOf("other", 8)],
    rooms: { east: { h100: 2 } },
    waves: [[gang("low", "q", 2, 0)], [gang("giant", "q", 3, 1), gang("high", "q", 2, 1), gang("same", "other", 2, 0)]],
    ...{ drains: [2], running: "high:2:gpu/h100" },
  },
  "although another nominee waits longer for the victims of its own": {
    queues: [queueOf("all", 0), queueOf("q", 8), queueOf("other", 8)],
    rooms: { east: { h100: 5 } },
    waves: [
      [gang("low0", "q", 3, 0), gang("low1", "other", 2, 0)],
      [gang("high0", "q", 3, 1), gang("high1", "other", 2, 1)],
    ],
    ...{ drains: [5, 1], running: "high0:3:gpu/h100 high1:2:gpu/h100" },
  },
  "although another cluster has room before its victims have left": {
    queues: [queueOf("all", 0), queueOf("q", 8), queueOf("other", 8)],
    rooms: { east: { h100: 2 }, north: { h100: 4 } },
    waves: [
      [gang("low0", "q", 2, 0), gang("low1", "other", 4, 0)],
      [gang("high0", "q", 2, 1), gang("high1", "other", 2, 1)],
    ],
    ...{ drains: [5, 1], running: "high0:2:gpu/h100 high1:2:gpu/h100 low0:2:gpu/h100" },
  },
  "although an earlier gang of its queue comes for its place, and another nominee gets the room for that": {
    queues: [queueOf("all", 0), queueOf("q", 4), queueOf("other", 8)],
    rooms: { east: { h100: 8 } },
    waves: [[gang("low0", "q", 4, 0), gang("low1", "other", 4, 0)], [gang("high0", "q", 2, 1)]],
    late: [gang("high1", "other", 6, 3), gang("higher", "q", 4, 2)],
    ...{ drains: [3], running: "high0:2:gpu/h100 high1:6:gpu/h100" },
  },
  "unless an earlier gang of its queue takes a part of that, and could wait for another flavor": {
    queues: [queueOf("all", 0), queueOf("q", 4), queueOf("other", 0, 2)],
    rooms: { east: { h100: 4, a100: 2 } },
    waves: [
      [gang("low0", "q", 2, 0), gang("low1", "q", 2, 0)],
      [gang("low2", "other", 2, 0)],
      [gang("high0", "q", 4, 2), gang("high1", "other", 1, 1)],
    ],
    late: [gang("higher", "q", 1, 3)],
    ...{ drains: [0, 5], running: "high1:1:gpu/a100 higher:1:gpu/h100 low0:2:gpu/h100" },
  },
};

for (const [when, { queues, rooms, waves, late = [], drains, running }] of Object.entries(rows)) {
  test(`a nominee runs where its victims ran ${when}`, () => {
    const left = [...drains];
    const fleet = new RestFleet(
      { queues },
      { rooms, drainRounds: () => (left.length > 1 ? left.shift() : left[0]) ?? 0 },
    );
    for (const [at, wave] of waves.entries()) {
      for (const one of wave) fleet.submit(one);
      const law = new NotInVain(fleet, when);
      if (at === waves.length - 1 && late.length > 0) {
        law.see(fleet.step());
        for (const one of late) fleet.submit(one);
      }
      playToRest(fleet, law.see);
      law.end();
    }
    assert.equal(fleet.running, running);
  });
}
