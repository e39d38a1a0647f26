import { FENCES_PER_EPOCH, holderKey, tokenKey } from "../../../core/quota/allocations.ts";
import type {
  Allocation,
  AllocationRef,
  BatchedGrant,
  GiveBack,
  LedgerRow,
  Limits,
  Rest,
  StandRequest,
  TurnOver,
} from "../../../core/quota/counters.ts";
import { limitBook } from "../../../core/quota/limits.ts";
import { scopeKey } from "../../../core/quota/scopes.ts";
import { Sums } from "../../../core/quota/sums.ts";

/** Fields and values of one hash, or scores and members of one sorted set, alternating. */
type Pairs = readonly string[];

/**
 * The contents to load into a domain: the pairs of each key, by the key's number in the scripts, and the counter of the
 * highest fence.
 */
export type Load = { readonly keys: ReadonlyMap<number, Pairs>; readonly grants: bigint };

const LIMITS = 2;
const SUMS = 3;
const TOKENS = 4;
const EXPIRIES = 7;

const PRIORITY_MAX = 2 ** 31 - 1;
/** The number of digits that hold any priority, and any age. */
const PRIORITY_DIGITS = 10;
const SINCE_DIGITS = 16;

/** Encodes a name for the scripts. JSON quotes keep adjacent names apart. */
export const nameText = (name: string): string => JSON.stringify(name);

/** The arguments of one allocation, as `grant.lua` takes them. */
export function allocationArguments(allocation: Allocation): readonly string[] {
  const { pool, token, amount, project, namespace, queue, caps, leaseMs } = allocation;
  return [
    nameText(pool),
    nameText(token),
    numberText(amount),
    nameText(project),
    nameText(namespace),
    queue === null ? "" : nameText(queue),
    numberText(caps.project),
    numberText(caps.namespace),
    numberText(leaseMs),
  ];
}

/** The arguments of one request, as `grant.lua` takes them. */
export function grantArguments(request: BatchedGrant): readonly string[] {
  const { chain, stops, holder, priority, waiter, allocations } = request;
  return [
    chain === null ? "" : nameText(chain),
    stops ? "1" : "0",
    holderKey(holder),
    numberText(priority),
    waiter === null ? "" : nameText(waiter),
    numberText(allocations.length),
    ...allocations.flatMap(allocationArguments),
  ];
}

/** The arguments of a waiter from its order on, as `stand.lua` takes them. */
export function waiterArguments(request: StandRequest): readonly string[] {
  const { priority, sinceMs, holder, grants, allocations } = request;
  const order = digits(PRIORITY_MAX - priority, PRIORITY_DIGITS) + digits(sinceMs, SINCE_DIGITS);
  const own = [order, holderKey(holder), numberText(priority), numberText(sinceMs), grants ? "1" : "0"];
  return [...own, ...allocations.flatMap(allocationArguments)];
}

export function refArguments(allocations: readonly AllocationRef[]): readonly string[] {
  return allocations.flatMap((allocation) => [tokenKey(allocation), allocation.fence.toString()]);
}

/** The arguments of tokens to give back, as `give-back.lua` takes them. */
export function giveBackArguments(tokens: readonly GiveBack[]): readonly string[] {
  const optional = (name: string | null) => (name === null ? "" : nameText(name));
  return tokens.flatMap((one) => [
    tokenKey(one),
    one.holder === null ? "" : holderKey(one.holder),
    optional(one.project),
    optional(one.namespace),
    one.fence === null ? "" : one.fence.toString(),
  ]);
}

/** The arguments of reduced allocations, as `shrink.lua` takes them. */
export function restArguments(rests: readonly Rest[]): readonly string[] {
  return rests.flatMap((rest) => [tokenKey(rest), rest.fence.toString(), numberText(rest.amount)]);
}

/** The arguments of allocations that are turned over, as `turn-over.lua` takes them. */
export function turnOverArguments(turns: readonly TurnOver[]): readonly string[] {
  return turns.flatMap(({ from, to }) => [
    tokenKey(from),
    from.fence.toString(),
    numberText(from.kept),
    tokenKey(to),
    to.fence.toString(),
    numberText(to.amount),
    holderKey(to.holder),
    nameText(to.project),
    nameText(to.namespace),
    to.queue === null ? "" : nameText(to.queue),
  ]);
}

export function limitPairs({ pools, queues }: Limits): Pairs {
  const frozen = (freeze: object | undefined) => (freeze === undefined ? [] : ["1"]);
  const ofPools = pools.flatMap(({ pool, quota, projectDefault, namespaceDefault, freeze }) => [
    scopeKey({ kind: "pool", pool }),
    JSON.stringify([...[quota, projectDefault, namespaceDefault].map(numberText), ...frozen(freeze)]),
  ]);
  const ofQueues = queues.flatMap(({ queue, pool, parent, ceiling, guarantee, freeze }) => {
    const limits = [numberText(ceiling), numberText(guarantee), parent === null ? "" : nameText(parent)];
    return [scopeKey({ kind: "queue", pool, queue }), JSON.stringify([...limits, ...frozen(freeze)])];
  });
  return [...ofPools, ...ofQueues];
}

/** Returns all held tokens, sums and limits in the encoding of the scripts. */
export function loadOf(epoch: number, rows: readonly LedgerRow[], limits: Limits): Load {
  const sums = new Sums(limitBook(limits));
  const tokens: string[] = [];
  const expiries: string[] = [];
  let grants = 0n;
  for (const row of rows) {
    sums.add(row);
    const token = tokenKey(row);
    tokens.push(token, tokenText(row));
    // A load restarts the lease clock from 0.
    if (row.leaseMs !== null) expiries.push(numberText(row.leaseMs), token);
    const counter = row.fence - BigInt(epoch) * FENCES_PER_EPOCH;
    if (counter > grants && counter < FENCES_PER_EPOCH) grants = counter;
  }
  const used = sums.list().flatMap(({ scope, used }) => [scopeKey(scope), numberText(used)]);
  const direct = sums.listDirect().flatMap(({ scope, used }) => [`direct${scopeKey(scope)}`, numberText(used)]);
  const keys = new Map<number, Pairs>([
    [LIMITS, limitPairs(limits)],
    [SUMS, [...used, ...direct]],
    [TOKENS, tokens],
    [EXPIRIES, expiries],
  ]);
  return { keys, grants };
}

/** Encodes a token of the ledger. Its lease starts with the lease clock. */
function tokenText(row: LedgerRow): string {
  const { fence, amount, holder, pool, project, namespace, queue, leaseMs } = row;
  const names = [nameText(pool), nameText(project), nameText(namespace), queue === null ? "" : nameText(queue)];
  const lease = numberText(leaseMs);
  return JSON.stringify([fence.toString(), numberText(amount), holderKey(holder), ...names, lease, lease, "1"]);
}

/** Writes an integer without an exponent (`String` uses one from 10^21 on). Null becomes '', as the scripts expect. */
export function numberText(value: number | null): string {
  if (value === null) return "";
  return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
}

function digits(value: number, count: number): string {
  return numberText(value).padStart(count, "0");
}
