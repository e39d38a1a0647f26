/** How a queue shares and preempts, between the proto and the words of the plan. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { FieldNote } from "../../core/job/request/sent.ts";
import {
  type Ageing,
  type BorrowWithin,
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type FairSharingStrategy,
  type FlavorFungibility,
  type FlavorSearch,
  type QueuePolicy,
  type ReclaimWithinTree,
  type WithinQueue,
} from "../../core/plan/model/queue-policy.ts";
import * as proto from "../../gen/gangway/v1/queue_policy_pb.ts";
import type { Queue, QueueSchema } from "../../gen/gangway/v1/queue_service_pb.ts";
import { spanMs } from "../resource-manager/convert-quota.ts";

type EnumOf<Word extends string> = Readonly<Record<Word, number>>;

const STRATEGY = {
  LESS_THAN_OR_EQUAL_TO_FINAL_SHARE: proto.FairSharingStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
  LESS_THAN_INITIAL_SHARE: proto.FairSharingStrategy.LESS_THAN_INITIAL_SHARE,
} as const satisfies EnumOf<FairSharingStrategy>;

const WITHIN_QUEUE = {
  NEVER: proto.WithinQueuePreemption.NEVER,
  LOWER_PRIORITY: proto.WithinQueuePreemption.LOWER_PRIORITY,
  LOWER_OR_NEWER_EQUAL_PRIORITY: proto.WithinQueuePreemption.LOWER_OR_NEWER_EQUAL_PRIORITY,
} as const satisfies EnumOf<WithinQueue>;

const RECLAIM = {
  NEVER: proto.ReclaimWithinTree.NEVER,
  LOWER_PRIORITY: proto.ReclaimWithinTree.LOWER_PRIORITY,
  ANY: proto.ReclaimWithinTree.ANY,
} as const satisfies EnumOf<ReclaimWithinTree>;

const BORROW = {
  NEVER: proto.BorrowWithinPolicy.NEVER,
  LOWER_PRIORITY: proto.BorrowWithinPolicy.LOWER_PRIORITY,
} as const satisfies EnumOf<BorrowWithin["policy"]>;

const SEARCH = {
  MAY_STOP_SEARCH: proto.FlavorSearch.MAY_STOP_SEARCH,
  TRY_NEXT_FLAVOR: proto.FlavorSearch.TRY_NEXT_FLAVOR,
} as const satisfies EnumOf<FlavorSearch>;

const PREFERENCE = {
  PREEMPTION_OVER_BORROWING: proto.FlavorPreference.PREEMPTION_OVER_BORROWING,
  BORROWING_OVER_PREEMPTION: proto.FlavorPreference.BORROWING_OVER_PREEMPTION,
} as const satisfies EnumOf<NonNullable<FlavorFungibility["preference"]>>;

/** The word of an enum's value. Null: the value is unspecified. */
function wordOf<Word extends string>(words: EnumOf<Word>, value: number | undefined): Word | null {
  return (Object.keys(words) as Word[]).find((word) => words[word] === value) ?? null;
}

/** The policy that a request asks for. Every part that it omits has its default. */
export function policyFromProto(queue: Queue): QueuePolicy {
  const { weight, fairSharing, preemption, flavorFungibility, minRuntime, ageing } = queue;
  const { fungibility } = DEFAULT_POLICY;
  const borrowWithin = preemption?.borrowWithin;
  return {
    // Both zeros are 0.
    weight: (weight ?? DEFAULT_POLICY.weight) + 0,
    fairSharing: fairSharing === undefined ? null : strategiesOf(fairSharing),
    withinQueue: wordOf(WITHIN_QUEUE, preemption?.withinQueue) ?? DEFAULT_POLICY.withinQueue,
    reclaimWithinTree: wordOf(RECLAIM, preemption?.reclaimWithinTree) ?? DEFAULT_POLICY.reclaimWithinTree,
    borrowWithin: {
      policy: wordOf(BORROW, borrowWithin?.policy) ?? DEFAULT_POLICY.borrowWithin.policy,
      maxPriority: borrowWithin?.maxPriority ?? null,
    },
    fungibility: {
      whenCanBorrow: wordOf(SEARCH, flavorFungibility?.whenCanBorrow) ?? fungibility.whenCanBorrow,
      whenCanPreempt: wordOf(SEARCH, flavorFungibility?.whenCanPreempt) ?? fungibility.whenCanPreempt,
      preference: wordOf(PREFERENCE, flavorFungibility?.preference),
    },
    minRuntimePreemptMs: minRuntime?.preempt === undefined ? null : spanMs(minRuntime.preempt),
    minRuntimeReclaimMs: minRuntime?.reclaim === undefined ? null : spanMs(minRuntime.reclaim),
    ...boundsFromProto(queue),
    ageing: ageing === undefined ? null : ageingFromProto(ageing),
    reserveAfterMs: reserveAfterOf(queue),
  };
}

function boundsFromProto({ maxPreemptions, preemptionsPerHour }: Queue) {
  return { maxPreemptions: maxPreemptions ?? null, preemptionsPerHour: preemptionsPerHour ?? null };
}

