import fc from "fast-check";
import { FAIR_SHARING_STRATEGIES, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";

const search = fc.constantFrom("MAY_STOP_SEARCH" as const, "TRY_NEXT_FLAVOR" as const);
const preemptsBorrowing = fc.record({
  reclaimWithinTree: fc.constantFrom("LOWER_PRIORITY" as const, "ANY" as const),
  borrowWithin: fc.record({
    policy: fc.constant("LOWER_PRIORITY" as const),
    maxPriority: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  }),
});
const preemptsNoneThatBorrows = fc.record({
  reclaimWithinTree: fc.constantFrom("NEVER" as const, "LOWER_PRIORITY" as const, "ANY" as const),
  borrowWithin: fc.constant({ policy: "NEVER" as const, maxPriority: null }),
});
const ageing = fc.record({
  intervalMs: fc.integer({ min: 1_000, max: 366 * 86_400_000 }),
  step: fc.integer({ min: 1, max: 1_000_000_000 }),
  limit: fc.integer({ min: 1, max: 1_000_000_000 }),
});
const minRuntimeMs = fc.option(fc.integer({ min: 0, max: 366 * 86_400_000 }));

/** Any policy that a queue may have; with fair sharing only at a root. */
export const somePolicy = (at: { readonly isRoot: boolean }): fc.Arbitrary<QueuePolicy> =>
  policyOf(at).map((policy) => structuredClone(policy));

const policyOf = (at: { readonly isRoot: boolean }): fc.Arbitrary<QueuePolicy> =>
  fc
    .record({
      weight: fc.oneof(fc.constant(0), fc.double({ min: 0.000001, max: 1_000_000, noNaN: true })),
      fairSharing: at.isRoot
        ? fc.constantFrom(null, FAIR_SHARING_STRATEGIES, ...FAIR_SHARING_STRATEGIES.map((one) => [one]))
        : fc.constant(null),
      withinQueue: fc.constantFrom(
        "NEVER" as const,
        "LOWER_PRIORITY" as const,
        "LOWER_OR_NEWER_EQUAL_PRIORITY" as const,
      ),
      preempts: fc.oneof(preemptsBorrowing, preemptsNoneThatBorrows),
      fungibility: fc.oneof(
        fc.record({ whenCanBorrow: search, whenCanPreempt: search, preference: fc.constant(null) }),
        fc.record({
          whenCanBorrow: fc.constant("TRY_NEXT_FLAVOR" as const),
          whenCanPreempt: fc.constant("TRY_NEXT_FLAVOR" as const),
          preference: fc.constantFrom("PREEMPTION_OVER_BORROWING" as const, "BORROWING_OVER_PREEMPTION" as const),
        }),
      ),
      minRuntimePreemptMs: minRuntimeMs,
      minRuntimeReclaimMs: minRuntimeMs,
      maxPreemptions: fc.option(fc.nat(2 ** 31 - 1)),
      preemptionsPerHour: fc.option(fc.nat(2 ** 31 - 1)),
      ageing: fc.option(ageing),
      reserveAfterMs: fc.integer({ min: 0, max: 366 * 86_400_000 }),
    })
    .map(({ preempts, ...policy }) => ({ ...policy, ...preempts }));
