/**
 * Training runtimes. Those of a namespace are created under the lock of its row, those of the installation under the
 * lock of the installation's row: each create counts those before it. Shipped runtimes have no rows.
 */
import type { AuditAction } from "../../../core/admin/audit.ts";
import {
  type ListedRuntime,
  RUNTIMES_MAX,
  type RuntimeChange,
  type RuntimeOutcome,
  type RuntimePage,
  type RuntimeQuery,
} from "../../../core/admin/training-runtime.ts";
import { SHIPPED_RUNTIMES, shippedRuntime } from "../../../core/kinds/trainjob/shipped-runtimes.ts";
import {
  type RuntimeName,
  type RuntimeSettings,
  runtimeText,
  type TrainingRuntime,
} from "../../../core/kinds/trainjob/training-runtime.ts";
import { compareText } from "../../../runtime/compare-text.ts";
import { contentHash } from "../../../runtime/content-hash.ts";
import { arrayAt, canonicalJson, objectAt, stringAt } from "../../../runtime/json.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, json, onlyRow, undoable } from "../db/db.ts";
import { appendAudit } from "./audit.ts";

/** How a runtime is changed, and when. `isTried`: everything is undone. */
type ChangeBy = { readonly nowMs: number; readonly isTried: boolean };

const NAMES = `namespace, name, labels, version, create_ms as "createTimeMs"`;
const COLUMNS = `${NAMES}, spec`;

export function createRuntime(db: Db, settings: RuntimeSettings, by: ChangeBy): Promise<RuntimeOutcome> {
  if (shippedRuntime(settings) !== null) return Promise.resolve({ kind: "shipped" });
  return undoable<RuntimeOutcome>(db, async (tx, undo) => {
    const { namespace, name, labels, spec } = settings;
    const home = namespace === "" ? await tx.query(LOCK_INSTALLATION) : await tx.query(LOCK_NAMESPACE, [namespace]);
    if (home.length === 0) return { kind: "unknownNamespace" };
    const { count, exists } = onlyRow(await tx.query<{ count: number; exists: boolean }>(LOOK, [namespace, name]));
    if (exists) return { kind: "exists" };
    if (count >= RUNTIMES_MAX) return { kind: "full", max: RUNTIMES_MAX };
    const params = [namespace, name, json(labels), json(spec), by.nowMs];
    const record = onlyRow(await tx.query<TrainingRuntime>(INSERT, params));
    if (by.isTried) return undo({ kind: "done", record });
    await note(tx, { action: "CreateRuntime", before: null, after: record }, by);
    return { kind: "done", record };
  });
}

const LOCK_INSTALLATION = "select 1 from installation for no key update";

/** Jobs can be created in the namespace meanwhile. It cannot be deleted. */
const LOCK_NAMESPACE = "select 1 from namespaces where name = $1 for no key update";

const LOOK = `
select count(*)::int as count, coalesce(bool_or(name = $2), false) as exists
  from training_runtimes where namespace = $1`;

const INSERT = `
insert into training_runtimes (namespace, name, labels, spec, create_ms)
values ($1, $2, $3::json, $4::json, $5)
returning ${COLUMNS}`;

/** A change that changes nothing leaves no trace. */
export function updateRuntime(db: Db, change: RuntimeChange, by: ChangeBy): Promise<RuntimeOutcome> {
  if (shippedRuntime(change) !== null) return Promise.resolve({ kind: "shipped" });
  return undoable<RuntimeOutcome>(db, async (tx, undo) => {
    const { namespace, name, labels, spec, version } = change;
    const [before] = await tx.query<TrainingRuntime>(LOCK, [namespace, name]);
    if (before === undefined) return { kind: "notFound" };
    if (version !== 0 && version !== before.version) return { kind: "stale" };
    if (canonicalJson([labels, spec]) === canonicalJson([before.labels, before.spec])) {
      return { kind: "done", record: before };
    }
    const params = [namespace, name, json(labels), json(spec)];
    const record = onlyRow(await tx.query<TrainingRuntime>(UPDATE, params));
    if (by.isTried) return undo({ kind: "done", record });
    await note(tx, { action: "UpdateRuntime", before, after: record }, by);
    return { kind: "done", record };
  });
}

const LOCK = `select ${COLUMNS} from training_runtimes where namespace = $1 and name = $2 for update`;

const UPDATE = `
update training_runtimes set labels = $3::json, spec = $4::json, version = version + 1
 where namespace = $1 and name = $2
returning ${COLUMNS}`;

