/** Decides what callers may do. Denied is what no binding allows. */

import { getOrCreate } from "../../runtime/get-or-create.ts";
import type { AccessBinding, BindingRecord, BoundTo, Given, RoleRecord } from "./binding.ts";
import type { Identity } from "./identity.ts";
import { type CallPermission, isPermission, PERMISSIONS } from "./permissions.ts";
import { type BoundScope, covers, type Directory, type Place } from "./scope.ts";

/** All roles and bindings, with the directory of what scopes contain. */
export type AccessCopy = {
  readonly roles: ReadonlyMap<string, RoleRecord>;
  readonly bindings: ReadonlyMap<string, BindingRecord>;
  readonly directory: Directory;
  /** What each subject and group was given, by its name. */
  readonly given: Readonly<Record<BoundTo["kind"], ReadonlyMap<string, readonly GivenSet[]>>>;
};

type GivenSet = { readonly permissions: ReadonlySet<CallPermission>; readonly scope: BoundScope };
type Caller = Pick<Identity, "subject" | "groups">;

/** Makes a copy of these records. Names must be unique. */
export function accessCopy(
  roles: readonly RoleRecord[],
  bindings: readonly BindingRecord[],
  directory: Directory,
): AccessCopy {
  const byName = new Map(roles.map((role) => [role.name, role]));
  const sets = new Map(roles.map(({ name, permissions }) => [name, new Set(permissions.filter(isPermission))]));
  const given = { subject: new Map<string, GivenSet[]>(), group: new Map<string, GivenSet[]>() };
  for (const { to, role, scope } of bindings) {
    const permissions = sets.get(role);
    if (permissions === undefined) continue;
    const list = getOrCreate(given[to.kind], to.name, () => []);
    list.push({ permissions, scope });
  }
  return { roles: byName, bindings: new Map(bindings.map((one) => [one.name, one])), directory, given };
}

const NOTHING: readonly GivenSet[] = [];

function givenTo({ subject, groups }: Caller, { given }: AccessCopy): readonly GivenSet[] {
  const own = given.subject.get(subject) ?? NOTHING;
  return own.concat(groups.flatMap((group) => given.group.get(group) ?? NOTHING));
}

/** True if a binding gives the caller the permission at the place, or at a scope that contains it. */
export function mayCall(caller: Caller, permission: CallPermission, place: Place, copy: AccessCopy): boolean {
  const { given, directory } = copy;
  // Each call asks several times, so this makes no list.
  const gives = ({ permissions, scope }: GivenSet) => permissions.has(permission) && covers(scope, place, directory);
  if (given.subject.get(caller.subject)?.some(gives) === true) return true;
  return caller.groups.some((group) => given.group.get(group)?.some(gives) === true);
}

/** The scopes at which bindings give the caller the permission. */
export function scopesWith(caller: Caller, permission: CallPermission, copy: AccessCopy): readonly BoundScope[] {
  return givenTo(caller, copy).flatMap(({ permissions, scope }) => (permissions.has(permission) ? [scope] : []));
}

/** The namespaces in which the caller has the permission, in order. Null: all, also those that do not exist yet. */
export function namespacesWith(caller: Caller, permission: CallPermission, copy: AccessCopy): readonly string[] | null {
  const scopes = scopesWith(caller, permission, copy);
  if (scopes.some(({ kind }) => kind === "installation")) return null;
  const projects = new Set(scopes.filter(({ kind }) => kind === "project").map(({ name }) => name));
  const own = scopes.filter(({ kind }) => kind === "namespace").map(({ name }) => name);
  const ofProjects =
    projects.size === 0
      ? []
      : [...copy.directory.namespaces].filter(([, { project }]) => projects.has(project)).map(([name]) => name);
  return [...new Set([...own, ...ofProjects])].sort();
}

/**
 * The names of the scopes of a kind at which the caller has the permission, in order: projects, or prefixes of pools.
 * Null: all.
 */
export function namesWith(
  caller: Caller,
  { permission, kind }: { readonly permission: CallPermission; readonly kind: "project" | "pool" },
  copy: AccessCopy,
): readonly string[] | null {
  const scopes = scopesWith(caller, permission, copy);
  if (scopes.some((scope) => scope.kind === "installation")) return null;
  return [...new Set(scopes.filter((scope) => scope.kind === kind).map(({ name }) => name))].sort();
}

/** The permissions that a binding at the scope makes a difference for: those that are asked for at places within it. */
function isOfUse(permission: CallPermission, scope: BoundScope): boolean {
  const asked: readonly string[] = PERMISSIONS[permission];
  if (asked.length === 0 || scope.kind === "installation") return true;
  if (asked.includes(scope.kind)) return true;
  if (scope.kind === "project") return asked.includes("namespace") || asked.includes("share");
  return scope.kind === "namespace" && asked.includes("share");
}

/**
 * What of it the caller does not have itself, and so cannot give away. Permissions that a binding at the scope makes no
 * difference for do not count.
 */
export function beyond(caller: Caller, { permissions, scope }: Given, copy: AccessCopy): readonly CallPermission[] {
  return permissions.filter(
    (permission) =>
      isOfUse(permission, scope) &&
      !mayCall(caller, permission, scope, copy) &&
      !(PERMISSIONS[permission].length === 0 && scopesWith(caller, permission, copy).length > 0),
  );
}

/** What the bindings of a subject or group give it. */
export function givenBy(to: BoundTo, { roles, bindings }: AccessCopy): readonly Given[] {
  return [...bindings.values()]
    .filter((one) => one.to.kind === to.kind && one.to.name === to.name)
    .map(({ role, scope }: AccessBinding) => ({
      permissions: (roles.get(role)?.permissions ?? []).filter(isPermission),
      scope,
    }));
}
