/** The one place where calls are authorized: before their handlers, and again while their streams run. */

import { status } from "@grpc/grpc-js";
import type { Beyond } from "../../core/access/binding.ts";
import { mayCall, namespacesWith, namesWith, scopesWith } from "../../core/access/decide.ts";
import type { Identity } from "../../core/access/identity.ts";
import { type CallVerdict, type JudgedCall, judge, judgeItem, type RequestMessage } from "../../core/access/judge.ts";
import { type CallPermission, PERMISSIONS } from "../../core/access/permissions.ts";
import { RPC_TABLE } from "../../core/access/rpc-table.ts";
import { type Place, placeText } from "../../core/access/scope.ts";
import { aborted } from "../../runtime/aborted.ts";
import type { Authorization } from "../ports.ts";
import { errorInfo } from "./error-details.ts";
import { invalidFields, notFound, RpcError, unavailable } from "./rpc-error.ts";

/** What the caller of one call may do. Every answer comes from the newest copy of roles and bindings. */
export class CallAccess {
  readonly #authorization: Authorization | null;
  readonly #identity: Identity;
  readonly #rpc: string;

  /** `authorization` null: every caller may do everything. */
  constructor(authorization: Authorization | null, { identity, rpc }: Pick<JudgedCall, "identity" | "rpc">) {
    this.#authorization = authorization;
    this.#identity = identity;
    this.#rpc = rpc;
  }

  /** False: every caller may do everything. */
  get enforced(): boolean {
    return this.#authorization !== null;
  }

