/** Roles and bindings. Each change is written to the audit log in its own transaction. */
import {
  type AccessChange,
  type AccessDeletion,
  BINDINGS_MAX,
  type BindingRecord,
  type JudgedBinding,
  type NewBindingOutcome,
  type NewRole,
  type NewRoleOutcome,
  ROLES_MAX,
  type RoleRecord,
} from "../../../core/access/binding.ts";
import type { Directory } from "../../../core/access/scope.ts";
import type { AuditAction } from "../../../core/admin/audit.ts";
import { type Db, type Executor, onlyRow, readSnapshot, storable, undoable } from "../db/db.ts";
import { appendAudit } from "./audit.ts";

/** Creates a role. Callers at the same time may together exceed the maximum by a few. */
export function createRole(db: Db, { name, permissions }: NewRole, change: AccessChange): Promise<NewRoleOutcome> {
  return db.tx(async (tx) => {
    const params = [name, permissions, change.nowMs, storable(change.actor), ROLES_MAX];
    const [row] = await tx.query<RoleRow>(CREATE_ROLE, params);
    if (row === undefined) return existsOrFull(tx, "access_roles", name, ROLES_MAX);
    await audit(tx, "CreateRole", name, change, { permissions });
    return { kind: "done", record: roleOf(row) };
  });
}

const ROLE_COLUMNS = `name, permissions, version, create_ms as "createTimeMs", created_by as "createdBy"`;

const CREATE_ROLE = `
insert into access_roles (name, permissions, create_ms, created_by)
select $1::text, $2::text[], $3::bigint, $4::text where (select count(*) from access_roles) < $5::bigint
on conflict (name) do nothing
returning ${ROLE_COLUMNS}`;

async function existsOrFull(tx: Executor, table: "access_roles" | "access_bindings", name: string, max: number) {
  const found = await tx.query(`select 1 from ${table} where name = $1`, [name]);
  return found.length > 0 ? ({ kind: "exists" } as const) : ({ kind: "full", max } as const);
}

/** Deletes a role, unless a binding has it. Version 0: any version. */
export function deleteRole(
  db: Db,
  { name, version }: { readonly name: string; readonly version: number },
  change: AccessChange,
): Promise<AccessDeletion> {
  return db.tx(async (tx) => {
    const [row] = await tx.query<RoleRow>(LOCK_ROLE, [storable(name)]);
    if (row === undefined) return { kind: "notFound" };
    if (version !== 0 && version !== row.version) return { kind: "stale" };
    const [user] = await tx.query<{ name: string }>(ROLE_USER, [name]);
    if (user !== undefined) return { kind: "inUse", by: `binding ${user.name}` };
    await tx.query("delete from access_roles where name = $1", [name]);
    await audit(tx, "DeleteRole", name, change, { permissions: row.permissions });
    return { kind: "done" };
  });
}

const LOCK_ROLE = `select ${ROLE_COLUMNS} from access_roles where name = $1 for update`;
const ROLE_USER = "select name from access_bindings where role = $1 order by name limit 1";

/** Creates a binding. Its role stays as the caller has seen it: a stored role is not deleted meanwhile. */
export function createBinding(db: Db, binding: JudgedBinding, change: AccessChange): Promise<NewBindingOutcome> {
  return undoable<NewBindingOutcome>(db, async (tx, undo) => {
    const { name, to, role, scope, roleVersion } = binding;
    const kept = roleVersion === null ? [null] : await tx.query(KEEP_ROLE, [role, roleVersion]);
    if (kept.length === 0) return undo({ kind: "unknownRole" });
    const params = [name, to.kind, to.name, role, scope.kind, scope.name, change.nowMs, storable(change.actor)];
    const [row] = await tx.query<BindingRow>(CREATE_BINDING, [...params, BINDINGS_MAX]);
    if (row === undefined) return existsOrFull(tx, "access_bindings", name, BINDINGS_MAX);
    await audit(tx, "CreateBinding", name, change, { to, role, scope });
    return { kind: "done", record: bindingOf(row) };
  });
}

const KEEP_ROLE = "select 1 from access_roles where name = $1 and version = $2 for key share";

const BINDING_COLUMNS = `
name, to_kind as "toKind", to_name as "toName", role, scope_kind as "scopeKind", scope_name as "scopeName", version,
create_ms as "createTimeMs", created_by as "createdBy"`;

