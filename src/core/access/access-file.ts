/** Reads the file with the first roles and bindings of an installation, or with all of them. */

import { isJsonObject, type Json } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { flagOf, known, listOf, objectOf, textOf } from "../../runtime/read-members.ts";
import type { AccessNote, BoundTo, NewBinding, NewRole } from "./binding.ts";
import { bindingNotes, roleNotes } from "./check-access.ts";
import { isPermission } from "./permissions.ts";
import { BUILT_IN_ROLES } from "./roles.ts";
import { type BoundScope, INSTALLATION, type ScopeKind } from "./scope.ts";

export type AccessFile = {
  /** Roles and bindings of the store do not count, and no call changes any. */
  readonly only: boolean;
  readonly roles: readonly NewRole[];
  readonly bindings: readonly NewBinding[];
};

export const NO_ACCESS_FILE: AccessFile = { only: false, roles: [], bindings: [] };

type FileOutcome =
  | { readonly kind: "read"; readonly file: AccessFile }
  /** Each error names a member and says what is allowed. */
  | { readonly kind: "refused"; readonly errors: readonly string[] };

export function readAccessFile(value: Json): FileOutcome {
  const errors: string[] = [];
  if (!isJsonObject(value)) return { kind: "refused", errors: ["it must be an object"] };
  known(value, "", ["only", "roles", "bindings"], errors);
  const only = flagOf(value["only"] ?? false, "only", errors);
  const roles = listOf(value["roles"] ?? [], "roles", errors).map((one, at) => readRole(one, `roles[${at}]`, errors));
  const names = new Set([...BUILT_IN_ROLES, ...roles].map(({ name }) => name));
  const sent = listOf(value["bindings"] ?? [], "bindings", errors);
  const bindings = sent.map((one, at) => readBinding(one, { at: `bindings[${at}]`, names, only }, errors));
  append(errors, repeated(roles, "roles"));
  append(errors, repeated(bindings, "bindings"));
  return errors.length > 0 ? { kind: "refused", errors } : { kind: "read", file: { only, roles, bindings } };
}

function readRole(value: Json, at: string, errors: string[]): NewRole {
  const of = objectOf(value, at, errors);
  known(of, `${at}.`, ["name", "permissions"], errors);
  const name = textOf(of["name"] ?? null, `${at}.name`, errors);
  const permissions = listOf(of["permissions"] ?? [], `${at}.permissions`, errors).map((one, index) =>
    textOf(one, `${at}.permissions[${index}]`, errors),
  );
  append(
    errors,
    roleNotes({ name, permissions }).map((note) => sentence(at, note)),
  );
  return { name, permissions: permissions.filter(isPermission) };
}

/** Without `only`, a role may be one of the store, which is not known here. */
function readBinding(
  value: Json,
  { at, names, only }: { readonly at: string; readonly names: ReadonlySet<string>; readonly only: boolean },
  errors: string[],
): NewBinding {
  const of = objectOf(value, at, errors);
  known(of, `${at}.`, ["name", "subject", "group", "role", "scope"], errors);
  const { subject, group } = of;
  if ((subject === undefined) === (group === undefined)) errors.push(`${at} must have either subject or group`);
  const to: BoundTo =
    group === undefined
      ? { kind: "subject", name: textOf(subject ?? "-", `${at}.subject`, errors) }
      : { kind: "group", name: textOf(group, `${at}.group`, errors) };
  const binding = {
    name: textOf(of["name"] ?? null, `${at}.name`, errors),
    to,
    role: textOf(of["role"] ?? null, `${at}.role`, errors),
    scope: readScope(of["scope"] ?? {}, `${at}.scope`, errors),
  };
  append(
    errors,
    bindingNotes(binding, only ? names : { has: () => true }).map((note) => sentence(at, note)),
  );
  return binding;
}

const SCOPES: Readonly<Record<string, ScopeKind>> = {
  project: "project",
  namespace: "namespace",
  queue: "queue",
  poolPrefix: "pool",
  cluster: "cluster",
};

/** An object with one member. Without members it is the installation. */
function readScope(value: Json, at: string, errors: string[]): BoundScope {
  const of = objectOf(value, at, errors);
  known(of, `${at}.`, Object.keys(SCOPES), errors);
  const [member, more] = Object.keys(of);
  if (more !== undefined) errors.push(`${at} must have at most one member`);
  const kind = SCOPES[member ?? ""];
  if (member === undefined || kind === undefined) return INSTALLATION;
  return { kind, name: textOf(of[member] ?? null, `${at}.${member}`, errors) };
}

function sentence(at: string, { field, message }: AccessNote): string {
  return `${at}.${field === "scope.pool_prefix" ? "scope.poolPrefix" : field} ${message}`;
}

function repeated(records: readonly { readonly name: string }[], at: string): readonly string[] {
  const names = records.map(({ name }) => name);
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [`${at}[${index}].name is that of another one`] : [],
  );
}
