/**
 * Priority classes. Every change takes the row of the default class first, so changes follow each other: there is one
 * default at most, and never more classes than the maximum.
 */
import type { AuditAction } from "../../../core/admin/audit.ts";
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import {
  changeRefusal,
  PRIORITY_CLASSES_MAX,
  type PriorityClassChange,
  type PriorityClassOutcome,
  type PriorityClassRecord,
  type PriorityClassSettings,
} from "../../../core/admin/priority-class.ts";
import { type Db, type Executor, onlyRow, storable } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion } from "../ledger/quota-domains.ts";
import { appendAudit } from "./audit.ts";

/** Who changes a class, and when. */
type ChangeBy = { readonly actor: string; readonly nowMs: number };

export function createPriorityClass(
  db: Db,
  settings: PriorityClassSettings,
  by: ChangeBy,
): Promise<PriorityClassOutcome> {
  return db.tx(async (tx) => {
    const { name, value, preemptionPolicy, description, globalDefault } = settings;
    const other = await takeDefault(tx);
    const { count, exists } = onlyRow(await tx.query<{ count: number; exists: boolean }>(LOOK, [name]));
    if (exists) return { kind: "exists" };
    if (globalDefault && other !== null) return { kind: "otherDefault", name: other };
    if (count >= PRIORITY_CLASSES_MAX) return { kind: "full", max: PRIORITY_CLASSES_MAX };
    await tx.query(INSERT, [name, value, storable(description), preemptionPolicy, by.nowMs]);
    if (globalDefault) await setDefault(tx, name);
    // It may bound how far priorities grow in queues.
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    return changed(tx, { action: "CreatePriorityClass", before: null, name }, by);
  });
}

const LOOK = `
select count(*) as count, coalesce(bool_or(name = $1), false) as exists from priority_classes`;

const INSERT = `
insert into priority_classes (name, value, description, preemption_policy, create_ms, update_ms)
values ($1, $2, $3, $4, $5, $5)`;

export function updatePriorityClass(db: Db, change: PriorityClassChange, by: ChangeBy): Promise<PriorityClassOutcome> {
  return db.tx(async (tx) => {
    const { name, globalDefault } = change;
    const other = await takeDefault(tx);
    const before = await getPriorityClass(tx, name);
    if (before === null) return { kind: "notFound" };
    const refused = changeRefusal(before, change);
    if (refused !== null) return refused;
    if (globalDefault && other !== null && other !== name) return { kind: "otherDefault", name: other };
    return writeChange(tx, { before, change }, by);
  });
}

/** A change that changes nothing leaves no trace. */
async function writeChange(
  tx: Executor,
  { before, change }: { readonly before: PriorityClassRecord; readonly change: PriorityClassChange },
  by: ChangeBy,
): Promise<PriorityClassOutcome> {
  const { name, description, globalDefault } = change;
  const isDefaultKept = globalDefault === before.globalDefault;
  if (isDefaultKept && storable(description) === before.description) return { kind: "done", record: before };
  if (!isDefaultKept) await setDefault(tx, globalDefault ? name : null);
  await tx.query(UPDATE, [name, storable(description), by.nowMs]);
  return changed(tx, { action: "UpdatePriorityClass", before, name }, by);
}

const UPDATE = `
update priority_classes set description = $2, version = version + 1, update_ms = $3 where name = $1`;

export function deletePriorityClass(db: Db, name: string, by: ChangeBy): Promise<ChangeOutcome<PriorityClassRecord>> {
  return db.tx(async (tx) => {
    await takeDefault(tx);
    const before = await getPriorityClass(tx, name);
    if (before === null) return { kind: "notFound" };
    if (before.globalDefault) await setDefault(tx, null);
    await tx.query("delete from priority_classes where name = $1", [name]);
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    await note(tx, { action: "DeletePriorityClass", name, before, after: null }, by);
    return { kind: "done", record: before };
  });
}

/** Locks the row of the default class, which there is from here on, and returns the name of the class. */
async function takeDefault(tx: Executor): Promise<string | null> {
  return onlyRow(await tx.query<{ name: string | null }>(TAKE_DEFAULT)).name;
}

const TAKE_DEFAULT = `
insert into priority_class_default (one) values (true) on conflict (one) do update set one = true
returning name`;

async function setDefault(tx: Executor, name: string | null): Promise<void> {
  await tx.query("update priority_class_default set name = $1 where one", [name]);
}

/** Notes a change that was written, and returns the class after it. */
async function changed(
  tx: Executor,
  change: {
    readonly action: AuditAction;
    readonly name: string;
    readonly before: PriorityClassRecord | null;
  },
  by: ChangeBy,
): Promise<PriorityClassOutcome> {
  const record = await getPriorityClass(tx, change.name);
  if (record === null) throw new Error(`priority class ${change.name} is gone in the transaction that wrote it`);
  await note(tx, { ...change, after: record }, by);
  return { kind: "done", record };
}

function note(
  tx: Executor,
  change: {
    readonly action: AuditAction;
    readonly name: string;
    readonly before: PriorityClassRecord | null;
    readonly after: PriorityClassRecord | null;
  },
  { actor, nowMs }: ChangeBy,
): Promise<void> {
  const { action, name } = change;
  const details = { before: settingsOf(change.before), after: settingsOf(change.after) };
  return appendAudit(tx, { timeMs: nowMs, actor, action, subject: name, details });
}

function settingsOf(record: PriorityClassRecord | null): PriorityClassSettings | null {
  if (record === null) return null;
  const { name, value, preemptionPolicy, description, globalDefault } = record;
  return { name, value, preemptionPolicy, description, globalDefault };
}

export async function getPriorityClass(executor: Executor, name: string): Promise<PriorityClassRecord | null> {
  const [record] = await executor.query<PriorityClassRecord>(`${SELECT} where c.name = $1`, [storable(name)]);
  return record ?? null;
}

/** The highest value first. */
export function listPriorityClasses(executor: Executor): Promise<readonly PriorityClassRecord[]> {
  return executor.query<PriorityClassRecord>(`${SELECT} order by c.value desc, c.name`);
}

const SELECT = `
select c.name, c.value, c.description, c.preemption_policy as "preemptionPolicy", c.version,
       c.create_ms as "createTimeMs", c.update_ms as "updateTimeMs",
       exists (select from priority_class_default d where d.name = c.name) as "globalDefault"
  from priority_classes c`;

/** The class of jobs that name neither a class nor a priority. */
export const FIND_DEFAULT = `
select c.name, c.value, c.preemption_policy as "preemptionPolicy"
  from priority_class_default d join priority_classes c on c.name = d.name`;
