/** A refusal says why nobody gives way although a policy allows it: gangs are protected. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { FLAVOR, RESOURCE, VirtualFleet, type VirtualGang } from "../../support/virtual-fleet.ts";
import { NOW } from "./plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const FREEZE = { by: "admin", atMs: NOW, reason: "audit" };

type Case = {
  /** Of the queue that borrows. */
  readonly owner?: Partial<QueuePolicy>;
  readonly taker?: Partial<QueuePolicy>;
  readonly runs?: Partial<VirtualGang>;
  readonly frozen?: boolean;
  /** What follows the numbers of the quota. */
  readonly says: string;
};

const until = (ms: number) => `until ${new Date(NOW + ms).toISOString()} at the latest`;
const OFTEN = "; gangs that would give way for it were preempted as often as they may be";

const cases: Readonly<Record<string, Case>> = {
  "a minimum run time": {
    owner: { minRuntimeReclaimMs: 60_000 },
    says: `; gangs that would give way for it are protected by a minimum run time, ${until(60_000)}`,
  },
  "a gang that was preempted before, where no minimum run time is set": {
    runs: { preemptions: 4 },
    says: `; gangs that would give way for it are protected by a minimum run time, ${until(8_000)}`,
  },
  "a gang that was preempted often enough, by its job": { runs: { preemptions: 0, maxPreemptions: 0 }, says: OFTEN },
  "a gang that was preempted often enough, by its queue": { owner: { maxPreemptions: 0 }, says: OFTEN },
  "a frozen queue": { frozen: true, says: "; gangs that would give way for it are frozen" },
  "nothing if the policy allows nobody, although a minimum run time would protect them": {
    owner: { minRuntimeReclaimMs: 60_000 },
    taker: { reclaimWithinTree: "LOWER_PRIORITY" },
    says: "",
  },
  "a minimum run time that is in the way before a budget is": {
    owner: { minRuntimeReclaimMs: 60_000 },
    taker: { preemptionsPerHour: 0 },
    says: `; gangs that would give way for it are protected by a minimum run time, ${until(60_000)}`,
  },
};

/** Queue `owner` has borrowed all of `taker`, whose gang waits. */
function fleetOf({ owner, taker: preemptor, runs, frozen = false }: Case): VirtualFleet {
  const queue = (name: string, policy: Partial<QueuePolicy> = {}): PlanQueue => ({
    ...{ name, parent: name === "all" ? null : "all", strategy: "BEST_EFFORT_FIFO" },
    quotas: [{ flavor: FLAVOR, resource: RESOURCE, nominal: name === "all" ? 0 : 4 }],
    policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, ...policy },
  });
  const queues = [queue("all"), queue("owner", owner), queue("taker", { reclaimWithinTree: "ANY", ...preemptor })];
  const fleet = new VirtualFleet(queues);
  fleet.submit({ uid: "r", queue: "owner", priority: 0, units: 8, createTimeMs: NOW, ...runs });
  for (const planned of fleet.state.round(NOW, BOUNDS).admissions) fleet.admit(planned, NOW);
  if (frozen) fleet.setQueue({ ...queue("owner", owner), freeze: FREEZE });
  fleet.submit({ uid: "w", queue: "taker", priority: 0, units: 4, createTimeMs: NOW });
  return fleet;
}

/** The words of the gang that waits, and whether anybody gives way for it. */
function roundAt(fleet: VirtualFleet, nowMs: number) {
  let words = "";
  const plan = fleet.state.round(nowMs, BOUNDS, ({ refused, admissions }, { fleet: known, pendingUse }) => {
    for (const { gang, cause } of refused) {
      words = new RefusalMessages(known, { callers: [], admissions, pendingUse }).refusalOf(gang, cause).message;
    }
  });
  return { words, victims: plan.preemptions.flatMap((one) => one.victims.map(({ jobUid }) => jobUid)) };
}

for (const [name, of] of Object.entries(cases)) {
  test(`a refusal tells of ${name}`, () => {
    const { words, victims } = roundAt(fleetOf(of), NOW);
    assert.deepEqual(victims, []);
    assert.equal(words, `needs 4 of ${FLAVOR}; queue all uses 8 of 8 (held by default/r)${of.says}`);
  });
}

test("a gang that is protected no longer gives way", () => {
  const fleet = fleetOf({ owner: { minRuntimeReclaimMs: 60_000 }, says: "" });
  assert.deepEqual(roundAt(fleet, NOW + 59_999).victims, []);
  assert.deepEqual(roundAt(fleet, NOW + 60_000).victims, ["r"]);
});
