import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type {
  NamespaceChange,
  NamespaceOutcome,
  NamespaceRecord,
  NamespaceSettings,
} from "../../../core/admin/namespace.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, json, onlyRow, undoable } from "../db/db.ts";
import { prepared, unseenArray } from "../db/prepared.ts";
import { appendAudit } from "./audit.ts";
import { keepQueue } from "./queues.ts";
import { deleteRuntimesOf } from "./training-runtimes.ts";

const COLUMNS = `
name, project, default_queue as "defaultQueue", pod_policy as "podPolicy",
keep_failure_logs as "keepFailureLogs", on_cluster_lost as "onClusterLost", version, create_ms as "createTimeMs"`;

/**
 * Creates a namespace. `exists`: the name is taken, and the namespace stays as it is. `full`: there are `max`
 * namespaces. Transactions that create some at the same time may together exceed the maximum by a few.
 */
export async function ensureNamespace(
  executor: Executor,
  namespace: NamespaceSettings,
  { max, nowMs }: { readonly max: number; readonly nowMs: number },
): Promise<"made" | "exists" | "full"> {
  const { name, project, defaultQueue, keepFailureLogs, onClusterLost } = { ...NEW_NAMESPACE, ...namespace };
  const params = [name, project, defaultQueue, nowMs, max, policyJson(namespace), keepFailureLogs, onClusterLost];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    if ((await executor.query(ENSURE_NAMESPACE, params)).length === 1) return "made";
    // A statement of its own also sees a namespace whose creation the first one has waited for.
    if ((await keepNamespaces(executor, [name])).has(name)) return "exists";
    const { full } = onlyRow(await executor.query<{ full: boolean }>(IS_FULL, [max]));
    if (full) return "full";
  }
  throw new UnavailableError(`namespace ${name} was deleted ${ATTEMPTS_MAX} times while it was used; retry later`);
}

/** The settings of a new namespace that sets none. */
const NEW_NAMESPACE = { podPolicy: null, keepFailureLogs: true, onClusterLost: "MOVE" } as const;

/** How often a namespace is made again that others delete at the same time. */
const ATTEMPTS_MAX = 5;

/** Returns those of these namespaces that exist. In a transaction, keeps others from deleting them until the end. */
export async function keepNamespaces(executor: Executor, names: readonly string[]): Promise<ReadonlySet<string>> {
  const kept = await executor.query<{ name: string }>(KEEP_NAMESPACES, [names]);
  return new Set(kept.map(({ name }) => name));
}

/** Namespaces are locked before queues. */
const KEEP_NAMESPACES = prepared(
  `select name from namespaces where name = any(${unseenArray("$1", "text")}) order by name for key share`,
);

const IS_FULL = "select count(*) >= $1::bigint as full from namespaces";

const ENSURE_NAMESPACE = `
insert into namespaces (name, project, default_queue, create_ms, pod_policy, keep_failure_logs, on_cluster_lost)
select $1::text, $2::text, $3::text, $4::bigint, $6::jsonb, $7::boolean, $8::text
 where exists (select from namespaces where name = $1::text) or (select count(*) from namespaces) < $5::bigint
on conflict (name) do nothing
returning name`;

export function createNamespace(
  db: Db,
  change: NamespaceChange,
  bounds: { readonly max: number; readonly nowMs: number },
): Promise<NamespaceOutcome> {
  return undoable<NamespaceOutcome>(db, async (tx, undo) => {
    const { namesQueue, ...namespace } = change;
    // Namespaces are locked before queues, as when a job is created.
    const outcome = await ensureNamespace(tx, namespace, bounds);
    if (!(await keepDefaultQueue(tx, change))) return undo({ kind: "unknownQueue", name: change.defaultQueue });
    if (outcome === "full") return { kind: "full", max: bounds.max };
    if (outcome === "exists") return { kind: "exists" };
    const record = { ...NEW_NAMESPACE, ...namespace, version: 1, createTimeMs: bounds.nowMs };
    await note(tx, { action: "CreateNamespace", before: null, after: record }, bounds.nowMs);
    return { kind: "done", record };
  });
}

/** Keeps others from deleting the default queue until the transaction ends. False: it must exist, and does not. */
async function keepDefaultQueue(tx: Executor, { defaultQueue, namesQueue }: NamespaceChange): Promise<boolean> {
  return (await keepQueue(tx, defaultQueue)) || namesQueue !== true;
}

function policyJson({ podPolicy }: NamespaceSettings): string | null {
  return podPolicy === undefined ? null : json(podPolicy);
}

/**
 * Changes all settings. Jobs keep the project that they were created under. Version 0: any version. A namespace that
 * keeps no lines of failed containers any more also loses those that it has.
 */
