import { createAccessAdmin } from "../../src/access/access-admin.ts";
import { followAccess } from "../../src/access/followed-access.ts";
import type { AccessStore } from "../../src/access/ports.ts";
import type { Authorization } from "../../src/api/ports.ts";
import { NO_ACCESS_FILE } from "../../src/core/access/access-file.ts";
import type { BindingRecord, NewBinding, RoleRecord } from "../../src/core/access/binding.ts";
import { type Directory, EMPTY_DIRECTORY } from "../../src/core/access/scope.ts";
import { systemClock } from "../../src/runtime/clock.ts";

type Denial = Parameters<Authorization["onDenied"]>[0];

/** Roles and bindings that are kept in memory, and what they say. `directory` may be replaced. */
export function memoryAccess({ enforces = false, clock = systemClock(), file = NO_ACCESS_FILE } = {}) {
  const roles = new Map<string, RoleRecord>();
  const bindings = new Map<string, BindingRecord>();
  const of = { directory: EMPTY_DIRECTORY as Directory, away: false, denied: [] as Denial[] };
  let version = 0;
  const recorded = ({ actor, nowMs }: { actor: string; nowMs: number }) => {
    version += 1;
    return { source: "store", version, createTimeMs: nowMs, createdBy: actor } as const;
  };
  const remove = <T extends { readonly version: number }>(from: Map<string, T>, name: string, wanted: number) => {
    const record = from.get(name);
    if (record === undefined) return { kind: "notFound" } as const;
    if (wanted !== 0 && wanted !== record.version) return { kind: "stale" } as const;
    from.delete(name);
    version += 1;
    return { kind: "done" } as const;
  };
  const store: AccessStore = {
    readAccess: async (stamp) => {
      if (of.away) throw new Error("the store is away");
      const now = `${version} ${JSON.stringify([[...of.directory.namespaces], [...of.directory.parents]])}`;
      const all = { roles: [...roles.values()], bindings: [...bindings.values()], directory: of.directory };
      return stamp === now ? null : { stamp: now, ...all };
    },
    createRole: async (role, by) => {
      if (roles.has(role.name)) return { kind: "exists" };
      const record = { ...role, ...recorded(by) };
      roles.set(role.name, record);
      return { kind: "done", record };
    },
    deleteRole: async ({ name, version: wanted }) => {
      const user = [...bindings.values()].find(({ role }) => role === name);
      return user === undefined ? remove(roles, name, wanted) : { kind: "inUse", by: `binding ${user.name}` };
    },
    createBinding: async ({ roleVersion, ...binding }, by) => {
      if (roleVersion !== null && roles.get(binding.role)?.version !== roleVersion) return { kind: "unknownRole" };
      if (bindings.has(binding.name)) return { kind: "exists" };
      const record = { ...binding, ...recorded(by) };
      bindings.set(binding.name, record);
      return { kind: "done", record };
    },
    deleteBinding: async ({ name, version: wanted }) => remove(bindings, name, wanted),
  };
  const followed = followAccess({
    clock,
    store,
    file: () => file,
    onError: (error) => {
      throw error;
    },
  });
  const admin = createAccessAdmin({ clock, store, access: followed, file: () => file, enforces });
  const authorization: Authorization = { ...followed, onDenied: (denial) => void of.denied.push(denial) };
  /** Binds a role without asking who may. */
  const bind = async (...given: readonly Omit<NewBinding, "name">[]) => {
    const names = given.map((_, at) => `bound-${version}-${at}`);
    const by = { actor: "test", nowMs: 0 };
    for (const [at, one] of given.entries()) {
      await store.createBinding({ ...one, name: names[at] ?? "", roleVersion: null }, by);
    }
    await followed.refresh();
    return async () => {
      for (const name of names) bindings.delete(name);
      version += 1;
      await followed.refresh();
    };
  };
  return { of, store, followed, admin, authorization, bind };
}
