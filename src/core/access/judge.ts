/** Judges a call by the table: may its caller do that there, and may it know that the thing exists? */
import { type AccessCopy, mayCall, scopesWith } from "./decide.ts";
import type { Identity } from "./identity.ts";
import type { CallPermission } from "./permissions.ts";
import { type Missing, type Need, type NeedAt, type NeedCondition, RPC_TABLE } from "./rpc-table.ts";
import { type BoundScope, INSTALLATION, type Place } from "./scope.ts";

/** A message of the API, as an object with the names of its members. */
export type RequestMessage = Readonly<Record<string, unknown>>;

export type CallVerdict =
  | { readonly kind: "allowed" }
  /** `at` null: the caller has the permission at no scope. `name`: the thing that the call is about; may be empty. */
  | { readonly kind: "denied"; readonly permission: CallPermission; readonly at: Place | null; readonly name: string }
  /** The caller may not know whether the thing exists. */
  | { readonly kind: "unseen"; readonly as: Missing; readonly name: string }
  /** No table has the RPC. */
  | { readonly kind: "unknownRpc" };

const ALLOWED: CallVerdict = { kind: "allowed" };

export type JudgedCall = {
  /** `package.Service/Method`. */
  readonly rpc: string;
  readonly identity: Identity;
  /** Null: the messages of the caller are not read yet. */
  readonly request: RequestMessage | null;
};

/** Judges a call as a whole. Items that succeed and fail apart are left to `judgeItem`. */
export function judge(call: JudgedCall, copy: AccessCopy): CallVerdict {
  const entry = RPC_TABLE[call.rpc];
  if (entry === undefined) return { kind: "unknownRpc" };
  if (entry.kind === "open" || entry.apart === true) return ALLOWED;
  const request = call.request ?? {};
  const items = entry.items === undefined ? [request] : itemsOf(request, entry.items);
  for (const item of items) {
    const verdict = judgeNeeds(entry.needs, { request, item, identity: call.identity, copy });
    if (verdict.kind !== "allowed") return verdict;
  }
  return ALLOWED;
}

/** Judges one item of a call whose items succeed and fail apart. */
export function judgeItem(call: JudgedCall, item: RequestMessage, copy: AccessCopy): CallVerdict {
  const entry = RPC_TABLE[call.rpc];
  if (entry === undefined) return { kind: "unknownRpc" };
  if (entry.kind === "open") return ALLOWED;
  return judgeNeeds(entry.needs, { request: call.request ?? {}, item, identity: call.identity, copy });
}

type Judged = {
  readonly request: RequestMessage;
  readonly item: RequestMessage;
  readonly identity: Identity;
  readonly copy: AccessCopy;
};

function judgeNeeds(needs: readonly Need[], of: Judged): CallVerdict {
  for (const need of needs) {
    const verdict = isNeeded(need.when, of) ? judgeNeed(need, of) : ALLOWED;
    if (verdict.kind !== "allowed") return verdict;
  }
  return ALLOWED;
}

function judgeNeed(need: Need, of: Judged): CallVerdict {
  const place = placeOf(need.at, of);
  if (has(need.permission, place, of)) return ALLOWED;
  const { hidden } = need;
  const at = place === "anywhere" ? null : place;
  if (hidden === undefined) return { kind: "denied", permission: need.permission, at, name: at?.name ?? "" };
  const name = missingName(hidden.as, of.item);
  // Everyone knows of the installation.
  const isSeen =
    hidden.at === undefined
      ? at?.kind === "installation" || has(hidden.unless, place, of)
      : has(hidden.unless, placeOf(hidden.at, of), of);
  return isSeen ? { kind: "denied", permission: need.permission, at, name } : { kind: "unseen", as: hidden.as, name };
}

function has(permission: CallPermission, place: Place | "anywhere", { identity, copy }: Judged): boolean {
  if (place === "anywhere") return scopesWith(identity, permission, copy).length > 0;
  return mayCall(identity, permission, place, copy);
}

function isNeeded(when: NeedCondition | undefined, { item, request, identity, copy }: Judged): boolean {
  switch (when?.kind) {
    case undefined:
      return true;
    case "set":
      return when.fields.some((field) => isSet(item, field));
    case "unset":
      return !isSet(item, when.field);
    case "otherCaller":
    case "ownName": {
      const named = textIn(when.of === "item" ? item : request, when.field);
      return (named !== "" && named !== identity.subject) === (when.kind === "otherCaller");
    }
    case "changed": {
      const known = copy.directory.namespaces.get(textIn(item, "namespace.name"));
      const sent = textIn(item, when.field) || "default";
      return when.member === "project" ? sent !== known?.project : sent !== "default" && sent !== known?.defaultQueue;
    }
  }
}

function placeOf(at: NeedAt, { item, copy }: Judged): Place | "anywhere" {
  switch (at.kind) {
    case "installation":
      return INSTALLATION;
    case "anywhere":
      return "anywhere";
    case "queueAbove": {
      const above = copy.directory.parents.get(textIn(item, at.field)) ?? null;
      return above === null ? INSTALLATION : { kind: "queue", name: above };
    }
    case "clusterIfNamed": {
      const name = textIn(item, at.field);
      return name === "" ? INSTALLATION : { kind: "cluster", name };
    }
    case "share":
      return {
        kind: "share",
        project: textIn(item, at.project) || "default",
        name: textIn(item, at.namespace) || "default",
      };
    case "scope":
      return scopeIn(item, at.field) ?? INSTALLATION;
    default:
      return { kind: at.kind, name: textIn(item, at.field) || (at.fallback ?? "") };
  }
}

/** The members of the API's message `Scope`: a oneof of kinds with names. */
function scopeIn(item: RequestMessage, field: string): BoundScope | null {
  const of = valueIn(item, `${field}.of`) as { readonly case?: string; readonly value?: unknown } | undefined;
  const { case: kind, value } = of ?? {};
  if (kind === undefined || kind === "installation") return INSTALLATION;
  return { kind: (kind === "poolPrefix" ? "pool" : kind) as BoundScope["kind"], name: String(value) };
}

function missingName(as: Missing, item: RequestMessage): string {
  if (as.kind === "badField") return textIn(item, as.queue);
  return as.name.map((field) => textIn(item, field) || (field.endsWith("namespace") ? "default" : "")).join("/");
}

function itemsOf(request: RequestMessage, path: string): readonly RequestMessage[] {
  const items = valueIn(request, path);
  return Array.isArray(items) ? (items as readonly RequestMessage[]) : [];
}

function isSet(item: RequestMessage, path: string): boolean {
  const value = valueIn(item, path);
  return value !== undefined && value !== "" && value !== false;
}

function textIn(item: RequestMessage, path: string): string {
  const value = valueIn(item, path);
  return typeof value === "string" ? value : "";
}

function valueIn(item: RequestMessage, path: string): unknown {
  // Most paths are one member, and each call reads several.
  if (!path.includes(".")) return item[path];
  let at: unknown = item;
  for (const member of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as RequestMessage)[member];
  }
  return at;
}
