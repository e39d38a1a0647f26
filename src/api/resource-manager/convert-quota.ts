import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "../../core/admin/audit.ts";
import type { QuotaDifference, ShownAllocation } from "../../core/quota/admin.ts";
import type { Scope, Violation } from "../../core/quota/counters.ts";
import type { Freeze } from "../../core/quota/freeze.ts";
import type { Durability, ShownPool } from "../../core/quota/pools.ts";
import type { FreezeSchema } from "../../gen/gangway/v1/freeze_pb.ts";
import type { AuditEntrySchema } from "../../gen/gangway/v1/queue_service_pb.ts";
import {
  type AllocationSchema,
  QuotaDifference_Kind as DifferenceKind,
  type PoolSchema,
  type QuotaDifferenceSchema,
  Durability as SentDurability,
  type ViolationSchema,
  Violation_Scope as ViolationScope,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { toTimestamp } from "../rpc/timestamp.ts";

const DURABILITY: Readonly<Record<Durability, SentDurability>> = {
  LEDGER: SentDurability.LEDGER,
  REDIS: SentDurability.REDIS,
};

const DIFFERENCE: Readonly<Record<QuotaDifference["kind"], DifferenceKind>> = {
  counterOnly: DifferenceKind.COUNTER_ONLY,
  ledgerOnly: DifferenceKind.LEDGER_ONLY,
  sumDiffers: DifferenceKind.SUM_DIFFERS,
  ledgerSumDiffers: DifferenceKind.LEDGER_SUM_DIFFERS,
  holderGone: DifferenceKind.HOLDER_GONE,
};

/** Returns null for UNSPECIFIED. */
export function durabilityFromProto(value: SentDurability): Durability | null {
  if (value === SentDurability.LEDGER) return "LEDGER";
  return value === SentDurability.REDIS ? "REDIS" : null;
}

/** Returns whole milliseconds, rounded up, so that no positive span becomes 0. */
export function spanMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + Math.ceil(nanos / 1e6);
}

/** Names a scope for people: `gpu/h100`, `team-nlp`, `team-nlp/dev`, or the queue's name. */
export function scopeName(scope: Scope): string {
  switch (scope.kind) {
    case "pool":
      return scope.pool;
    case "project":
      return scope.project;
    case "namespace":
      return `${scope.project}/${scope.namespace}`;
    case "queue":
      return scope.queue;
  }
}

const SCOPE: Readonly<Record<Scope["kind"], ViolationScope>> = {
  pool: ViolationScope.POOL,
  project: ViolationScope.PROJECT,
  namespace: ViolationScope.NAMESPACE,
  queue: ViolationScope.QUEUE,
};

export function toProtoViolation(violation: Violation): MessageInitShape<typeof ViolationSchema> {
  const { scope, used, limit, requested, reservedForHead, frozen = false } = violation;
  return {
    scope: SCOPE[scope.kind],
    name: scopeName(scope),
    used: BigInt(used),
    limit: BigInt(limit),
    requested: BigInt(requested),
    reservedForHead: BigInt(reservedForHead),
    resourceNamespace: scope.pool,
    frozen,
  };
}

export function toProtoPool(pool: ShownPool): MessageInitShape<typeof PoolSchema> {
  return {
    name: pool.name,
    ...amounts({ quota: pool.quota, projectDefault: pool.projectDefault, namespaceDefault: pool.namespaceDefault }),
    queue: pool.queue ?? "",
    domain: pool.domain,
    defaultLease: durationFromMs(pool.defaultLeaseMs ?? 0),
    ...(pool.maxLeaseMs === null ? {} : { maxLease: durationFromMs(pool.maxLeaseMs) }),
    durability: DURABILITY[pool.durability],
    version: BigInt(pool.version),
    createTime: timestampFromMs(pool.createTimeMs),
    updateTime: timestampFromMs(pool.updateTimeMs),
    used: BigInt(pool.used),
    tokens: BigInt(pool.tokens),
    waiters: BigInt(pool.waiters),
    ...(pool.freeze === null ? {} : { freeze: toProtoFreeze(pool.freeze) }),
  };
}

export function toProtoFreeze({ by, atMs, reason }: Freeze): MessageInitShape<typeof FreezeSchema> {
  return { actor: by, time: timestampFromMs(atMs), reason };
}

export function toProtoAllocation(allocation: ShownAllocation): MessageInitShape<typeof AllocationSchema> {
  const { pool, token, amount, queue, grantTimeMs, expireTimeMs, ...same } = allocation;
  return {
    ...same,
    resourceNamespace: pool,
    allocationToken: token,
    amount: BigInt(amount),
    queue: queue ?? "",
    grantTime: toTimestamp(grantTimeMs),
    expireTime: toTimestamp(expireTimeMs),
  };
}

export function toProtoDifference(difference: QuotaDifference): MessageInitShape<typeof QuotaDifferenceSchema> {
  const { kind, counters, ledger, ...same } = difference;
  return { ...same, kind: DIFFERENCE[kind], ...amounts({ counters, ledger }) };
}

export function toProtoAuditEntry({ timeMs, details, ...same }: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  return { ...same, time: timestampFromMs(timeMs), details: details as JsonObject };
}

/** Returns optional fields of a message without those that are null. */
function amounts<Name extends string>(of: Readonly<Record<Name, number | null>>): { [Key in Name]?: bigint } {
  const entries = Object.entries<number | null>(of).filter(([, value]) => value !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, BigInt(value ?? 0)])) as { [Key in Name]?: bigint };
}