const CREATE_BINDING = `
insert into access_bindings (name, to_kind, to_name, role, scope_kind, scope_name, create_ms, created_by)
select $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::text
 where (select count(*) from access_bindings) < $9::bigint
on conflict (name) do nothing
returning ${BINDING_COLUMNS}`;

/** Takes a binding away. Version 0: any version. */
export function deleteBinding(
  db: Db,
  { name, version }: { readonly name: string; readonly version: number },
  change: AccessChange,
): Promise<AccessDeletion> {
  return db.tx(async (tx) => {
    const [row] = await tx.query<BindingRow>(LOCK_BINDING, [storable(name)]);
    if (row === undefined) return { kind: "notFound" };
    if (version !== 0 && version !== row.version) return { kind: "stale" };
    await tx.query("delete from access_bindings where name = $1", [name]);
    const { to, role, scope } = bindingOf(row);
    await audit(tx, "DeleteBinding", name, change, { to, role, scope });
    return { kind: "done" };
  });
}

const LOCK_BINDING = `select ${BINDING_COLUMNS} from access_bindings where name = $1 for update`;

function audit(
  tx: Executor,
  action: AuditAction,
  subject: string,
  { actor, nowMs }: AccessChange,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  return appendAudit(tx, { timeMs: nowMs, actor, action, subject, details });
}

/** Everything that decisions need, as it is in the store. */
export type StoredAccess = {
  /** Differs whenever anything of it does. */
  readonly stamp: string;
  readonly roles: readonly RoleRecord[];
  readonly bindings: readonly BindingRecord[];
  readonly directory: Directory;
};

/** Reads all roles and bindings. Null: the stamp is still this one. */
export function readAccess(db: Db, known: string | null): Promise<StoredAccess | null> {
  return readSnapshot(db, async (tx) => {
    const { stamp } = onlyRow(await tx.query<{ stamp: string }>(STAMP));
    if (stamp === known) return null;
    const roles = await tx.query<RoleRow>(`select ${ROLE_COLUMNS} from access_roles order by name`);
    const bindings = await tx.query<BindingRow>(`select ${BINDING_COLUMNS} from access_bindings order by name`);
    const namespaces = await tx.query<NamespaceRow>(NAMESPACES);
    const queues = await tx.query<{ name: string; parent: string | null }>("select name, parent from queues");
    return {
      stamp,
      roles: roles.map(roleOf),
      bindings: bindings.map(bindingOf),
      directory: {
        namespaces: new Map(namespaces.map(({ name, ...rest }) => [name, rest])),
        parents: new Map(queues.map(({ name, parent }) => [name, parent])),
      },
    };
  });
}

/**
 * Rows of roles and bindings never change, and no version is given twice. All versions count, not the newest alone:
 * transactions may commit in another order than they got theirs.
 */
const STAMP = `
select concat_ws(' ',
  (select md5(string_agg(version::text, ',' order by version)) from access_roles),
  '/',
  (select md5(string_agg(version::text, ',' order by version)) from access_bindings),
  '/',
  (select md5(string_agg(name || ' ' || project || ' ' || default_queue, ',' order by name)) from namespaces),
  (select md5(string_agg(name || ' ' || coalesce(parent, ''), ',' order by name)) from queues)) as stamp`;

const NAMESPACES = `select name, project, default_queue as "defaultQueue" from namespaces`;

type NamespaceRow = { readonly name: string; readonly project: string; readonly defaultQueue: string };
type RoleRow = Omit<RoleRecord, "source">;
type BindingRow = Pick<BindingRecord, "name" | "role" | "version" | "createTimeMs" | "createdBy"> & {
  readonly toKind: BindingRecord["to"]["kind"];
  readonly toName: string;
  readonly scopeKind: BindingRecord["scope"]["kind"];
  readonly scopeName: string;
};

function roleOf(row: RoleRow): RoleRecord {
  return { ...row, source: "store" };
}

function bindingOf({ toKind, toName, scopeKind, scopeName, ...row }: BindingRow): BindingRecord {
  const to = { kind: toKind, name: toName };
  return { ...row, to, scope: { kind: scopeKind, name: scopeName }, source: "store" };
}