export function updateNamespace(
  db: Db,
  change: NamespaceChange & { readonly version: number },
  nowMs: number,
): Promise<NamespaceOutcome> {
  return db.tx(async (tx) => {
    const { name, project, defaultQueue, version } = change;
    const [before] = await tx.query<NamespaceRecord>(LOCK_NAMESPACE, [name]);
    if (before === undefined) return { kind: "notFound" };
    if (!(await keepDefaultQueue(tx, change))) return { kind: "unknownQueue", name: defaultQueue };
    const { keepFailureLogs = null, onClusterLost = null } = change;
    const params = [name, project, defaultQueue, version, policyJson(change), keepFailureLogs, onClusterLost];
    const [record] = await tx.query<NamespaceRecord>(UPDATE_NAMESPACE, params);
    if (record === undefined) return { kind: "stale" };
    if (!record.keepFailureLogs) await tx.query(DELETE_LOGS, [name]);
    await note(tx, { action: "UpdateNamespace", before, after: record }, nowMs);
    return { kind: "done", record };
  });
}

const LOCK_NAMESPACE = `select ${COLUMNS} from namespaces where name = $1 for no key update`;

const UPDATE_NAMESPACE = `
update namespaces
   set project = $2, default_queue = $3, pod_policy = coalesce($5::jsonb, pod_policy),
       keep_failure_logs = coalesce($6::boolean, keep_failure_logs),
       on_cluster_lost = coalesce($7::text, on_cluster_lost), version = version + 1
 where name = $1 and ($4::bigint = 0 or version = $4)
returning ${COLUMNS}`;

/** Rows that are locked are being deleted with their jobs. */
const DELETE_LOGS = `
with every as (
  select id from failure_logs where namespace = $1 order by id for update skip locked
)
delete from failure_logs l using every where l.namespace = $1 and l.id = every.id`;

/** Deletes a namespace with its training runtimes, unless it has a job's record, or a robot whose token counts. */
export function deleteNamespace(db: Db, name: string, nowMs: number): Promise<ChangeOutcome<NamespaceRecord>> {
  return db.tx(async (tx) => {
    // While the row is locked, no job can be created in the namespace: its foreign key locks the row too.
    const [record] = await tx.query<NamespaceRecord>(`select ${COLUMNS} from namespaces where name = $1 for update`, [
      name,
    ]);
    if (record === undefined) return { kind: "notFound" };
    const [user] = await tx.query<{ name: string }>("select name from jobs where namespace = $1 limit 1", [name]);
    if (user !== undefined) return { kind: "inUse", by: `job ${name}/${user.name}` };
    const [robot] = await tx.query<{ name: string }>(ROBOT_OF, [name, nowMs]);
    if (robot !== undefined) return { kind: "inUse", by: `robot ${robot.name} of namespace ${name}` };
    await tx.query("delete from namespaces where name = $1", [name]);
    await tx.query("delete from tenant_limits where kind = $1 and name = $2", ["namespace", name]);
    const runtimes = await deleteRuntimesOf(tx, name);
    const more = runtimes.length === 0 ? {} : { trainingRuntimes: runtimes };
    await note(tx, { action: "DeleteNamespace", before: record, after: null, more }, nowMs);
    return { kind: "done", record };
  });
}

const ROBOT_OF =
  "select name from robot_tokens where namespace = $1 and revoked_ms is null and expires_ms > $2::bigint limit 1";

function note(
  tx: Executor,
  change: {
    readonly action: "CreateNamespace" | "UpdateNamespace" | "DeleteNamespace";
    readonly before: NamespaceRecord | null;
    readonly after: NamespaceRecord | null;
    /** What else the entry has. Omitted: nothing. */
    readonly more?: Readonly<Record<string, unknown>>;
  },
  nowMs: number,
): Promise<void> {
  const { action, before, after, more = {} } = change;
  const subject = (after ?? before)?.name ?? "";
  const details = { before: settingsOf(before), after: settingsOf(after), ...more };
  return appendAudit(tx, { timeMs: nowMs, action, subject, details });
}

function settingsOf(record: NamespaceRecord | null) {
  if (record === null) return null;
  const { name: _subject, version: _version, createTimeMs: _created, ...settings } = record;
  return settings;
}

export async function getNamespace(executor: Executor, name: string): Promise<NamespaceRecord | null> {
  const [record] = await executor.query<NamespaceRecord>(`select ${COLUMNS} from namespaces where name = $1`, [name]);
  return record ?? null;
}

export function listNamespaces(executor: Executor): Promise<readonly NamespaceRecord[]> {
  return executor.query<NamespaceRecord>(`select ${COLUMNS} from namespaces order by name`);
}
