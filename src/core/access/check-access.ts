/** Checks roles and bindings, of a request or of a file. Paths of fields are those of the request. */
import type { AccessNote, BoundTo, NewBinding } from "./binding.ts";
import { ALL_PERMISSIONS, isPermission } from "./permissions.ts";
import { BUILT_IN_ROLES } from "./roles.ts";
import type { BoundScope } from "./scope.ts";

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LABEL =
  "must be a DNS label: at most 63 lower-case letters, digits and '-', beginning and ending with one of the first two";
const CLUSTER = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
const POOL = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?([/:][A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)*$/;
const POOL_CHARS_MAX = 128;
const TO_CHARS_MAX = 256;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** Returns what is wrong with a role. Permissions may be any texts. */
export function roleNotes(role: {
  readonly name: string;
  readonly permissions: readonly string[];
}): readonly AccessNote[] {
  const notes: AccessNote[] = [];
  if (!NAME.test(role.name)) notes.push({ field: "name", message: LABEL });
  if (BUILT_IN_ROLES.some(({ name }) => name === role.name)) {
    notes.push({ field: "name", message: "must not be that of a built-in role" });
  }
  if (role.permissions.length === 0) notes.push({ field: "permissions", message: "must name at least one permission" });
  for (const [at, permission] of role.permissions.entries()) {
    const field = `permissions[${at}]`;
    if (!isPermission(permission)) {
      notes.push({
        field,
        message: `${permission} is not a permission; permissions are ${ALL_PERMISSIONS.join(", ")}`,
      });
    } else if (role.permissions.indexOf(permission) < at) {
      notes.push({ field, message: `${permission} is named twice` });
    }
  }
  return notes;
}

/** Returns what is wrong with a binding. `roles`: the names of the roles that there are. */
export function bindingNotes(
  { name, to, role, scope }: NewBinding,
  roles: { readonly has: (name: string) => boolean },
): readonly AccessNote[] {
  return [
    ...(NAME.test(name) ? [] : [{ field: "name", message: LABEL }]),
    ...toNotes(to),
    ...(roles.has(role) ? [] : [{ field: "role", message: `role ${role} does not exist` }]),
    ...scopeNotes(scope),
  ];
}

function toNotes({ kind, name }: BoundTo): readonly AccessNote[] {
  if (name !== "" && name.length <= TO_CHARS_MAX && !UNPRINTABLE.test(name)) return [];
  return [{ field: kind, message: `must be 1 to ${TO_CHARS_MAX} characters of printable text` }];
}

/** Returns what is wrong with a scope. What it names need not exist yet. */
export function scopeNotes({ kind, name }: BoundScope): readonly AccessNote[] {
  switch (kind) {
    case "installation":
      return [];
    case "pool":
      return POOL.test(name) && name.length <= POOL_CHARS_MAX
        ? []
        : [
            {
              field: "scope.pool_prefix",
              message: "must name a pool such as ex:warehouse, or the parts that several begin with",
            },
          ];
    case "cluster":
      return CLUSTER.test(name) ? [] : [{ field: "scope.cluster", message: "must name a cluster" }];
    default:
      return NAME.test(name) ? [] : [{ field: `scope.${kind}`, message: LABEL }];
  }
}
