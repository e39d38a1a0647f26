import type { AllocationLine, Holder, LedgerRow, QueueLimit } from "../../../core/quota/counters.ts";
import { FENCES_PER_EPOCH, tokenKey } from "../../../core/quota/lines.ts";
import { scopeKey, scopesOf } from "../../../core/quota/scopes.ts";

/** Fields and values of one hash, one after the other. */
type Pairs = readonly string[];

/** What a domain is loaded with: the pairs of each key by its number in the scripts, and the highest fence's counter. */
export type Load = { readonly keys: ReadonlyMap<number, Pairs>; readonly grants: bigint };

const LIMITS = 2;
const SUMS = 3;
const TOKENS = 4;
const FENCES = 5;

export function holderKey(holder: Holder): string {
  return JSON.stringify([holder.jobUid, holder.admission]);
}

/** The arguments of one line, as `grant.lua` takes them. */
export function lineArguments(line: AllocationLine): readonly string[] {
  return [tokenKey(line), amountText(line.amount), ...scopesOf(line).map(scopeKey)];
}

export function limitPairs(limits: readonly QueueLimit[]): Pairs {
  return limits.flatMap(({ queue, pool, limit }) => [scopeKey({ kind: "queue", pool, queue }), amountText(limit)]);
}

/** Everything that is held and allowed, as the scripts would have written it. */
export function loadOf(epoch: number, rows: readonly LedgerRow[], limits: readonly QueueLimit[]): Load {
  const sums = new Map<string, number>();
  const fences = new Map<string, string[]>();
  const tokens: string[] = [];
  let grants = 0n;
  for (const row of rows) {
    const fence = row.fence.toString();
    const scopes = scopesOf(row).map(scopeKey);
    for (const scope of scopes) sums.set(scope, (sums.get(scope) ?? 0) + row.amount);
    const together = fences.get(fence);
    if (together === undefined) fences.set(fence, [tokenKey(row)]);
    else together.push(tokenKey(row));
    tokens.push(tokenKey(row), JSON.stringify([fence, amountText(row.amount), holderKey(row.holder), ...scopes]));
    const counter = row.fence - BigInt(epoch) * FENCES_PER_EPOCH;
    if (counter > grants && counter < FENCES_PER_EPOCH) grants = counter;
  }
  const keys = new Map<number, Pairs>([
    [LIMITS, limitPairs(limits)],
    [SUMS, [...sums].flatMap(([scope, used]) => [scope, amountText(used)])],
    [TOKENS, tokens],
    [FENCES, [...fences].flatMap(([fence, together]) => [fence, JSON.stringify(together)])],
  ]);
  return { keys, grants };
}

/** A whole number without exponent: `String` writes one from 10^21 on. */
function amountText(amount: number): string {
  return BigInt(amount).toString();
}
