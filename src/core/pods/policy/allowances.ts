/**
 * The allowances of a namespace: what its pods may do beyond its level. It serves admins, who write them as
 * `host-path=/dev/shm`, and users, whom each refusal tells the allowance that would lift it.
 */
import { isWithin, normalPath } from "./host-path.ts";

/** A need of a pod, or a permission of a namespace. Kinds without a value have an empty one. */
export type Allowance = { readonly kind: AllowanceKind; readonly value: string };

export type AllowanceKind = keyof typeof KINDS;

type KindRules = {
  /** The form of its value, for errors and help. Null: it has none. */
  readonly form: string | null;
  readonly meaning: string;
  /** The value in its normal form. Null: it is wrong. Omitted: it has none. */
  readonly read?: (value: string) => string | null;
  /** Whether an allowed value covers a needed one. */
  readonly covers?: (allowed: string, needed: string) => boolean;
};

/** A path that may be written to. The suffix `:ro` says that it may only be read. */
const READ_ONLY = ":ro";

const KINDS = {
  "host-network": { form: null, meaning: "the node's network" },
  "host-pid": { form: null, meaning: "the node's processes" },
  "host-ipc": { form: null, meaning: "the node's IPC" },
  "host-path": {
    form: "/PATH or /PATH:ro",
    meaning: "files of the node at this path and below it; :ro: only read-only mounts",
    read: (value) => {
      const path = normalPath(withoutAccess(value));
      return path === null ? null : `${path}${isReadOnly(value) ? READ_ONLY : ""}`;
    },
    covers: (allowed, needed) =>
      isWithin(withoutAccess(allowed), withoutAccess(needed)) && (!isReadOnly(allowed) || isReadOnly(needed)),
  },
  "host-port": {
    form: "PORT, FIRST-LAST or *",
    meaning: "ports of the node",
    read: (value) => (value === "*" || portRange(value) !== null ? value : null),
    covers: (allowed, needed) => {
      const [range, port] = [portRange(allowed), portRange(needed)];
      return (
        allowed === "*" || (range !== null && port !== null && range.first <= port.first && port.last <= range.last)
      );
    },
  },
  privileged: { form: null, meaning: "privileged containers" },
  "host-process": { form: null, meaning: "HostProcess containers of Windows" },
  capability: {
    form: "NAME or ALL",
    meaning: "a capability that containers may add",
    read: (value) => (/^[A-Za-z][A-Za-z_]{0,62}$/.test(value) ? value.toUpperCase().replace(/^CAP_/, "") : null),
    covers: (allowed, needed) => allowed === needed || allowed === "ALL",
  },
  sysctl: {
    form: "NAME or PREFIX.*",
    meaning: "a kernel parameter that pods may set",
    read: (value) => (/^[a-z0-9][-_a-z0-9]*(\.[a-z0-9][-_a-z0-9]*)*(\.\*)?$/.test(value) ? value : null),
    covers: (allowed, needed) =>
      allowed === needed || (allowed.endsWith(".*") && needed.startsWith(allowed.slice(0, -1))),
  },
  volume: {
    form: "TYPE such as nfs or csi",
    meaning: "volumes of a type whose source the template itself names",
    read: (value) => (/^[A-Za-z][A-Za-z0-9]{0,62}$/.test(value) ? value : null),
  },
  "proc-mount": { form: null, meaning: "a /proc without masks" },
  "unconfined-seccomp": { form: null, meaning: "containers without a seccomp profile" },
  "unconfined-apparmor": { form: null, meaning: "containers without an AppArmor profile" },
  "selinux-options": { form: null, meaning: "any user, role and type of SELinux" },
  "probe-host": { form: null, meaning: "probes and hooks that name a host" },
  "run-as-root": { form: null, meaning: "containers that may run as root, at level restricted" },
  "privilege-escalation": { form: null, meaning: "containers that may gain privileges, at level restricted" },
  "default-capabilities": {
    form: null,
    meaning: "containers that keep the runtime's capabilities, at level restricted",
  },
  "default-seccomp": { form: null, meaning: "containers that name no seccomp profile, at level restricted" },
  toleration: {
    form: "KEY or *",
    meaning: "a toleration of nodes of the control plane (its key), or of every taint (*)",
    read: (value) => (value === "*" || LABEL_KEY.test(value) ? value : null),
    covers: (allowed, needed) => allowed === "*" || allowed === needed,
  },
  "priority-class": {
    form: "NAME",
    meaning: "a priority class of the system, such as system-node-critical",
    read: (value) => (/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/.test(value) ? value : null),
  },
  "resource-claims": { form: null, meaning: "devices of resource claims, which no quota counts" },
  "other-namespaces": { form: null, meaning: "pod affinity that selects pods of other namespaces" },
} as const satisfies Readonly<Record<string, KindRules>>;

const LABEL_KEY = /^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/** The kinds of allowances, with the form of their values. */
export const ALLOWANCE_KINDS: Readonly<Record<AllowanceKind, KindRules>> = KINDS;

type ReadAllowance =
  | { readonly kind: "read"; readonly allowance: Allowance }
  | { readonly kind: "refused"; readonly message: string };

/** Reads an allowance such as `host-network` or `host-path=/dev/shm:ro`. */
export function readAllowance(text: string): ReadAllowance {
  const [, name = "", , value] = /^([^=]*)(=(.*))?$/s.exec(text) ?? [];
  const rules = Object.hasOwn(KINDS, name) ? ALLOWANCE_KINDS[name as AllowanceKind] : undefined;
  const refused = (message: string) => ({ kind: "refused", message }) as const;
  if (rules === undefined) {
    return refused(`is "${text.slice(0, 80)}": must be one of ${Object.keys(KINDS).map(formOf).join(", ")}`);
  }
  const kind = name as AllowanceKind;
  if (rules.form === null) {
    return value === undefined ? { kind: "read", allowance: { kind, value: "" } } : refused(`${name} takes no value`);
  }
  const read = rules.read?.(value ?? "") ?? null;
  if (read !== null) return { kind: "read", allowance: { kind, value: read } };
  return refused(`is "${text.slice(0, 80)}": must be ${formOf(name)}`);
}

function formOf(name: string): string {
  const { form } = ALLOWANCE_KINDS[name as AllowanceKind];
  return form === null ? name : `${name}=${form}`;
}

/** The text that `readAllowance` reads. */
export function allowanceText({ kind, value }: Allowance): string {
  return value === "" ? kind : `${kind}=${value}`;
}

/** Whether an allowance covers what a pod needs. Both are compared in their normal form. */
export function covers(allowed: Allowance, needed: Allowance): boolean {
  if (allowed.kind !== needed.kind) return false;
  const rules = ALLOWANCE_KINDS[allowed.kind];
  const value = rules.read?.(needed.value) ?? needed.value;
  return rules.covers?.(allowed.value, value) ?? allowed.value === value;
}

/** A host path that is needed, which covers itself. An empty path is covered by no allowance. */
export function hostPathNeed(path: string, access: "read" | "write"): Allowance {
  return { kind: "host-path", value: `${path}${access === "read" ? READ_ONLY : ""}` };
}

function isReadOnly(value: string): boolean {
  return value.endsWith(READ_ONLY);
}

function withoutAccess(value: string): string {
  return isReadOnly(value) ? value.slice(0, -READ_ONLY.length) : value;
}

function portRange(text: string): { readonly first: number; readonly last: number } | null {
  const match = /^(\d{1,5})(-(\d{1,5}))?$/.exec(text);
  if (match === null) return null;
  const first = Number(match[1]);
  const last = Number(match[3] ?? match[1]);
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : null;
}
