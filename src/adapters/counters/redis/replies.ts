/** Serves callers who need to know why a request waits: turns the replies of the Lua scripts into typed outcomes. */

import { holderOfKey, tokenKey } from "../../../core/quota/allocations.ts";
import type {
  AllocationRef,
  BatchedOutcome,
  Conflict,
  CountersMoment,
  FoundToken,
  Full,
  GivenBack,
  Grant,
  GrantOutcome,
  HeldToken,
  RenewOutcome,
  ScopeSum,
  StandOutcome,
  TickOutcome,
  Violation,
  WaiterView,
} from "../../../core/quota/counters.ts";
import { scopeOfKey } from "../../../core/quota/scopes.ts";

/** A reply of a script. The head of each script describes its replies. Any other reply is a bug, and throws. */
export type Texts = readonly string[];

type Named = { readonly pool: string; readonly token: string };

export function grantOutcomes(
  reply: unknown,
  requests: readonly { readonly allocations: readonly Named[] }[],
): readonly BatchedOutcome[] {
  if (reply === "closed") return requests.map(() => ({ kind: reply }));
  const replies = reply as readonly Texts[];
  return requests.map(({ allocations }, at) => {
    const [kind] = replies[at] ?? unexpected("grant", reply);
    return kind === "notTried" ? { kind } : grantOutcome(replies[at], allocations);
  });
}

function grantOutcome(reply: unknown, allocations: readonly Named[]): GrantOutcome {
  const [kind, ...rest] = reply as Texts;
  if (kind === "exhausted") return { kind, violation: violationOf(rest), index: Number(rest[5]) - 1 };
  return known(reply, allocations) ?? unexpected("grant", reply);
}

export function standOutcome(reply: unknown, allocations: readonly Named[]): StandOutcome {
  const [kind, ...rest] = reply as Texts;
  if (kind === "waiting") {
    const [position, ...violation] = rest;
    return { kind, position: Number(position), violation: violation.length === 0 ? null : violationOf(violation) };
  }
  if (kind === "never") return { kind, violation: violationOf(rest) };
  if (kind === "lineFull") return { kind, waitersMax: Number(rest[0]) };
  return known(reply, allocations) ?? unexpected("stand", reply);
}

export function giveBackOutcomes(tokens: readonly Named[], reply: unknown): "closed" | readonly GivenBack[] {
  if (reply === "closed") return reply;
  const replies = reply as readonly Texts[];
  return tokens.map((named, at): GivenBack => {
    const [kind, value = ""] = replies[at] ?? unexpected("giveBack", reply);
    if (kind === "notHeld") return { kind };
    const [held] = tokensOf([tokenKey(named), value]);
    if (held !== undefined && kind === "freed") return { kind, held };
    if (held !== undefined && kind === "otherHolder") return { kind, holder: held.holder };
    if (held !== undefined && kind === "otherScope") {
      return { kind, project: held.project, namespace: held.namespace };
    }
    return unexpected("giveBack", reply);
  });
}

export function renewOutcomes(reply: unknown): "closed" | readonly RenewOutcome[] {
  if (reply === "closed") return reply;
  return (reply as readonly Texts[]).map(([kind, fence = "0", confirmed, left = ""]): RenewOutcome => {
    if (kind === "renewed") {
      return { kind, fence: BigInt(fence), confirmed: confirmed === "1", expiresInMs: numberOf(left) };
    }
    if (kind === "lapsed") return { kind, fence: BigInt(fence) };
    return kind === "notHeld" || kind === "otherHolder" ? { kind } : unexpected("renew", reply);
  });
}

export function tickOutcome(reply: unknown): TickOutcome {
  const [kind, clock, advanced, version, lapsed, unconfirmed] = reply as readonly [
    string,
    string,
    string,
    string,
    Texts,
    Texts,
  ];
  if (kind === "closed") return { kind };
  if (kind !== "ticked") return unexpected("tick", reply);
  return {
    kind,
    clockMs: Number(clock),
    advanced: advanced === "1",
    limitsVersion: Number(version),
    lapsed: tokensOf(lapsed).map(({ pool, token, fence, holder }) => ({ pool, token, fence, holder })),
    unconfirmed: tokensOf(unconfirmed),
  };
}

export function sumsOf(reply: unknown): readonly ScopeSum[] {
  return pairsOf(reply as Texts).map(([scope, used]) => ({ scope: scopeOfKey(scope), used: Number(used) }));
}

