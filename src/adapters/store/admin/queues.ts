/**
 * Queues, the trees that they form, and their quotas. Quota admins share GPUs among teams with them; a change takes
 * effect for the next grant, in one transaction with the ledger's limits.
 */
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { QueueOutcome, QueueRecord, QueueSettings } from "../../../core/admin/queue.ts";
import { type StoppableQueue, stopOf } from "../../../core/plan/queue-stop.ts";
import { type TreeEdge, treeProblem } from "../../../core/quota/check-tree.ts";
import { GrantBook, type RecordedSum } from "../../../core/quota/grant-book.ts";
import { queueLimitsOf, type TreeQueue } from "../../../core/quota/tree.ts";
import { type Db, type Executor, json, onlyRow, storable, undoable } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";
import { INSERT_POOLS, POOL_FACTS, type PoolBounds, type PoolFacts, poolRefusal } from "./pools.ts";

export function createQueue(db: Db, queue: QueueSettings, bounds: PoolBounds): Promise<QueueOutcome> {
  return undoable<QueueOutcome>(db, async (tx, undo) => {
    const taken = await takeQueues(tx, queue);
    if (taken.has(queue.name)) return { kind: "exists" };
    const made = await tx.query(CREATE_QUEUE, [queue.name, queue.strategy, bounds.nowMs]);
    if (made.length === 0) return undo({ kind: "exists" });
    return writeQueue(tx, queue, bounds, undo);
  });
}

/** Without its parent, which is checked once the domain is locked. Queues are locked before the domain. */
const CREATE_QUEUE = `
insert into queues (name, strategy, create_ms, update_ms) values ($1, $2, $3, $3)
on conflict (name) do nothing
returning name`;

/**
 * Changes a queue. Its limits bind the ledger from this transaction on; a limit below use takes nothing away. Version
 * 0: any version.
 */
export function updateQueue(
  db: Db,
  queue: QueueSettings & { readonly version: number },
  bounds: PoolBounds,
): Promise<QueueOutcome> {
  return undoable<QueueOutcome>(db, async (tx, undo) => {
    const current = (await takeQueues(tx, queue)).get(queue.name);
    if (current === undefined) return { kind: "notFound" };
    if (queue.version !== 0 && queue.version !== current) return { kind: "stale" };
    await tx.query("update queues set version = version + 1, update_ms = $2 where name = $1", [
      queue.name,
      bounds.nowMs,
    ]);
    return writeQueue(tx, queue, bounds, undo);
  });
}

/** Locks a queue and its parent. Returns the versions of those that exist. */
async function takeQueues(tx: Executor, { name, parent = null }: QueueSettings): Promise<ReadonlyMap<string, number>> {
  const names = [name, ...(parent === null ? [] : [parent])].map(storable);
  const rows = await tx.query<{ name: string; version: number }>(TAKE_QUEUES, [names]);
  return new Map(rows.map((row) => [row.name, row.version]));
}

const TAKE_QUEUES = "select name, version from queues where name = any($1::text[]) order by name for no key update";

/**
 * Writes the settings of a queue whose row and whose parent's row are locked. Locks the domain, so that trees change
 * one after the other, and so that the limits bind the ledger from this transaction on.
 */
