/** Serves admins who freeze queues and pools: from this transaction on nothing more of them is granted or taken. */
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { QueueRecord } from "../../../core/admin/queue.ts";
import type { Freeze } from "../../../core/quota/freeze.ts";
import type { PoolRecord } from "../../../core/quota/pools.ts";
import { type Db, type Executor, json, storable } from "../db/db.ts";
import { QUEUES_DOMAIN, takeDomain, takeDomainsOf } from "../ledger/quota-domains.ts";
import { auditParams, INSERT_AUDIT } from "./audit.ts";
import { getPool } from "./list-pools.ts";
import { getQueue } from "./queues.ts";

export type FreezeChange = {
  readonly name: string;
  /** Why it is frozen. Null: the freeze ends. */
  readonly reason: string | null;
  readonly actor: string;
  readonly nowMs: number;
};

/** Freezes a queue with all queues below it, or ends that. A queue that is as asked stays as it is. */
export function freezeQueue(db: Db, change: FreezeChange): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    const found = await tx.query(TAKE_QUEUE, [storable(change.name)]);
    const record = found.length === 0 ? null : await getQueue(tx, change.name);
    if (record === null) return { kind: "notFound" };
    if ((record.freeze === null) === (change.reason === null)) return { kind: "done", record };
    await takeDomain(tx, QUEUES_DOMAIN);
    const action = change.reason === null ? "UnfreezeQueue" : "FreezeQueue";
    await tx.query(
      WRITE_QUEUE_FREEZE,
      freezeParams(tx, change, { action, before: record.freeze, domain: QUEUES_DOMAIN }),
    );
    return { kind: "done", record: await writtenQueue(tx, change.name) };
  });
}

/** A lock that waits for admissions and preemptions that are being recorded. */
const TAKE_QUEUE = "select 1 from queues where name = $1 for no key update";

async function writtenQueue(tx: Executor, name: string): Promise<QueueRecord> {
  const record = await getQueue(tx, name);
  if (record === null) throw new Error(`queue ${name} is gone in the transaction that wrote it`);
  return record;
}

/** Freezes a pool, or ends that. A pool that is as asked stays as it is. */
export function freezePool(db: Db, change: FreezeChange): Promise<ChangeOutcome<PoolRecord>> {
  return db.tx(async (tx) => {
    const name = storable(change.name);
    // Every transaction that registers or deletes a pool locks this domain.
    await takeDomain(tx, QUEUES_DOMAIN);
    await takeDomainsOf(tx, [name]);
    const before = await getPool(tx, name);
    if (before === null) return { kind: "notFound" };
    if ((before.freeze === null) === (change.reason === null)) return { kind: "done", record: before };
    const action = change.reason === null ? "UnfreezePool" : "FreezePool";
    await tx.query(
      WRITE_POOL_FREEZE,
      freezeParams(tx, change, { action, before: before.freeze, domain: before.domain }),
    );
    const record = await getPool(tx, name);
    if (record === null) throw new Error(`pool ${name} is gone in the transaction that wrote it`);
    return { kind: "done", record };
  });
}

function freezeParams(
  tx: Executor,
  { name, reason, actor, nowMs }: FreezeChange,
  of: {
    readonly action: "FreezeQueue" | "UnfreezeQueue" | "FreezePool" | "UnfreezePool";
    readonly before: Freeze | null;
    readonly domain: string;
  },
): readonly unknown[] {
  const after: Freeze | null = reason === null ? null : { by: actor, atMs: nowMs, reason };
  const details = { before: { freeze: of.before }, after: { freeze: after } };
  const entry = { timeMs: nowMs, actor, action: of.action, subject: name, reason: reason ?? "", details };
  return [...auditParams(tx, entry), storable(name), after === null ? null : json(after), of.domain];
}

const RAISE_LIMITS = "update quota_domains set limits_version = limits_version + 1 where name = $14";

const WRITE_QUEUE_FREEZE = `
with raised as (${RAISE_LIMITS}
), noted as (${INSERT_AUDIT}
)
update queues set frozen = $13::jsonb, version = version + 1, update_ms = $1 where name = $12`;

const WRITE_POOL_FREEZE = `
with raised as (${RAISE_LIMITS}
), noted as (${INSERT_AUDIT}
)
update pools set frozen = $13::jsonb, version = version + 1, update_ms = $1 where name = $12`;

/**
 * Returns which of these pools are frozen, and keeps all of them as they are until the transaction ends. Locked after
 * everything that the transaction writes: whoever freezes a pool waits for it.
 */
export async function frozenPools(tx: Executor, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const rows = await tx.query<{ name: string; frozen: boolean }>(FROZEN_POOLS, [[...new Set(names)]]);
  return new Set(rows.filter(({ frozen }) => frozen).map(({ name }) => name));
}

const FROZEN_POOLS = `
select name, frozen is not null as frozen from pools where name = any($1::text[]) order by name for share`;
