import {
  checkGrants,
  checkLease,
  checkRests,
  checkStand,
  checkTurnOvers,
  holderKey,
  tokenKey,
} from "../../../core/quota/allocations.ts";
import type { BatchedGrant, BatchedOutcome, Counters } from "../../../core/quota/counters.ts";
import { advanceMs, SILENT_TICKS_MAX, STAND_LEASE_MS } from "../../../core/quota/lease-clock.ts";
import type { RedisState } from "../../../core/quota/redis-state.ts";
import { type ConnectionOptions, RedisConnection } from "./connection.ts";
import {
  giveBackArguments,
  grantArguments,
  limitPairs,
  nameText,
  numberText,
  refArguments,
  restArguments,
  turnOverArguments,
  waiterArguments,
} from "./encoding.ts";
import { load } from "./load.ts";
import { RedisUnavailableError } from "./node.ts";
import type { Secrets } from "./options.ts";
import {
  foundTokens,
  giveBackOutcomes,
  grantOutcomes,
  momentOf,
  nameOf,
  renewOutcomes,
  standOutcome,
  sumsOf,
  type Texts,
  tickOutcome,
  tokensOf,
  waitersOf,
} from "./replies.ts";
import { SCRIPTS, TAKE_ROOM } from "./scripts.ts";

export type RedisCountersOptions = Pick<ConnectionOptions, "url" | keyof Secrets | "onError" | "onWarning"> &
  Partial<Pick<ConnectionOptions, "commandTimeoutMs" | "reconnectMsMin" | "reconnectMsMax">> & {
    /** The name of the ledger's database. Several databases may share one Redis. */
    readonly installation: string;
    /** The quota domain. */
    readonly domain: string;
    /** The prefix of every key, inside its hash tag. */
    readonly keyPrefix?: string;
  };

export type RedisCounters = Counters & {
  /** Writes to the server of the domain, to see whether it can count. */
  readonly state: () => Promise<RedisState>;
  readonly close: () => Promise<void>;
};

const DEFAULTS = { commandTimeoutMs: 2_000, reconnectMsMin: 50, reconnectMsMax: 2_000, keyPrefix: "gangway" };

/** The keys in the order in which the scripts number them. */
const KEYS = ["meta", "limits", "sums", "tokens", "waiters", "line", "expiries", "unconfirmed", "stands"];

type Verb = Exclude<keyof typeof SCRIPTS, "open">;
type Ask = (verb: Verb, epoch: number, given?: readonly string[]) => Promise<unknown>;
/** Runs under any epoch. */
type Read = (verb: Verb, given?: readonly string[]) => Promise<unknown>;

/**
 * Counters in Redis, with one call for each verb. They answer `closed` if Redis is not the one that was opened: it was
 * flushed, a key was lost, or another server or another run of it answers. A call whose answer is lost throws
 * `UnavailableError`, and Redis may have run it; opening the counters under a raised epoch clears the doubt.
 *
 * Throws `RedisRefusedError` for a Redis that evicts keys or is too old, `UnavailableError` for one that cannot be
 * reached.
 */
export async function redisCounters(given: RedisCountersOptions): Promise<RedisCounters> {
  const options = { ...DEFAULTS, ...given };
  const tag = [options.keyPrefix, options.installation, options.domain].join(":");
  // Redis hashes the text inside the first pair of braces.
  if (/[{}]/.test(tag)) throw new Error(`key prefix, installation and domain must not contain braces, but are ${tag}`);
  const keys = KEYS.map((key) => `{${tag}}:${key}`);
  const channel = `{${tag}}:offers`;
  const connection = await RedisConnection.open(options);
  const ask: Ask = (verb, epoch, given = []) =>
    connection.run(SCRIPTS[verb], keys, (runId) => [String(epoch), runId, ...given]);
  const read: Read = (verb, given = []) => connection.run(SCRIPTS[verb], keys, (runId) => [runId, ...given]);
  return {
    open: (epoch, of) =>
      load((argumentsFor) => connection.run(SCRIPTS.open, keys, argumentsFor), { ...of, epoch, channel }),
    ...grants(ask),
    ...waitingLines(ask),
    ...leases(ask),
    ...reads(read),
    giveBack: async (tokens) => giveBackOutcomes(tokens, await read("giveBack", giveBackArguments(tokens))),
    moment: async (epoch, tokens) => momentOf(await ask("moment", epoch, tokens.map(tokenKey))),
    setLimits: async (epoch, limits) => {
      const bounds = [limits.version, limits.tokensMax, limits.waitersMax].map(numberText);
      return (await ask("setLimits", epoch, [...bounds, ...limitPairs(limits)])) as "set" | "older" | "closed";
    },
    onOffer: (listener) => connection.subscribe(channel, (waiter) => listener(nameOf(waiter))),
    state: async () => {
      try {
        await connection.run(TAKE_ROOM, [`{${tag}}:room`], (runId) => [runId]);
        return "ok";
      } catch (error) {
        return error instanceof RedisUnavailableError ? error.state : "away";
      }
    },
    close: () => connection.close(),
  };
}