async function writeQueue(
  tx: Executor,
  queue: QueueSettings,
  bounds: PoolBounds,
  undo: (outcome: QueueOutcome) => never,
): Promise<QueueOutcome> {
  const { name, parent = null, strategy, stopPolicy = null, maxRunningJobs = null, quotas } = queue;
  const flavors = quotas.map((quota) => quota.flavor);
  await takeDomain(tx, QUEUES_DOMAIN);
  const { edges, ...facts } = onlyRow(await tx.query<QueueFacts>(QUEUE_FACTS, [flavors]));
  const problem = parent === null ? null : treeProblem({ name, parent }, edges);
  if (problem !== null) return undo({ kind: "misplaced", problem });
  const refused = poolRefusal(facts, bounds);
  if (refused !== null) return undo(refused);
  await tx.query(WRITE_QUEUE, [flavors, bounds.nowMs, name, strategy, parent, stopPolicy, maxRunningJobs]);
  await tx.query(WRITE_QUOTAS, [name, json(quotas.map((quota, position) => ({ ...quota, position })))]);
  const [record] = await selectQueues(tx, name);
  if (record === undefined) throw new Error(`queue ${name} is gone in the transaction that wrote it`);
  return { kind: "done", record };
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
update queues set strategy = $4, parent = $5, stop_policy = coalesce($6, stop_policy), max_running_jobs = $7
 where name = $3`;

const WRITE_QUOTAS = `
insert into queue_quotas (queue, position, flavor, resource, nominal, borrowing_limit, lending_limit)
select $1, position, flavor, resource, nominal, "borrowingLimit", "lendingLimit"
  from json_to_recordset($2::json)
    as q (position int, flavor text, resource text, nominal bigint, "borrowingLimit" bigint, "lendingLimit" bigint)`;

/** Deletes a queue, unless a live job, tokens, a pool, a namespace or another queue refers to it. */
export function deleteQueue(db: Db, name: string): Promise<ChangeOutcome<QueueRecord>> {
  return db.tx(async (tx) => {
    await tx.query("select 1 from queues where name = $1 for update", [name]);
    const record = await getQueue(tx, name);
    if (record === null) return { kind: "notFound" };
    // A grant locks the domain too, so the queue's charges do not change from here on.
    await takeDomain(tx, QUEUES_DOMAIN);
    const [user] = await tx.query<{ by: string }>(QUEUE_USER, [name]);
    if (user !== undefined) return { kind: "inUse", by: user.by };
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    await tx.query("delete from queues where name = $1", [name]);
    return { kind: "done", record };
  });
}

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

/** The use of a queue depends on the queues below it, so this reads the charges of all, also for one queue. */
async function selectQueues(executor: Executor, name: string | null): Promise<readonly QueueRecord[]> {
  const { rows, tree } = onlyRow(
    await executor.query<{ rows: readonly QueueRow[]; tree: QueueTree }>(READ_QUEUES, [name]),
  );
  const book = new GrantBook({ pools: [], queues: queueLimitsOf(tree.queues) }, recordedSums(tree.sums));
  const used = new Map<string, Record<string, number>>();
  for (const { scope, used: amount } of book.used()) {
    if (scope.kind === "queue") used.set(scope.queue, { ...used.get(scope.queue), [scope.pool]: amount });
  }
  const queues = new Map(tree.queues.map((queue) => [queue.name, queue]));
  return rows.map((row) => ({
    ...row,
    stoppedBy: stopOf(row.name, queues)?.queue ?? null,
    used: used.get(row.name) ?? {},
  }));
}

type QueueRow = Omit<QueueRecord, "used" | "stoppedBy">;

type QueueTree = {
  readonly queues: readonly (TreeQueue & StoppableQueue)[];
  readonly sums: readonly { readonly pool: string; readonly queue: string; readonly used: number }[];
};

function recordedSums(sums: QueueTree["sums"]): readonly RecordedSum[] {
  return sums.map(({ pool, queue, used }) => ({ scope: { kind: "queue", pool, queue }, used }));
}

/** A row of queue_quotas as a plan reads it. Omits limits that are null. */
export const FLAVOR_QUOTA = `
json_strip_nulls(json_build_object(
  'flavor', flavor, 'resource', resource, 'nominal', nominal,
  'borrowingLimit', borrowing_limit, 'lendingLimit', lending_limit
))`;

const QUEUE_TREE = `
select coalesce((
         select json_agg(json_build_object(
                  'name', name, 'parent', parent, 'stopPolicy', stop_policy, 'quotas', coalesce((
                  select json_agg(json_build_object(
                           'pool', flavor, 'nominal', nominal,
                           'borrowingLimit', borrowing_limit, 'lendingLimit', lending_limit
                         ))
                    from queue_quotas where queue = q.name
                ), '[]')))
           from queues q
       ), '[]') as queues,
       coalesce((
         select json_agg(json_build_object('pool', pool, 'queue', name, 'used', used))
           from allocation_sums where scope = 'queue' and used > 0
       ), '[]') as sums`;

const SELECT_QUEUES = `
select q.name, q.parent, q.strategy, q.stop_policy as "stopPolicy",
       q.max_running_jobs as "maxRunningJobs", q.version,
       q.create_ms as "createTimeMs", q.update_ms as "updateTimeMs",
       coalesce((select json_agg(${FLAVOR_QUOTA} order by position) from queue_quotas where queue = q.name), '[]')
         as quotas,
       (select count(*) from jobs where queue = q.name and phase = 'WAITING') as waiting,
       (select count(*) from admissions a join jobs j on j.uid = a.job_uid where a.state = 'live' and j.queue = q.name)
         as admitted
  from queues q
 where $1::text is null or q.name = $1
 order by q.name`;

const READ_QUEUES = `
select coalesce((select json_agg(q) from (${SELECT_QUEUES}) q), '[]') as rows,
       (select row_to_json(t) from (${QUEUE_TREE}) t) as tree`;