export function momentOf(reply: unknown): "closed" | CountersMoment {
  if (reply === "closed") return reply;
  const [version, sums, tokens] = reply as readonly [string, Texts, Texts];
  const held = new Map(tokensOf(tokens).map((token) => [tokenKey(token), token]));
  return { used: sumsOf(sums), limitsVersion: Number(version), tokens: [...held.values()] };
}

export function tokensOf(reply: Texts): readonly HeldToken[] {
  return pairsOf(reply).map(([key, value]) => {
    const [pool, token] = JSON.parse(key) as [string, string];
    const [fence = "", amount, holder = "", _pool, project = "", namespace = "", queue = "", lease = "", , confirmed] =
      JSON.parse(value) as Texts;
    return {
      pool,
      token,
      amount: Number(amount),
      project: nameOf(project),
      namespace: nameOf(namespace),
      queue: queue === "" ? null : nameOf(queue),
      leaseMs: numberOf(lease),
      holder: holderOfKey(holder),
      fence: BigInt(fence),
      confirmed: confirmed === "1",
    };
  });
}

/** Reads a value and a remaining time for each token. Both are empty if the token is not held. */
export function foundTokens(tokens: readonly Named[], reply: unknown): "closed" | readonly (FoundToken | null)[] {
  if (reply === "closed") return reply;
  const found = pairsOf(reply as Texts);
  return tokens.map((named, at) => {
    const [value = "", left = ""] = found[at] ?? [];
    const [token] = value === "" ? [] : tokensOf([tokenKey(named), value]);
    return token === undefined ? null : { ...token, expiresInMs: numberOf(left) };
  });
}

/**
 * The positions in a waiter's value: of its first allocation, the number of fields of each allocation, and the amount
 * among them.
 */
const FIRST_ALLOCATION = 5;
const FIELDS_PER_ALLOCATION = 9;
const AMOUNT_FIELD = 2;

export function waitersOf(reply: unknown): readonly WaiterView[] {
  const texts = reply as Texts;
  const views: WaiterView[] = [];
  for (let at = 0; at < texts.length; at += 3) {
    const [pool = "", waiter = "", value = ""] = texts.slice(at, at + 3);
    const fields = JSON.parse(value) as Texts;
    let amount = 0;
    for (let at = FIRST_ALLOCATION; at < fields.length; at += FIELDS_PER_ALLOCATION) {
      if (fields[at] === pool) amount += Number(fields[at + AMOUNT_FIELD]);
    }
    const [, holder = "", priority, sinceMs] = fields;
    views.push({
      waiter: nameOf(waiter),
      pool: nameOf(pool),
      holder: holderOfKey(holder),
      amount,
      priority: Number(priority),
      sinceMs: Number(sinceMs),
    });
  }
  return views;
}

/** Returns the name of a `nameText`. */
export function nameOf(text: string): string {
  return JSON.parse(text) as string;
}

/** Reads the replies that grants and waiters share. Null: another reply. */
function known(
  reply: unknown,
  allocations: readonly Named[],
): Grant | Conflict | Full | { readonly kind: "closed" } | null {
  const [kind, first = "", second, confirmed, ...left] = reply as Texts;
  if (kind === "granted") {
    const expiresInMs = left.map(numberOf);
    return { kind, fence: BigInt(first), held: second === "held", confirmed: confirmed === "1", expiresInMs };
  }
  if (kind === "conflict") {
    const { pool, token }: Pick<AllocationRef, "pool" | "token"> =
      allocations[Number(first) - 1] ?? unexpected("conflict", reply);
    return { kind, pool, token, confirmed: second === "1" };
  }
  if (kind === "full") return { kind, tokensMax: Number(first) };
  return kind === "closed" ? { kind } : null;
}

function violationOf([scope = "", used, limit, requested, reserved, _at, frozen]: Texts): Violation {
  return {
    scope: scopeOfKey(scope),
    used: Number(used),
    limit: Number(limit),
    requested: Number(requested),
    reservedForHead: Number(reserved),
    ...(frozen === "1" ? { frozen: true } : {}),
  };
}

function numberOf(text: string): number | null {
  return text === "" ? null : Number(text);
}

function pairsOf(texts: Texts): readonly (readonly [string, string])[] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < texts.length; at += 2) pairs.push([texts[at] ?? "", texts[at + 1] ?? ""]);
  return pairs;
}

function unexpected(verb: string, reply: unknown): never {
  throw new Error(`Redis answered ${verb} with ${JSON.stringify(reply)}`);
}
