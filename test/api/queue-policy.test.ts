import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { policyFromProto, policyNotes, policyToProto } from "../../src/api/queue/convert-policy.ts";
import { DEFAULT_POLICY, FAIR_SHARING_STRATEGIES } from "../../src/core/plan/model/queue-policy.ts";
import { OnClusterLost } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import {
  BorrowWithinPolicy,
  FairSharingStrategy,
  FlavorPreference,
  FlavorSearch,
  ReclaimWithinTree,
  WithinQueuePreemption,
} from "../../src/gen/gangway/v1/queue_policy_pb.ts";
import { type Queue, QueueSchema, QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { somePolicy } from "../core/plan/policy-arbitraries.ts";
import { startFixture } from "./fixture.ts";

const { createQueue, updateQueue, getQueue } = QueueService.method;
const { LESS_THAN_OR_EQUAL_TO_FINAL_SHARE: FINAL, LESS_THAN_INITIAL_SHARE: INITIAL } = FairSharingStrategy;
const { TRY_NEXT_FLAVOR } = FlavorSearch;

/** The fields of a queue, whose required ones have a value. */
type Sent = Partial<Omit<Queue, "$typeName" | "$unknown">>;

test("a queue without a policy has the default one", () => {
  assert.deepEqual(policyFromProto(create(QueueSchema, { name: "a" })), DEFAULT_POLICY);
  const emptied = { fairSharing: {}, preemption: { borrowWithin: {} }, flavorFungibility: {}, minRuntime: {} };
  const policy = policyFromProto(create(QueueSchema, { name: "a", ...emptied }));
  assert.deepEqual(policy, { ...DEFAULT_POLICY, fairSharing: FAIR_SHARING_STRATEGIES });
});

test("every policy is allowed where it may be, and comes back as it was sent", () => {
  const cases = fc.boolean().chain((isRoot) => fc.tuple(fc.constant(isRoot), somePolicy({ isRoot })));
  fc.assert(
    fc.property(cases, ([isRoot, policy]) => {
      assert.deepEqual(policyNotes(policy, isRoot ? null : "all"), []);
      assert.deepEqual(policyFromProto(create(QueueSchema, policyToProto(policy))), policy);
    }),
  );
});

async function withRoot(t: TestContext) {
  const { call, store } = await startFixture(t);
  await call(createQueue, { queue: { name: "all" } });
  return { call, store };
}

test("a policy is shown with its defaults, replaced as a whole by an update, and kept by nothing", async (t) => {
  const { call } = await withRoot(t);
  const preemption = { withinQueue: WithinQueuePreemption.LOWER_PRIORITY };
  const minRuntime = { preempt: { seconds: 600n, nanos: 1 } };
  const fairSharing = { strategies: [INITIAL] };
  const made = await call(createQueue, { queue: { name: "a", weight: 2.5, fairSharing, preemption, minRuntime } });
  const shown = made.ok!.queue!;
  assert.deepEqual([shown.weight, shown.fairSharing?.strategies], [2.5, [INITIAL]]);
  assert.deepEqual(
    [shown.preemption?.withinQueue, shown.preemption?.reclaimWithinTree, shown.preemption?.borrowWithin?.policy],
    [WithinQueuePreemption.LOWER_PRIORITY, ReclaimWithinTree.NEVER, BorrowWithinPolicy.NEVER],
  );
  assert.equal(shown.flavorFungibility?.whenCanPreempt, TRY_NEXT_FLAVOR);
  // Less than a millisecond counts as one.
  assert.deepEqual([shown.minRuntime?.preempt?.seconds, shown.minRuntime?.preempt?.nanos], [600n, 1_000_000]);
  assert.equal(shown.minRuntime?.reclaim, undefined);
  await call(updateQueue, { queue: { name: "a", weight: 0 } });
  const after = (await call(getQueue, { name: "a" })).ok!.queue!;
  assert.deepEqual([after.weight, after.fairSharing, after.minRuntime], [0, undefined, undefined]);
  assert.equal(after.preemption?.withinQueue, WithinQueuePreemption.NEVER);
});

test("a queue says whether gangs wait for lost clusters until an update does not, at first nothing", async (t) => {
  const { call } = await withRoot(t);
  const said = async () => (await call(getQueue, { name: "all" })).ok?.queue?.onClusterLost;
  assert.equal(await said(), OnClusterLost.UNSPECIFIED);
  for (const onClusterLost of [OnClusterLost.WAIT, OnClusterLost.MOVE, OnClusterLost.UNSPECIFIED]) {
    await call(updateQueue, { queue: { name: "all", onClusterLost } });
    assert.equal(await said(), onClusterLost);
  }
});

const refused: Record<string, { queue: object; field: string; says: RegExp }> = {
  "a negative weight": { queue: { weight: -1 }, field: "weight", says: /must be 0, or from 0.000001 to 1000000/ },
  "a weight that is no number": { queue: { weight: Number.NaN }, field: "weight", says: /must be a finite number/ },
  "a weight without a bound": { queue: { weight: Number.POSITIVE_INFINITY }, field: "weight", says: /a finite number/ },
  "a weight above the bound": { queue: { weight: 1_000_001 }, field: "weight", says: /must be 0, or/ },
  "a weight next to zero": { queue: { weight: 1e-9 }, field: "weight", says: /must be 0, or/ },
  "fair sharing of a queue with a parent": {
    queue: { parent: "all", fairSharing: {} },
    field: "fair_sharing",
    says: /a queue with a parent: the root of its tree says/,
  },
  "strategies in another order": {
    queue: { fairSharing: { strategies: [INITIAL, FINAL] } },
    field: "fair_sharing.strategies",
    says: /both in this order: LESS_THAN_OR_EQUAL_TO_FINAL_SHARE, LESS_THAN_INITIAL_SHARE/,
  },
  "an unknown word about lost clusters": { queue: { onClusterLost: 7 }, field: "on_cluster_lost", says: /./ },
  "a strategy twice": {
    queue: { fairSharing: { strategies: [FINAL, FINAL] } },
    field: "fair_sharing.strategies",
    says: /one strategy, or both/,
  },
  "an unspecified strategy": {
    queue: { fairSharing: { strategies: [FairSharingStrategy.UNSPECIFIED] } },
    field: "fair_sharing.strategies[0]",
    says: /one of FAIR_SHARING_STRATEGY_LESS_THAN_OR_EQUAL_TO_FINAL_SHARE \(1\), FAIR_SHARING_STRATEGY_LESS_THAN_IN/,
  },
  "an unknown policy": {
    queue: { preemption: { withinQueue: 9 } },
    field: "preemption.within_queue",
    says: /must be one of WITHIN_QUEUE_PREEMPTION_NEVER \(1\), WITHIN_QUEUE_PREEMPTION_LOWER_PRIORITY \(2\), /,
  },
  "a greatest priority without a policy": {
    queue: { preemption: { reclaimWithinTree: ReclaimWithinTree.ANY, borrowWithin: { maxPriority: 0 } } },
    field: "preemption.borrow_within.max_priority",
    says: /unless policy is LOWER_PRIORITY/,
  },
  "preemption while borrowing without reclaim": {
    queue: { preemption: { borrowWithin: { policy: BorrowWithinPolicy.LOWER_PRIORITY } } },
    field: "preemption.borrow_within.policy",
    says: /must be NEVER unless reclaim_within_tree is LOWER_PRIORITY or ANY/,
  },
  "a preference that nothing asks for": {
    queue: {
      flavorFungibility: { whenCanPreempt: TRY_NEXT_FLAVOR, preference: FlavorPreference.BORROWING_OVER_PREEMPTION },
    },
    field: "flavor_fungibility.preference",
    says: /unless when_can_borrow and when_can_preempt are both TRY_NEXT_FLAVOR/,
  },
  "a negative minimum run time": {
    queue: { minRuntime: { reclaim: { seconds: -1n } } },
    field: "min_runtime.reclaim",
    says: /greater than or equal to/,
  },
  "ageing without an interval": { queue: { ageing: { limit: 5 } }, field: "ageing.interval", says: /required/ },
  "ageing without a limit": {
    queue: { ageing: { interval: { seconds: 60n } } },
    field: "ageing.limit",
    says: /greater than or equal to 1/,
  },
  "ageing that steps too often": {
    queue: { ageing: { interval: { seconds: 0n, nanos: 5 }, limit: 5 } },
    field: "ageing.interval",
    says: /greater than or equal to 1s/,
  },
  "ageing downwards": {
    queue: { ageing: { interval: { seconds: 60n }, step: -1, limit: 5 } },
    field: "ageing.step",
    says: /greater than or equal to 1/,
  },
  "a minimum run time above the bound": {
    queue: { minRuntime: { preempt: { seconds: 31_622_401n } } },
    field: "min_runtime.preempt",
    says: /31622400s/,
  },
};

test("what is wrong with a policy is refused at its field, and changes nothing", async (t) => {
  const { call, store } = await withRoot(t);
  for (const [name, { queue, field, says }] of Object.entries(refused)) {
    const { error } = await call(createQueue, { queue: { name: "a", ...(queue as Sent) } });
    const fields = error?.fields.map((one) => one.field);
    assert.deepEqual([error?.code, fields], ["INVALID_ARGUMENT", [`queue.${field}`]], name);
    assert.match(error!.message, says, name);
  }
  assert.equal(store.queues.has("a"), false);
});
