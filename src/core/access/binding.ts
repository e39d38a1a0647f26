/** Bindings: who has which role, and where. */
import type { CallPermission } from "./permissions.ts";
import type { AccessRole } from "./roles.ts";
import type { BoundScope } from "./scope.ts";

export type BoundTo = { readonly kind: "subject" | "group"; readonly name: string };

export type AccessBinding = {
  readonly name: string;
  readonly to: BoundTo;
  /** The name of a role. If there is none of this name, the binding allows nothing. */
  readonly role: string;
  readonly scope: BoundScope;
};

/** `built-in`: of every installation. `file`: of GANGWAY_ACCESS_FILE. `store`: made by a call. */
export type AccessSource = "built-in" | "file" | "store";

/** Versions and times are those of the store. Null: the record is not in the store. */
type Recorded = {
  readonly source: AccessSource;
  readonly version: number;
  readonly createTimeMs: number | null;
  /** The subject of the caller that made it. Empty: no call has. */
  readonly createdBy: string;
};

/** A role of the store may name permissions that only another version of the program knows. */
export type RoleRecord = Omit<AccessRole, "permissions"> & { readonly permissions: readonly string[] } & Recorded;
export type BindingRecord = AccessBinding & Recorded;

export type NewRole = AccessRole;
export type NewBinding = AccessBinding;
/** A binding whose role was judged. `roleVersion`: that of the stored role. Null: the store has no such role. */
export type JudgedBinding = NewBinding & { readonly roleVersion: number | null };

/** More roles than a person can tell apart. */
export const ROLES_MAX = 1_000;
/** The copy in memory has all of them. */
export const BINDINGS_MAX = 10_000;

/** Who changes roles and bindings, and when. */
export type AccessChange = { readonly actor: string; readonly nowMs: number };

export type NewRoleOutcome =
  | { readonly kind: "done"; readonly record: RoleRecord }
  | { readonly kind: "exists" }
  | { readonly kind: "full"; readonly max: number };

/** `unknownRole`: the role is not in the store, or another one has its name now. */
export type NewBindingOutcome =
  | { readonly kind: "done"; readonly record: BindingRecord }
  | { readonly kind: "exists" | "unknownRole" }
  | { readonly kind: "full"; readonly max: number };

/** `inUse`: a binding has the role. */
export type AccessDeletion =
  | { readonly kind: "done" | "notFound" | "stale" }
  | { readonly kind: "inUse"; readonly by: string };

/** Why a change that was asked for is not even tried. `onlyFile`: the file alone has roles and bindings. */
export type AccessRefusal =
  | { readonly kind: "onlyFile" }
  /** The file has the record, so no call changes it. */
  | { readonly kind: "inFile" | "builtIn" }
  | { readonly kind: "invalid"; readonly notes: readonly AccessNote[] }
  | Beyond;

/** The caller does not have these permissions there itself. */
export type Beyond = {
  readonly kind: "beyond";
  readonly permissions: readonly CallPermission[];
  readonly scope: BoundScope;
};

export type AccessNote = { readonly field: string; readonly message: string };

/** What a binding gives to whom it names. */
export type Given = { readonly permissions: readonly CallPermission[]; readonly scope: BoundScope };
