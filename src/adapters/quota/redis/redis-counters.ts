import { randomUUID } from "node:crypto";
import type { Counters, GrantOutcome, LedgerRow, QueueLimit, Scope } from "../../../core/quota/counters.ts";
import { checkLines } from "../../../core/quota/lines.ts";
import { scopeOfKey, scopesOf } from "../../../core/quota/scopes.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type ConnectionOptions, RedisConnection } from "./connection.ts";
import { holderKey, limitPairs, lineArguments, loadOf } from "./encoding.ts";
import { SCRIPTS } from "./scripts.ts";

export type RedisCountersOptions = Pick<ConnectionOptions, "url" | "onError" | "onWarning"> &
  Partial<Pick<ConnectionOptions, "commandTimeoutMs" | "reconnectMsMin" | "reconnectMsMax">> & {
    /** Names the database that the ledger is in: two of them may share a Redis. */
    readonly installation: string;
    /** The quota domain. */
    readonly domain: string;
    /** What every key begins with, inside its hash tag. */
    readonly keyPrefix?: string;
  };

export type RedisCounters = Counters & { readonly close: () => Promise<void> };

const DEFAULTS = { commandTimeoutMs: 2_000, reconnectMsMin: 50, reconnectMsMax: 2_000, keyPrefix: "gangway" };

/** Values of one step of a load: a script that takes long holds up everybody. Below what Lua can unpack, 8,000. */
const VALUES_PER_STEP = 1_000;

const KEYS = ["meta", "limits", "sums", "tokens", "fences"];

/**
 * Counters in Redis, one call for each grant. They answer `closed` whenever Redis is not what was opened: it was flushed, a key was
 * lost, another server or another run of it answers. A call whose answer is lost throws `UnavailableError` and may have been carried out;
 * opening under a raised epoch settles that.
 *
 * Throws `RedisRefusedError` for a Redis that drops keys or is too old, `UnavailableError` for one that cannot be reached.
 */
export async function redisCounters(given: RedisCountersOptions): Promise<RedisCounters> {
  const options = { ...DEFAULTS, ...given };
  const tag = [options.keyPrefix, options.installation, options.domain].join(":");
  // Redis hashes what is inside the first pair of braces.
  if (/[{}]/.test(tag)) throw new Error(`braces are not allowed in the name of counters: ${tag}`);
  const keys = KEYS.map((key) => `{${tag}}:${key}`);
  const connection = await RedisConnection.open(options);
  const run = (script: keyof typeof SCRIPTS, argumentsFor: (runId: string) => readonly string[]) =>
    connection.run(SCRIPTS[script], keys, argumentsFor);
  return {
    open: (epoch, rows, limits) => load(run, { epoch, rows, limits }),
    grant: (request) => grant(run, request),
    free: async (epoch, fence) =>
      (await run("free", (runId) => [String(epoch), runId, fence.toString()])) as "freed" | "notHeld" | "closed",
    setLimits: async (epoch, limits) =>
      (await run("setLimits", (runId) => [String(epoch), runId, ...limitPairs(limits)])) as "set" | "closed",
    used: async () => sumsOf((await run("used", (runId) => [runId])) as readonly string[]),
    close: () => connection.close(),
  };
}

type Run = (
  script: keyof typeof SCRIPTS,
  argumentsFor: (runId: string) => readonly string[],
) => ReturnType<RedisConnection["run"]>;

async function grant(run: Run, request: Parameters<Counters["grant"]>[0]): Promise<GrantOutcome> {
  const { epoch, holder, lines } = request;
  checkLines(lines);
  const wanted = lines.flatMap(lineArguments);
  const reply = await run("grant", (runId) => [String(epoch), runId, holderKey(holder), ...wanted]);
  const [kind, ...rest] = reply as readonly [GrantOutcome["kind"], ...(string | number)[]];
  const line = lines[Number(rest[0]) - 1];
  if (kind === "granted") return { kind, fence: BigInt(rest[0] ?? 0), held: rest[1] === "held" };
  if (kind === "closed") return { kind };
  if (line === undefined) throw new Error(`Redis answered a grant with ${JSON.stringify(reply)}`);
  if (kind === "conflict") return { kind, token: line.token };
  const scope = scopesOf(line)[Number(rest[1]) - 1];
  if (scope === undefined) throw new Error(`Redis answered a grant with ${JSON.stringify(reply)}`);
  const violation = { scope, used: Number(rest[2]), limit: Number(rest[3]), requested: line.amount };
  return { kind, violation };
}

/** Loads in steps. Whoever loads later goes on; this load then ends as one that was never asked for, or throws. */
async function load(
  run: Run,
  wanted: {
    readonly epoch: number;
    readonly rows: readonly LedgerRow[];
    readonly limits: readonly QueueLimit[];
  },
): Promise<void> {
  const { keys, grants } = loadOf(wanted.epoch, wanted.rows, wanted.limits);
  const id = randomUUID();
  const begun = await run("open", (runId) => ["begin", id, String(wanted.epoch), runId]);
  if (begun === "older") return;
  for (const [key, pairs] of keys) {
    for (let at = 0; at < pairs.length; at += VALUES_PER_STEP) {
      mustGoOn(await run("open", () => ["fill", id, String(key), ...pairs.slice(at, at + VALUES_PER_STEP)]));
    }
  }
  mustGoOn(await run("open", () => ["finish", id, grants.toString()]));
}

function mustGoOn(reply: unknown): void {
  if (reply !== "done")
    throw new UnavailableError("the counters were lost, or loaded by another, while they were loaded");
}

function sumsOf(pairs: readonly string[]): readonly { readonly scope: Scope; readonly used: number }[] {
  const sums: { scope: Scope; used: number }[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    sums.push({ scope: scopeOfKey(pairs[at] ?? ""), used: Number(pairs[at + 1]) });
  }
  return sums;
}