/** Constraints of the message refuse an interval of 0. */
function ageingFromProto({ interval, step, limit }: proto.PriorityAgeing): Ageing {
  return { intervalMs: interval === undefined ? 0 : spanMs(interval), step: step ?? 1, limit };
}

function reserveAfterOf({ reserveAfter }: Queue): number {
  return reserveAfter === undefined ? DEFAULT_POLICY.reserveAfterMs : spanMs(reserveAfter);
}

function strategiesOf({ strategies }: proto.FairSharing): readonly FairSharingStrategy[] {
  if (strategies.length === 0) return FAIR_SHARING_STRATEGIES;
  return strategies.flatMap((strategy) => wordOf(STRATEGY, strategy) ?? []);
}

/** What is wrong with the fields of a policy together. The rules are those of Kueue's webhooks and configuration. */
export function policyNotes(policy: QueuePolicy, parent: string | null): readonly FieldNote[] {
  const { fairSharing, reclaimWithinTree, borrowWithin, fungibility } = policy;
  const { whenCanBorrow, whenCanPreempt, preference } = fungibility;
  const notes: FieldNote[] = [];
  if (fairSharing !== null && parent !== null) {
    const message = "must not be set for a queue with a parent: the root of its tree says whether shares decide";
    notes.push({ field: "queue.fair_sharing", message });
  }
  if (fairSharing !== null && !isInOrder(fairSharing)) {
    const message = `must be one strategy, or both in this order: ${FAIR_SHARING_STRATEGIES.join(", ")}`;
    notes.push({ field: "queue.fair_sharing.strategies", message });
  }
  if (borrowWithin.policy === "NEVER" && borrowWithin.maxPriority !== null) {
    const message = "must not be set unless policy is LOWER_PRIORITY: no job is preempted for one that borrows";
    notes.push({ field: "queue.preemption.borrow_within.max_priority", message });
  }
  if (borrowWithin.policy !== "NEVER" && reclaimWithinTree === "NEVER") {
    const message = "must be NEVER unless reclaim_within_tree is LOWER_PRIORITY or ANY";
    notes.push({ field: "queue.preemption.borrow_within.policy", message });
  }
  if (preference !== null && (whenCanBorrow !== "TRY_NEXT_FLAVOR" || whenCanPreempt !== "TRY_NEXT_FLAVOR")) {
    const message = "must not be set unless when_can_borrow and when_can_preempt are both TRY_NEXT_FLAVOR";
    notes.push({ field: "queue.flavor_fungibility.preference", message });
  }
  return notes;
}

function isInOrder(strategies: readonly FairSharingStrategy[]): boolean {
  const places = strategies.map((strategy) => FAIR_SHARING_STRATEGIES.indexOf(strategy));
  return places.every((place, at) => at === 0 || place > (places[at - 1] ?? place));
}

type PolicyFields = Pick<
  MessageInitShape<typeof QueueSchema>,
  | "weight"
  | "fairSharing"
  | "preemption"
  | "flavorFungibility"
  | "minRuntime"
  | "maxPreemptions"
  | "preemptionsPerHour"
  | "ageing"
  | "reserveAfter"
>;

/** The fields of a queue's policy, with the defaults of those that were not set. */
export function policyToProto(policy: QueuePolicy): PolicyFields {
  const { weight, fairSharing, withinQueue, reclaimWithinTree, borrowWithin, fungibility } = policy;
  const { minRuntimePreemptMs, minRuntimeReclaimMs, ageing, reserveAfterMs } = policy;
  const { whenCanBorrow, whenCanPreempt, preference } = fungibility;
  const { maxPriority } = borrowWithin;
  return {
    weight,
    ...(fairSharing === null ? {} : { fairSharing: { strategies: fairSharing.map((word) => STRATEGY[word]) } }),
    preemption: {
      withinQueue: WITHIN_QUEUE[withinQueue],
      reclaimWithinTree: RECLAIM[reclaimWithinTree],
      borrowWithin: { policy: BORROW[borrowWithin.policy], ...(maxPriority === null ? {} : { maxPriority }) },
    },
    flavorFungibility: {
      whenCanBorrow: SEARCH[whenCanBorrow],
      whenCanPreempt: SEARCH[whenCanPreempt],
      ...(preference === null ? {} : { preference: PREFERENCE[preference] }),
    },
    ...(policy.maxPreemptions === null ? {} : { maxPreemptions: policy.maxPreemptions }),
    ...(policy.preemptionsPerHour === null ? {} : { preemptionsPerHour: policy.preemptionsPerHour }),
    ...(ageing === null
      ? {}
      : { ageing: { interval: durationFromMs(ageing.intervalMs), step: ageing.step, limit: ageing.limit } }),
    reserveAfter: durationFromMs(reserveAfterMs),
    ...(minRuntimePreemptMs === null && minRuntimeReclaimMs === null
      ? {}
      : {
          minRuntime: { ...durationOf("preempt", minRuntimePreemptMs), ...durationOf("reclaim", minRuntimeReclaimMs) },
        }),
  };
}

function durationOf(name: "preempt" | "reclaim", ms: number | null) {
  return ms === null ? {} : { [name]: durationFromMs(ms) };
}
