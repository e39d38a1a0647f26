import type { FlavorQuota, QueueStrategy } from "../../core/plan/snapshot.ts";
import { type Db, type Executor, json, onlyRow } from "./db.ts";
import type { ChangeOutcome } from "./namespaces.ts";
import { ensurePools } from "./pools.ts";

export type QueueRecord = {
  readonly name: string;
  readonly strategy: QueueStrategy;
  readonly quotas: readonly FlavorQuota[];
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly used: Readonly<Record<string, number>>;
  readonly waiting: number;
  readonly admitted: number;
};

type QueueSettings = Pick<QueueRecord, "name" | "strategy" | "quotas">;

export function createQueue(db: Db, queue: QueueSettings, nowMs: number): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    const made = await tx.query(CREATE_QUEUE, [queue.name, queue.strategy, nowMs]);
    if (made.length === 0) return { kind: "exists" };
    await writeQuotas(tx, queue);
    return { kind: "done", record: onlyRow(await selectQueues(tx, queue.name)) };
  });
}

const CREATE_QUEUE = `
insert into queues (name, strategy, create_ms, update_ms) values ($1, $2, $3, $3)
on conflict (name) do nothing
returning name`;

/** Its limits hold for the ledger from this transaction on; a limit below use takes nothing away. Version 0: whatever it is now. */
export function updateQueue(
  db: Db,
  queue: QueueSettings & { readonly version: number },
  nowMs: number,
): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    const changed = await tx.query(UPDATE_QUEUE, [queue.name, queue.strategy, queue.version, nowMs]);
    if (changed.length === 0) return { kind: (await getQueue(tx, queue.name)) === null ? "notFound" : "stale" };
    await writeQuotas(tx, queue);
    return { kind: "done", record: onlyRow(await selectQueues(tx, queue.name)) };
  });
}

const UPDATE_QUEUE = `
update queues set strategy = $2, version = version + 1, update_ms = $4
 where name = $1 and ($3::bigint = 0 or version = $3)
returning name`;

async function writeQuotas(tx: Executor, queue: QueueSettings): Promise<void> {
  await ensurePools(
    tx,
    queue.quotas.map((quota) => quota.flavor),
  );
  await tx.query("delete from queue_quotas where queue = $1", [queue.name]);
  await tx.query(WRITE_QUOTAS, [queue.name, json(queue.quotas.map((quota, position) => ({ ...quota, position })))]);
}

const WRITE_QUOTAS = `
insert into queue_quotas (queue, position, flavor, resource, nominal)
select $1, position, flavor, resource, nominal
  from json_to_recordset($2::json) as q (position int, flavor text, resource text, nominal bigint)`;

/** Refused while a job that has not ended names it, or tokens are charged to it. */
export function deleteQueue(db: Db, name: string): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    await tx.query("select 1 from queues where name = $1 for update", [name]);
    const record = await getQueue(tx, name);
    if (record === null) return { kind: "notFound" };
    const [user] = await tx.query<{ by: string }>(QUEUE_USER, [name]);
    if (user !== undefined) return { kind: "inUse", by: user.by };
    await tx.query("delete from queues where name = $1", [name]);
    return { kind: "done", record };
  });
}

const QUEUE_USER = `
(select 'job ' || namespace || '/' || name as by from jobs where queue = $1 and completion_ms is null limit 1)
union all
(select 'tokens of ' || pool from allocation_sums where scope = 'queue' and name = $1 and used > 0 limit 1)
union all
(select 'namespace ' || name from namespaces where default_queue = $1 limit 1)
limit 1`;

export async function getQueue(executor: Executor, name: string): Promise<QueueRecord | null> {
  const [record] = await selectQueues(executor, name);
  return record ?? null;
}

export function listQueues(executor: Executor): Promise<readonly QueueRecord[]> {
  return selectQueues(executor, null);
}

export async function queueExists(executor: Executor, name: string): Promise<boolean> {
  const rows = await executor.query("select 1 from queues where name = $1", [name]);
  return rows.length === 1;
}

function selectQueues(executor: Executor, name: string | null): Promise<readonly QueueRecord[]> {
  return executor.query<QueueRecord>(SELECT_QUEUES, [name]);
}

const SELECT_QUEUES = `
select q.name, q.strategy, q.version, q.create_ms as "createTimeMs", q.update_ms as "updateTimeMs",
       coalesce((
         select json_agg(json_build_object('flavor', flavor, 'resource', resource, 'nominal', nominal) order by position)
           from queue_quotas where queue = q.name
       ), '[]') as quotas,
       coalesce((
         select json_object_agg(pool, used) from allocation_sums where scope = 'queue' and name = q.name and used > 0
       ), '{}') as used,
       (select count(*) from jobs where queue = q.name and phase = 'WAITING') as waiting,
       (select count(*) from admissions a join jobs j on j.uid = a.job_uid where a.state = 'live' and j.queue = q.name)
         as admitted
  from queues q
 where $1::text is null or q.name = $1
 order by q.name`;
