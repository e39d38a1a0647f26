/**
 * Queues, the trees that they form, and their quotas. Quota admins share GPUs among teams with them; a change takes
 * effect for the next grant, in one transaction with the ledger's limits.
 */
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { QueueOutcome, QueueRecord, QueueSettings } from "../../../core/admin/queue.ts";
import { NO_USE, type QueueSum, type QueueUse, queueUses } from "../../../core/plan/explain/queue-uses.ts";
import { freezerOf, stopOf } from "../../../core/plan/model/queue-stop.ts";
import { type TreeEdge, treeProblem } from "../../../core/quota/check-tree.ts";
import { type Db, type Executor, json, onlyRow, storable, undoable } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";
import { auditParams, INSERT_AUDIT } from "./audit.ts";
import { INSERT_POOLS, POOL_FACTS, type PoolBounds, type PoolFacts, poolRefusal } from "./pools.ts";
import {
  changedSettings,
  isSameSettings,
  policyJson,
  QUEUE_SETTINGS,
  readSettings,
  type SettingsRow,
  type WholeSettings,
  withPolicy,
} from "./queue-settings.ts";

/** Who changes a queue, and when. */
type ChangeBy = { readonly actor: string; readonly nowMs: number };

export function createQueue(db: Db, queue: QueueSettings, by: ChangeBy & PoolBounds): Promise<QueueOutcome> {
  return undoable<QueueOutcome>(db, async (tx, undo) => {
    const taken = await takeQueues(tx, queue);
    if (taken.has(queue.name)) return { kind: "exists" };
    const made = await tx.query(CREATE_QUEUE, [queue.name, queue.strategy, by.nowMs]);
    if (made.length === 0) return undo({ kind: "exists" });
    return writeQueue(tx, { before: null, after: changedSettings(null, queue), taken, by, undo });
  });
}

/** Without its parent, which is checked once the domain is locked. Queues are locked before the domain. */
const CREATE_QUEUE = `
insert into queues (name, strategy, create_ms, update_ms) values ($1, $2, $3, $3)
on conflict (name) do nothing
returning name`;

/**
 * Changes a queue. Its limits bind the ledger from this transaction on; a limit below use takes nothing away. Settings
 * that change nothing leave no trace. Version 0: any version.
 */
export function updateQueue(
  db: Db,
  queue: QueueSettings & { readonly version: number },
  by: ChangeBy & PoolBounds,
): Promise<QueueOutcome> {
  return undoable<QueueOutcome>(db, async (tx, undo) => {
    const taken = await takeQueues(tx, queue);
    const current = taken.get(queue.name);
    if (current === undefined) return { kind: "notFound" };
    if (queue.version !== 0 && queue.version !== current) return { kind: "stale" };
    const before = await readSettings(tx, queue.name);
    const after = changedSettings(before, queue);
    if (isSameSettings(before, after)) return { kind: "done", record: await existingQueue(tx, queue.name) };
    await tx.query("update queues set version = version + 1, update_ms = $2 where name = $1", [queue.name, by.nowMs]);
    return writeQueue(tx, { before, after, taken, by, undo });
  });
}

/**
 * Locks a queue and its parent. Returns the versions of those that exist. A limit of waiting jobs waits for the jobs
 * that are being created: those that come after it count them.
 */
async function takeQueues(tx: Executor, queue: QueueSettings): Promise<ReadonlyMap<string, number>> {
  const { name, parent = null, maxWaitingJobs = null } = queue;
  const names = [name, ...(parent === null ? [] : [parent])].map(storable);
  const rows = await tx.query<{ name: string; version: number }>(
    maxWaitingJobs === null ? TAKE_QUEUES : TAKE_QUEUES_ALONE,
    [names],
  );
  return new Map(rows.map((row) => [row.name, row.version]));
}

const TAKE_QUEUES = "select name, version from queues where name = any($1::text[]) order by name for no key update";
const TAKE_QUEUES_ALONE = "select name, version from queues where name = any($1::text[]) order by name for update";

/**
 * Writes the settings of a queue whose row is locked, as is its parent's if it is `taken`, and notes who changed them.
 * Locks the domain, so that trees change one after the other, and so that the limits bind the ledger from this
 * transaction on.
 */
