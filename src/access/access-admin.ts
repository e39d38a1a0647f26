/** Changes roles and bindings. No caller gives away what it does not have itself. */
import type { AccessFile } from "../core/access/access-file.ts";
import type {
  AccessDeletion,
  AccessRefusal,
  BindingRecord,
  Given,
  JudgedBinding,
  NewBinding,
  NewBindingOutcome,
  NewRoleOutcome,
  RoleRecord,
} from "../core/access/binding.ts";
import { bindingNotes, roleNotes } from "../core/access/check-access.ts";
import { beyond, givenBy } from "../core/access/decide.ts";
import type { Identity } from "../core/access/identity.ts";
import { isPermission } from "../core/access/permissions.ts";
import { INSTALLATION } from "../core/access/scope.ts";
import type { Clock } from "../runtime/clock.ts";
import type { FollowedAccess } from "./followed-access.ts";
import type { AccessStore, AccessVersion } from "./ports.ts";

export type AccessAdminPorts = {
  readonly clock: Pick<Clock, "nowMs">;
  readonly store: AccessStore;
  readonly access: Pick<FollowedAccess, "copy" | "refresh">;
  readonly file: () => AccessFile;
  /** False: every caller may do everything, and so give everything. */
  readonly enforces: boolean;
};

export function createAccessAdmin({ clock, store, access, file, enforces }: AccessAdminPorts) {
  const by = (actor: Identity) => ({ actor: actor.subject, nowMs: clock.nowMs() });
  /** What the caller does not have itself. Null: it may give all of it. */
  const excess = (actor: Identity, given: Given): AccessRefusal | null => {
    const permissions = enforces ? beyond(actor, given, access.copy()) : [];
    return permissions.length === 0 ? null : { kind: "beyond", permissions, scope: given.scope };
  };
  const notes = (found: readonly { readonly field: string; readonly message: string }[]): AccessRefusal | null =>
    found.length === 0 ? null : { kind: "invalid", notes: found };
  /** Also after a refusal: what is in the way may be younger than the copy. */
  const refreshed = async <T>(outcome: T): Promise<T> => {
    await access.refresh();
    return outcome;
  };
  /** Judges a binding by the role that has its name now. */
  const judgeBinding = async (
    binding: NewBinding,
    actor: Identity,
  ): Promise<
    { readonly kind: "judged"; readonly binding: JudgedBinding } | { readonly kind: "exists" } | AccessRefusal
  > => {
    if (file().only) return { kind: "onlyFile" };
    await access.refresh();
    const { roles, bindings } = access.copy();
    const role = roles.get(binding.role);
    const permissions = (role?.permissions ?? []).filter(isPermission);
    const refused = notes(bindingNotes(binding, roles)) ?? excess(actor, { permissions, scope: binding.scope });
    if (refused !== null) return refused;
    if (bindings.get(binding.name)?.source === "file") return { kind: "exists" };
    return { kind: "judged", binding: { ...binding, roleVersion: role?.source === "store" ? role.version : null } };
  };
  return {
    /** All records, as they are now. */
    read: async () => {
      await access.refresh();
      return access.copy();
    },
    createRole: async (
      { name, permissions }: Pick<RoleRecord, "name" | "permissions">,
      actor: Identity,
    ): Promise<NewRoleOutcome | AccessRefusal> => {
      const known = permissions.filter(isPermission);
      const refused =
        (file().only ? ({ kind: "onlyFile" } as const) : null) ??
        notes(roleNotes({ name, permissions })) ??
        excess(actor, { permissions: known, scope: INSTALLATION });
      if (refused !== null) return refused;
      if (access.copy().roles.get(name)?.source === "file") return { kind: "exists" };
      return refreshed(await store.createRole({ name, permissions: known }, by(actor)));
    },
    deleteRole: async (role: AccessVersion, actor: Identity): Promise<AccessDeletion | AccessRefusal> => {
      const refused = fixed(access.copy().roles.get(role.name));
      if (refused !== null) return refused;
      const user = file().bindings.find((one) => one.role === role.name);
      if (user !== undefined) return { kind: "inUse", by: `binding ${user.name}` };
      return refreshed(await store.deleteRole(role, by(actor)));
    },
    createBinding: async (binding: NewBinding, actor: Identity): Promise<NewBindingOutcome | AccessRefusal> => {
      const attempt = async () => {
        const judged = await judgeBinding(binding, actor);
        return judged.kind === "judged" ? store.createBinding(judged.binding, by(actor)) : judged;
      };
      const first = await attempt();
      // The role was replaced since it was judged: the new one may give more.
      return refreshed(first.kind === "unknownRole" ? await attempt() : first);
    },
    deleteBinding: async (binding: AccessVersion, actor: Identity): Promise<AccessDeletion | AccessRefusal> => {
      const refused = fixed(access.copy().bindings.get(binding.name));
      return refused ?? refreshed(await store.deleteBinding(binding, by(actor)));
    },
    /** Whether the caller could give away what a subject has already been given. Null: it could. */
    beyondSubject: async (subject: string, actor: Identity): Promise<AccessRefusal | null> => {
      await access.refresh();
      const given = givenBy({ kind: "subject", name: subject }, access.copy());
      return given.map((one) => excess(actor, one)).find((refused) => refused !== null) ?? null;
    },
  };
}

function fixed(record: RoleRecord | BindingRecord | undefined): AccessRefusal | null {
  if (record?.source === "file") return { kind: "inFile" };
  return record?.source === "built-in" ? { kind: "builtIn" } : null;
}