function grants(ask: Ask): Pick<Counters, "grant" | "grantAll" | "free" | "shrink" | "turnOver" | "confirm"> {
  const grantAll = async (epoch: number, requests: readonly BatchedGrant[]): Promise<readonly BatchedOutcome[]> => {
    checkGrants(requests);
    return grantOutcomes(await ask("grant", epoch, requests.flatMap(grantArguments)), requests);
  };
  return {
    grant: async ({ epoch, ...request }) => {
      const [outcome] = await grantAll(epoch, [{ ...request, chain: null, stops: false }]);
      if (outcome === undefined || outcome.kind === "notTried") throw new Error("Redis did not try to grant a request");
      return outcome;
    },
    grantAll,
    free: async (epoch, allocations) =>
      (await ask("free", epoch, refArguments(allocations))) as "closed" | readonly ("freed" | "notHeld")[],
    shrink: async (epoch, allocations) => {
      checkRests(allocations);
      const answer = await ask("shrink", epoch, restArguments(allocations));
      return answer as "closed" | readonly ("shrunk" | "asItIs" | "notHeld")[];
    },
    turnOver: async (epoch, turns) => {
      checkTurnOvers(turns);
      const answer = await ask("turnOver", epoch, turnOverArguments(turns));
      return answer as "closed" | readonly ("turnedOver" | "asItIs" | "notHeld")[];
    },
    confirm: async (epoch, allocations) =>
      (await ask("confirm", epoch, refArguments(allocations))) as "confirmed" | "closed",
  };
}

function waitingLines(ask: Ask): Pick<Counters, "stand" | "leave"> {
  return {
    stand: async (request) => {
      checkStand(request);
      const { epoch, waiter, allocations } = request;
      const kept = numberText(STAND_LEASE_MS);
      return standOutcome(
        await ask("stand", epoch, [nameText(waiter), kept, ...waiterArguments(request)]),
        allocations,
      );
    },
    leave: async (epoch, waiter) => (await ask("leave", epoch, [nameText(waiter)])) as "left" | "notThere" | "closed",
  };
}

function leases(ask: Ask): Pick<Counters, "renew" | "tick" | "report"> {
  return {
    renew: async (epoch, { holder, allocations }) => {
      for (const { token, leaseMs } of allocations) checkLease(token, leaseMs);
      const asked = allocations.flatMap((allocation) => [tokenKey(allocation), numberText(allocation.leaseMs)]);
      return renewOutcomes(await ask("renew", epoch, [holderKey(holder), ...asked]));
    },
    tick: async (epoch, { elapsedMs, unconfirmedMs, limit }) => {
      const asked = [advanceMs(elapsedMs), SILENT_TICKS_MAX, unconfirmedMs, limit].map(numberText);
      return tickOutcome(await ask("tick", epoch, asked));
    },
    report: async (epoch) => (await ask("report", epoch)) as "reported" | "closed",
  };
}

function reads(read: Read): Pick<Counters, "used" | "held" | "find" | "waiting"> {
  return {
    used: async () => sumsOf(await read("used")),
    held: async (after, count) => {
      const [next, tokens] = (await read("held", [after ?? "0", numberText(count)])) as readonly [string, Texts];
      return { tokens: tokensOf(tokens), next: next === "0" ? null : next };
    },
    find: async (tokens) => foundTokens(tokens, await read("find", tokens.map(tokenKey))),
    waiting: async () => waitersOf(await read("waiting")),
  };
}