async function writeQueue(
  tx: Executor,
  of: {
    /** Null: the queue is new. */
    readonly before: WholeSettings | null;
    readonly after: WholeSettings;
    readonly taken: ReadonlyMap<string, number>;
    readonly by: ChangeBy & PoolBounds;
    readonly undo: (outcome: QueueOutcome) => never;
  },
): Promise<QueueOutcome> {
  const { before, after, taken, by, undo } = of;
  const { name, parent, strategy, stopPolicy, maxRunningJobs, maxWaitingJobs, policy, onClusterLost, quotas } = after;
  const flavors = quotas.map((quota) => quota.flavor);
  await takeDomain(tx, QUEUES_DOMAIN);
  const { edges, ...facts } = onlyRow(await tx.query<QueueFacts>(QUEUE_FACTS, [flavors]));
  // A parent that was made after queues were locked is not there yet for this transaction.
  const known = edges.filter((edge) => edge.name !== parent || taken.has(edge.name));
  const problem = parent === null ? null : treeProblem({ name, parent }, known);
  if (problem !== null) return undo({ kind: "misplaced", problem });
  const refused = poolRefusal(facts, by);
  if (refused !== null) return undo(refused);
  const settings = [strategy, parent, stopPolicy, maxRunningJobs, policyJson(policy), maxWaitingJobs, onClusterLost];
  await tx.query(WRITE_QUEUE, [flavors, by.nowMs, name, ...settings]);
  const noted = audited(tx, { action: before === null ? "CreateQueue" : "UpdateQueue", name, before, after }, by);
  await tx.query(WRITE_QUOTAS, [...noted, name, json(quotas.map((quota, position) => ({ ...quota, position })))]);
  return { kind: "done", record: await existingQueue(tx, name) };
}

/** A queue whose row the transaction has locked. */
async function existingQueue(tx: Executor, name: string): Promise<QueueRecord> {
  const record = await getQueue(tx, name);
  if (record === null) throw new Error(`queue ${name} is gone in the transaction that has locked it`);
  return record;
}

/** The parameters of INSERT_AUDIT for a change of a queue. */
function audited(
  tx: Executor,
  change: {
    readonly action: "CreateQueue" | "UpdateQueue" | "DeleteQueue";
    readonly name: string;
    readonly before: WholeSettings | null;
    readonly after: WholeSettings | null;
  },
  { actor, nowMs }: ChangeBy,
): readonly unknown[] {
  const { action, name, before, after } = change;
  return auditParams(tx, { timeMs: nowMs, actor, action, subject: name, details: { before, after } });
}

type QueueFacts = PoolFacts & { readonly edges: readonly TreeEdge[] };

const QUEUE_FACTS = `
select coalesce((select json_agg(json_build_object('name', name, 'parent', parent)) from queues), '[]') as edges,
       ${POOL_FACTS}`;

/**
 * Its quotas are written by a statement of their own: one statement cannot replace rows with the same keys. Parts of a
 * statement that nothing reads run after it, the last one first: pools are locked before quotas.
 */
const WRITE_QUEUE = `
with raised as (
  update quota_domains set limits_version = limits_version + 1 where name = 'default'
), cleared as (
  delete from queue_quotas where queue = $3
), made as (${INSERT_POOLS}
)
update queues set strategy = $4, parent = $5, stop_policy = $6, max_running_jobs = $7, policy = $8::jsonb,
       max_waiting_jobs = $9, on_cluster_lost = $10
 where name = $3`;

const WRITE_QUOTAS = `
with noted as (${INSERT_AUDIT}
)
insert into queue_quotas (queue, position, flavor, resource, nominal, borrowing_limit, lending_limit)
select $12, position, flavor, resource, nominal, "borrowingLimit", "lendingLimit"
  from json_to_recordset($13::json)
    as q (position int, flavor text, resource text, nominal bigint, "borrowingLimit" bigint, "lendingLimit" bigint)`;

/** Deletes a queue, unless a live job, tokens, a pool, a namespace or another queue refers to it, and notes who did. */
export function deleteQueue(db: Db, name: string, by: ChangeBy): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    const locked = await tx.query("select 1 from queues where name = $1 for update", [name]);
    // A queue that is made after this statement is not locked, so it is not deleted either.
    const record = locked.length === 0 ? null : await getQueue(tx, name);
    if (record === null) return { kind: "notFound" };
    // A grant locks the domain too, so the queue's charges do not change from here on.
    await takeDomain(tx, QUEUES_DOMAIN);
    const [user] = await tx.query<{ by: string }>(QUEUE_USER, [name]);
    if (user !== undefined) return { kind: "inUse", by: user.by };
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    const before = changedSettings(null, record);
    await tx.query(DELETE_QUEUE, [...audited(tx, { action: "DeleteQueue", name, before, after: null }, by), name]);
    return { kind: "done", record };
  });
}

