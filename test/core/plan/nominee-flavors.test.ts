import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { playToRest, RESOURCE, RestFleet } from "./rest-world.ts";

const queueOf = (
  name: string,
  parent: string | null,
  [h100, a100]: readonly [number, number],
  policy: Partial<QueuePolicy>,
): PlanQueue => ({
  name,
  parent,
  strategy: "BEST_EFFORT_FIFO",
  quotas: [
    { flavor: "gpu/h100", resource: RESOURCE, nominal: h100 },
    { flavor: "gpu/a100", resource: RESOURCE, nominal: a100 },
  ],
  policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "ANY", ...policy },
});

const STOPS: QueuePolicy["fungibility"] = {
  whenCanBorrow: "MAY_STOP_SEARCH",
  whenCanPreempt: "MAY_STOP_SEARCH",
  preference: null,
};
const PREFERS: QueuePolicy["fungibility"] = {
  whenCanBorrow: "TRY_NEXT_FLAVOR",
  whenCanPreempt: "TRY_NEXT_FLAVOR",
  preference: "PREEMPTION_OVER_BORROWING",
};

/** `low` runs on the h100 that `high` takes. The a100 is free all the time. */
const trees: Readonly<Record<string, readonly PlanQueue[]>> = {
  "within one queue": [queueOf("low", null, [1, 1], { fungibility: STOPS })],
  "across queues": [
    queueOf("all", null, [0, 1], {}),
    queueOf("low", "all", [0, 0], {}),
    queueOf("high", "all", [1, 0], { fungibility: STOPS }),
  ],
  "across queues that share fairly": [
    queueOf("all", null, [0, 1], { fairSharing: FAIR_SHARING_STRATEGIES }),
    queueOf("low", "all", [0, 0], {}),
    queueOf("high", "all", [1, 0], { fungibility: STOPS }),
  ],
  "for a queue that prefers preemption over borrowing": [
    queueOf("all", null, [0, 1], {}),
    queueOf("low", "all", [0, 0], {}),
    queueOf("high", "all", [1, 0], { fungibility: PREFERS }),
  ],
};

for (const [name, queues] of Object.entries(trees)) {
  test(`a nominee runs on what its victims gave, also if another flavor is free: ${name}`, () => {
    const fleet = new RestFleet({ queues }, { drainRounds: 2 });
    fleet.submit({ uid: "low", queue: "low", size: 1, priority: 0, createTimeMs: 0 });
    playToRest(fleet);
    assert.equal(fleet.running, "low:1:gpu/h100");
    const queue = queues.at(-1)?.name ?? "";
    fleet.submit({ uid: "high", queue, size: 1, priority: 1, createTimeMs: 1 });
    playToRest(fleet);
    assert.equal(fleet.running, "high:1:gpu/h100 low:1:gpu/a100");
    assert.equal(fleet.preempted, 1);
  });
}