  /** Throws unless the caller may make the call. Null: its request is not read yet. */
  check(request: RequestMessage | null): void {
    if (this.#authorization === null) return;
    const entry = RPC_TABLE[this.#rpc];
    if (entry?.kind === "guarded" && entry.changes && this.#authorization.isOutdated()) throw outdated();
    this.#pass(judge(this.#call(request), this.#authorization.copy()));
  }

  /** Throws unless the caller may have one item of a request whose items succeed and fail apart. */
  checkItem(item: object, request: object): void {
    if (this.#authorization === null) return;
    const call = this.#call(request as RequestMessage);
    this.#pass(judgeItem(call, item as RequestMessage, this.#authorization.copy()));
  }

  /** Whether the caller may have one item of such a request. `unseen`: the thing does not exist for the caller. */
  judgeItem(item: object, request: object): "allowed" | "denied" | "unseen" {
    if (this.#authorization === null) return "allowed";
    const verdict = judgeItem(
      this.#call(request as RequestMessage),
      item as RequestMessage,
      this.#authorization.copy(),
    );
    if (verdict.kind !== "allowed") this.#refuse(verdict);
    return verdict.kind === "unknownRpc" ? "denied" : verdict.kind;
  }

  /** Throws PERMISSION_DENIED unless the caller has the permission at the place. */
  demand(permission: CallPermission, at: Place): void {
    if (!this.may(permission, at)) throw this.denial(permission, at);
  }

  /** The error for a permission that the caller lacks. */
  denial(permission: CallPermission, at: Place): RpcError {
    return this.#refuse({ kind: "denied", permission, at, name: at.name });
  }

  may(permission: CallPermission, at: Place): boolean {
    if (this.#authorization === null) return true;
    return mayCall(this.#identity, permission, at, this.#authorization.copy());
  }

  /** The permission at some place. */
  mayAnywhere(permission: CallPermission): boolean {
    if (this.#authorization === null) return true;
    return scopesWith(this.#identity, permission, this.#authorization.copy()).length > 0;
  }

  /** True if the caller has the permission, at this place if it is asked for at places. */
  holds(permission: CallPermission, at: Place): boolean {
    return PERMISSIONS[permission].length === 0 ? this.mayAnywhere(permission) : this.may(permission, at);
  }

  /** The namespaces in which the caller has all of the permissions. Null: all namespaces. */
  namespaces(...permissions: readonly CallPermission[]): readonly string[] | null {
    if (this.#authorization === null) return null;
    const copy = this.#authorization.copy();
    const lists = permissions.flatMap((one) => {
      const names = namespacesWith(this.#identity, one, copy);
      return names === null ? [] : [names];
    });
    const [first, ...others] = lists;
    if (first === undefined) return null;
    const sets = others.map((names) => new Set(names));
    return first.filter((name) => sets.every((set) => set.has(name)));
  }

  /** The prefixes of pools for which the caller has the permission. Null: all pools. */
  pools(permission: CallPermission): readonly string[] | null {
    return this.#names(permission, "pool");
  }

  /** The projects at which the caller has the permission. Null: all projects. */
  projects(permission: CallPermission): readonly string[] | null {
    return this.#names(permission, "project");
  }

  #names(permission: CallPermission, kind: "project" | "pool"): readonly string[] | null {
    if (this.#authorization === null) return null;
    return namesWith(this.#identity, { permission, kind }, this.#authorization.copy());
  }

  /** Resolves with an error once the caller may no longer make the call; with null when the signal is aborted. */
  async untilDenied(request: RequestMessage | null, signal: AbortSignal): Promise<RpcError | null> {
    while (this.#authorization !== null && !signal.aborted) {
      await this.#authorization.changed(signal);
      if (signal.aborted) break;
      const verdict = judge(this.#call(request), this.#authorization.copy());
      if (verdict.kind !== "allowed") return withdrawn();
    }
    return null;
  }

  /** Resolves when roles, bindings or what scopes contain have changed, or when the signal is aborted. */
  changed(signal: AbortSignal): Promise<void> {
    if (this.#authorization !== null) return this.#authorization.changed(signal);
    return aborted(signal);
  }

  /** Makes what the call has changed count at once. If the store is away now, it counts within seconds. */
  async refresh(): Promise<void> {
    await this.#authorization?.refresh().catch(() => undefined);
  }

  #call(request: RequestMessage | null): JudgedCall {
    return { rpc: this.#rpc, identity: this.#identity, request };
  }

  #pass(verdict: CallVerdict): void {
    if (verdict.kind !== "allowed") throw this.#refuse(verdict);
  }

  #refuse(verdict: Exclude<CallVerdict, { kind: "allowed" }>): RpcError {
    const error = refusalOf(verdict, this.#rpc);
    if (verdict.kind === "denied") {
      const { permission, at, name } = verdict;
      this.#tell(error, { resource: name, permission, scope: scopeOf(at) });
    } else {
      this.#tell(error, { resource: verdict.kind === "unseen" ? verdict.name : "", permission: "", scope: "" });
    }
    return error;
  }

  #tell({ code }: RpcError, of: { readonly resource: string; readonly permission: string; readonly scope: string }) {
    const { subject, method } = this.#identity;
    this.#authorization?.onDenied({ rpc: this.#rpc, subject, method, outcome: status[code], ...of });
  }

  /** The error for a caller that wants to give what it does not have. */
  beyond(of: Beyond): RpcError {
    const at = placeText(of.scope);
    const first = of.permissions.slice(0, NAMED_MAX).join(", ");
    const more = of.permissions.length > NAMED_MAX ? ` and ${of.permissions.length - NAMED_MAX} more` : "";
    const message = `the caller lacks ${first}${more} for ${at} itself, so it cannot give them away`;
    return this.#beyond(of, message, { permissions: of.permissions.join(","), scope: at });
  }

  /** The error for a caller that wants to act as a subject to which bindings, which it may not see, give more. */
  beyondSubject(subject: string, of: Beyond): RpcError {
    if (this.may("access.get", of.scope)) return this.beyond(of);
    const message = `bindings give ${subject} permissions that the caller lacks itself, so it cannot give them away`;
    return this.#beyond(of, message, {});
  }

  #beyond({ permissions, scope }: Beyond, message: string, metadata: Readonly<Record<string, string>>): RpcError {
    const error = new RpcError(status.PERMISSION_DENIED, message, [errorInfo("BEYOND_CALLER", metadata)]);
    this.#tell(error, { resource: scope.name, permission: permissions.join(","), scope: placeText(scope) });
    return error;
  }
}

/** A message names this many permissions at most. */
const NAMED_MAX = 5;

export function namespacePlace(name: string): Place {
  return { kind: "namespace", name };
}

function refusalOf(verdict: Exclude<CallVerdict, { kind: "allowed" }>, rpc: string): RpcError {
  switch (verdict.kind) {
    case "unknownRpc":
      return new RpcError(status.PERMISSION_DENIED, `nobody may call ${rpc}`, [errorInfo("PERMISSION_DENIED")]);
    case "unseen":
      return verdict.as.kind === "badField"
        ? invalidFields([{ field: verdict.as.field, message: `queue ${verdict.name} does not exist` }])
        : notFound({ type: verdict.as.type, name: verdict.name });
    case "denied": {
      const { permission, at } = verdict;
      const message = `the caller lacks the permission ${permission} for ${scopeOf(at)}`;
      const details = [errorInfo("PERMISSION_DENIED", { permission, scope: scopeOf(at) })];
      return new RpcError(status.PERMISSION_DENIED, message, details);
    }
  }
}

function scopeOf(at: Place | null): string {
  return at === null ? "any scope" : placeText(at);
}

function withdrawn(): RpcError {
  const message = "the stream ends here, because the caller's permission was taken away";
  return new RpcError(status.PERMISSION_DENIED, message, [errorInfo("PERMISSION_DENIED")]);
}

function outdated(): RpcError {
  return unavailable(
    "ACCESS_UNKNOWN",
    "roles and bindings could not be read for a minute, so nothing is changed until they are; repeat the call later",
  );
}
