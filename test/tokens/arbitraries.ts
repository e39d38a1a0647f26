import fc from "fast-check";
import { tokenKey } from "../../src/core/quota/allocations.ts";
import type { Allocation, Holder, Limits } from "../../src/core/quota/counters.ts";

const MAX = Number.MAX_SAFE_INTEGER;

/**
 * A small world, so that random steps touch the same things: two pools, three queues of one tree, two projects with
 * similar names.
 */
export const POOLS = ["gpu/0", "gpu/1"] as const;
export const QUEUES = ["root", "team", "team1"] as const;
const PARENTS: Readonly<Record<(typeof QUEUES)[number], string | null>> = { root: null, team: "root", team1: "team" };

const oneOf = <T>(...of: readonly T[]) => fc.constantFrom(...of);
/** Makes records with a prototype, since they are compared with parsed replies. */
const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record<T>(of, { noNullPrototype: true });
const mostly = <T>(weight: number, usual: T, ...others: readonly T[]) =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: oneOf(...others) });

export const pool = oneOf(...POOLS);
export const holder: fc.Arbitrary<Holder> = fc.oneof(
  record({ kind: fc.constant("caller" as const), name: oneOf("ann", "bob") }),
  record({ kind: fc.constant("admission" as const), jobUid: oneOf("ann", "j"), admission: oneOf(1, 2) }),
);
const leaseMs = oneOf(null, 1_000, 3_000);

export const allocation: fc.Arbitrary<Allocation> = record({
  pool,
  token: fc.nat(5).map((at) => `t${at}`),
  amount: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 4 }) },
    { weight: 1, arbitrary: oneOf(MAX - 1, MAX) },
  ),
  project: mostly(2, "team", "team1"),
  namespace: mostly(2, "ns", "team"),
  queue: oneOf(null, ...QUEUES),
  caps: record({ project: mostly(4, null, 0, 4, 8), namespace: mostly(4, null, 0, 3, 6) }),
  leaseMs,
});
/** An amount that is left of an allocation. It may exceed the allocation's amount. */
export const rest = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 4 }) },
  { weight: 1, arbitrary: oneOf(MAX - 2, MAX) },
);
/** What a token keeps, and the token of the heir that gets the rest. */
export type Heir = Pick<Allocation, "token" | "amount" | "project" | "namespace" | "queue"> & {
  readonly holder: Holder;
  readonly kept: number;
};
export const heir: fc.Arbitrary<Heir> = record({
  kept: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  token: oneOf("h0", "h1", "h2", "t0"),
  amount: rest,
  project: mostly(2, "team", "team1"),
  namespace: mostly(2, "ns", "team"),
  queue: oneOf(null, ...QUEUES),
  holder,
});
export const allocations = fc.uniqueArray(allocation, { minLength: 1, maxLength: 3, selector: tokenKey });

const limit = fc.oneof({ weight: 5, arbitrary: fc.nat(14) }, { weight: 1, arbitrary: fc.constant(MAX) });
const maybe = fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(8) });

/** Limits that leave room for grants. */
export const ROOMY: Limits = {
  version: 1,
  pools: POOLS.map((name) => ({ pool: name, quota: 6, projectDefault: null, namespaceDefault: null })),
  queues: QUEUES.flatMap((queue) =>
    POOLS.map((name) => ({
      queue,
      pool: name,
      parent: PARENTS[queue],
      ceiling: 6,
      guarantee: queue === "team1" ? 2 : 1,
    })),
  ),
  tokensMax: 1_000,
  waitersMax: 1_000,
};

/** Limits with version 1. Some pools and queues have none. */
const anyLimits: fc.Arbitrary<Limits> = record({
  version: fc.constant(1),
  pools: fc.uniqueArray(
    record({ pool, quota: fc.option(limit, { freq: 4 }), projectDefault: maybe, namespaceDefault: maybe }),
    {
      minLength: 1,
      selector: (of) => of.pool,
    },
  ),
  queues: fc.uniqueArray(
    record({ queue: oneOf(...QUEUES), pool, ceiling: limit, guarantee: fc.nat(6) }).map((of) => ({
      ...of,
      parent: PARENTS[of.queue],
    })),
    { selector: (of) => `${of.queue}|${of.pool}`, maxLength: 6 },
  ),
  tokensMax: mostly(6, 1_000, 4),
  waitersMax: mostly(6, 1_000, 3),
});

const FREEZE = { by: "ann", atMs: 1, reason: "" };

/** Limits of which some may be frozen. */
export function frozen(limits: Limits, at: { readonly pools: number; readonly queues: number }): Limits {
  const freeze = <T extends object>(list: readonly T[], bits: number) =>
    list.map((of, place) => ((bits >> place) & 1 ? { ...of, freeze: FREEZE } : of));
  return { ...limits, pools: freeze(limits.pools, at.pools), queues: freeze(limits.queues, at.queues) };
}

/** Which pools and queues are frozen, as bits. */
export const freezes = record({ pools: mostly(3, 0, 1, 2, 3), queues: mostly(3, 0, 1, 2, 4, 8, 21, 42, 63) });

/** Roomy limits, the same with other pool quotas, or arbitrary limits; sometimes with freezes. */
export const limits: fc.Arbitrary<Limits> = fc
  .tuple(
    fc.oneof(
      fc.constant(ROOMY),
      fc
        .integer({ min: 3, max: 12 })
        .map((quota) => ({ ...ROOMY, pools: ROOMY.pools.map((of) => ({ ...of, quota })) })),
      anyLimits,
    ),
    freezes,
  )
  .map(([of, at]) => frozen(of, at));

/** Names that sort differently by code point and by UTF-16 unit. */
export const waiter = oneOf("w0", "w1", "w2", "w\uffff", "w\u{1f600}", '"');
export const priority = mostly(4, 0, -1, 1, 2 ** 31 - 1, -(2 ** 31));
export const sinceMs = oneOf(0, 5, 5_000_000_000_000);

export const stand = record({ waiter, holder, allocations, priority, sinceMs, grants: fc.boolean() }).map((of) =>
  of.grants ? { ...of, allocations: of.allocations.slice(0, 1) } : of,
);

export const tick = record({
  elapsedMs: oneOf(0, 400, 1_000, 5_000, -3),
  unconfirmedMs: oneOf(0, 1_000, 3_000),
  limit: mostly(5, 100, 1),
});