const DELETE_QUEUE = `
with noted as (${INSERT_AUDIT}
)
delete from queues where name = $12`;

const QUEUE_USER = `
(select 'job ' || namespace || '/' || name as by from jobs where queue = $1 and completion_ms is null limit 1)
union all
(select 'tokens of ' || pool from allocation_sums where scope = 'queue' and name = $1 and used > 0 limit 1)
union all
(select 'pool ' || name from pools where queue = $1 order by name limit 1)
union all
(select 'namespace ' || name from namespaces where default_queue = $1 limit 1)
union all
(select 'queue ' || name || ', which is below it' from queues where parent = $1 order by name limit 1)
limit 1`;

export async function getQueue(executor: Executor, name: string): Promise<QueueRecord | null> {
  const [record] = await selectQueues(executor, name);
  return record ?? null;
}

export function listQueues(executor: Executor): Promise<readonly QueueRecord[]> {
  return selectQueues(executor, null);
}

/** Keeps others from deleting a queue until the transaction ends. False: it does not exist. */
export async function keepQueue(tx: Executor, name: string): Promise<boolean> {
  const rows = await tx.query("select 1 from queues where name = $1 for key share", [storable(name)]);
  return rows.length === 1;
}

export async function queueExists(executor: Executor, name: string): Promise<boolean> {
  const rows = await executor.query("select 1 from queues where name = $1", [storable(name)]);
  return rows.length === 1;
}

/** The use of a queue depends on the others of its tree, so this reads the charges of all, also for one queue. */
async function selectQueues(executor: Executor, name: string | null): Promise<readonly QueueRecord[]> {
  const { rows, settings, sums } = onlyRow(await executor.query<QueueRows>(READ_QUEUES, [name]));
  const queues = new Map(settings.map((row) => [row.name, withPolicy(row)]));
  const uses = queueUses([...queues.values()], sums);
  return rows.map((row) => ({
    ...withPolicy(row),
    stoppedBy: stopOf(row.name, queues)?.queue ?? null,
    frozenBy: freezerOf(row.name, queues)?.queue ?? null,
    ...(uses.get(row.name) ?? NO_USE),
  }));
}

type QueueRow = Omit<QueueRecord, "policy" | "stoppedBy" | "frozenBy" | keyof QueueUse> & SettingsRow;

type QueueRows = {
  readonly rows: readonly QueueRow[];
  /** Of all queues. */
  readonly settings: readonly (SettingsRow & Pick<QueueRecord, "freeze">)[];
  readonly sums: readonly QueueSum[];
};

/** What gangs hold in clusters that count as lost, by queue. */
const LOST_BY_QUEUE = `
select queue, json_object_agg(pool, amount) as lost
  from (
    select a.queue, a.pool, sum(a.amount)::bigint as amount
      from clusters c
      join admissions d on d.cluster = c.name and d.tokens_released_ms is null
      join allocations a on a.job_uid = d.job_uid and a.admission = d.number and a.released_ms is null
     where c.lost_ms is not null
     group by a.queue, a.pool
  ) held
 group by queue`;

const SELECT_QUEUES = `
select ${QUEUE_SETTINGS}, q.frozen as "freeze",
       q.version, q.create_ms as "createTimeMs", q.update_ms as "updateTimeMs",
       (select count(*) from jobs where queue = q.name and phase = 'WAITING') as waiting,
       (select count(*) from admissions a join jobs j on j.uid = a.job_uid where a.state = 'live' and j.queue = q.name)
         as admitted,
       coalesce(l.lost, '{}') as lost
  from queues q left join (${LOST_BY_QUEUE}) l on l.queue = q.name
 where $1::text is null or q.name = $1
 order by q.name`;

const READ_QUEUES = `
select coalesce((select json_agg(q) from (${SELECT_QUEUES}) q), '[]') as rows,
       coalesce((
         select json_agg(s) from (select ${QUEUE_SETTINGS}, q.frozen as "freeze" from queues q) s
       ), '[]') as settings,
       coalesce((
         select json_agg(json_build_object('pool', pool, 'queue', name, 'used', used))
           from allocation_sums where scope = 'queue' and used > 0
       ), '[]') as sums`;