export function deleteRuntime(db: Db, of: RuntimeName, nowMs: number): Promise<RuntimeOutcome> {
  if (shippedRuntime(of) !== null) return Promise.resolve({ kind: "shipped" });
  return db.tx(async (tx) => {
    const [record] = await tx.query<TrainingRuntime>(DELETE, [of.namespace, of.name]);
    if (record === undefined) return { kind: "notFound" };
    await note(tx, { action: "DeleteRuntime", before: record, after: null }, { nowMs, isTried: false });
    return { kind: "done", record };
  });
}

const DELETE = `delete from training_runtimes where namespace = $1 and name = $2 returning ${COLUMNS}`;

/** Deletes the runtimes of a namespace whose row the transaction has locked. Returns their names. */
export async function deleteRuntimesOf(tx: Executor, namespace: string): Promise<readonly string[]> {
  const gone = await tx.query<{ name: string }>(DELETE_ALL, [namespace]);
  return gone.map(({ name }) => name).sort(compareText);
}

const DELETE_ALL = "delete from training_runtimes where namespace = $1 returning name";

/** Templates may hold secrets: an entry has the hash of a spec, and what it says of nodes and groups. */
function note(
  tx: Executor,
  change: {
    readonly action: Extract<AuditAction, "CreateRuntime" | "UpdateRuntime" | "DeleteRuntime">;
    readonly before: TrainingRuntime | null;
    readonly after: TrainingRuntime | null;
  },
  { nowMs }: ChangeBy,
): Promise<void> {
  const { action, before, after } = change;
  const named = after ?? before;
  const subject = named === null ? "" : runtimeText(named);
  const details = { before: settingsOf(before), after: settingsOf(after) };
  return appendAudit(tx, { timeMs: nowMs, action, subject, details });
}

function settingsOf(record: TrainingRuntime | null) {
  if (record === null) return null;
  const { labels, spec } = record;
  const groups = arrayAt(objectAt(objectAt(spec, "template"), "spec"), "replicatedJobs");
  return {
    labels,
    mlPolicy: objectAt(spec, "mlPolicy"),
    groups: groups.map((group) => stringAt(group, "name") ?? ""),
    specHash: contentHash(spec),
  };
}

/** A shipped runtime hides a stored one of its name, which an older program has made. Null: there is no runtime. */
export async function findRuntime(
  executor: Executor,
  { namespace, name }: RuntimeName,
): Promise<TrainingRuntime | null> {
  const shipped = shippedRuntime({ namespace, name });
  if (shipped !== null) return shipped;
  const [record] = await executor.query<TrainingRuntime>(GET, [namespace, name]);
  return record ?? null;
}

const GET = `select ${COLUMNS} from training_runtimes where namespace = $1 and name = $2`;

export async function listRuntimes(
  executor: Executor,
  { namespaces, after, pageSize }: RuntimeQuery,
): Promise<RuntimePage | "badCursor"> {
  const key = after === null ? ["", ""] : decodeCursor(after, ORDER, ["string", "string"]);
  if (key === null) return "badCursor";
  const [namespace, name] = [String(key[0]), String(key[1])];
  const withShipped = (namespaces === null || namespaces.includes("")) && namespace === "";
  const shipped = withShipped ? SHIPPED_RUNTIMES.filter((one) => one.name > name).map(listed) : [];
  const params = [namespaces, namespace, name, SHIPPED_NAMES, pageSize + 1];
  const stored = await executor.query<ListedRuntime>(LIST, params);
  const found = [...shipped, ...stored].sort(byName);
  const runtimes = found.slice(0, pageSize);
  const last = runtimes.at(-1);
  const hasMore = found.length > pageSize && last !== undefined;
  return { runtimes, next: hasMore ? encodeCursor(ORDER, [last.namespace, last.name]) : null };
}

const ORDER = "training_runtimes";
const SHIPPED_NAMES = SHIPPED_RUNTIMES.map(({ name }) => name);

function listed({ spec: _omitted, ...runtime }: TrainingRuntime): ListedRuntime {
  return runtime;
}

function byName(one: RuntimeName, other: RuntimeName): number {
  return compareText(one.namespace, other.namespace) || compareText(one.name, other.name);
}

const LIST = `
select ${NAMES} from training_runtimes
 where ($1::text[] is null or namespace = any($1::text[]))
   and (namespace, name) > ($2::text, $3::text)
   and not (namespace = '' and name = any($4::text[]))
 order by namespace, name
 limit $5`;
