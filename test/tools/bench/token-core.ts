/** The counters in Redis alone, beside the four commands with which others count, and beside bare scripts. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { type RedisCounters, redisCounters } from "../../../src/adapters/counters/redis/redis-counters.ts";
import type { Allocation, LedgerRow } from "../../../src/core/quota/counters.ts";
import { callRate, type Rate } from "./measure.ts";
import { BARE_SCRIPT } from "./token-floors.ts";

const POOL = "pool";
const CALLERS = 32;
const BATCH = 256;
const TEAMS = 10;
const EPOCH = 1;
const HOLDER = { kind: "caller", name: "bench" } as const;

type Report = (measured: Rate, floor: Rate) => void;

/** Measures takes and returns of one token, with so many held, and takes of many in one call. */
export async function benchTokenCore(
  of: { readonly redis: string; readonly seconds: number; readonly held: readonly number[] },
  report: Report,
): Promise<void> {
  const plain = new Redis(of.redis);
  try {
    for (const held of of.held) {
      const { counters, close } = await openCounters(of.redis, held);
      const load = { callers: CALLERS, seconds: of.seconds };
      const ours = await callRate(`take and give back, ${held} held`, (call) => takeOne(counters, call), load);
      const set = await fillSet(plain, held);
      report(ours, await callRate("four commands", (call) => countInSet(plain, { set, held, call }), load));
      await plain.del(set);
      await close();
    }
    const { counters, close } = await openCounters(of.redis, 1_000);
    const one = { callers: 1, seconds: of.seconds };
    const ours = await callRate(`batches of ${BATCH}`, (call) => takeMany(counters, call), one);
    const sha = (await plain.script("LOAD", BARE_SCRIPT)) as string;
    const bare = await callRate("pipelined scripts", () => runMany(plain, sha), one);
    const tokens = ({ name, perSecond }: Rate) => ({ name, perSecond: perSecond * BATCH });
    report(tokens(ours), tokens(bare));
    await close();
  } finally {
    plain.disconnect();
  }
}

function allocationOf(token: string, team: number): Allocation {
  const place = { pool: POOL, token, amount: 1, project: `project-${team}`, namespace: `team-${team}` };
  return { ...place, queue: null, caps: { project: null, namespace: null }, leaseMs: null };
}

async function openCounters(url: string, held: number) {
  const quiet = { onError: () => undefined, onWarning: () => undefined };
  const counters = await redisCounters({ url, installation: randomUUID(), domain: "default", ...quiet });
  const rows = Array.from({ length: held }, (_, at): LedgerRow => {
    const { caps: _caps, ...row } = allocationOf(`held-${at}`, at % TEAMS);
    return { ...row, holder: HOLDER, fence: BigInt(at + 1) };
  });
  const most = held + 10 * CALLERS * BATCH;
  const pool = { pool: POOL, quota: most, projectDefault: most, namespaceDefault: most };
  const limits = { version: 1, pools: [pool], queues: [], tokensMax: most, waitersMax: 10 };
  await counters.open(EPOCH, { rows, limits });
  return { counters, close: () => counters.close() };
}

async function takeOne(counters: RedisCounters, call: number): Promise<void> {
  const allocations = [allocationOf(`token-${call}`, call % TEAMS)];
  const granted = await counters.grant({ epoch: EPOCH, holder: HOLDER, allocations, priority: 0, waiter: null });
  if (granted.kind !== "granted") throw new Error(`the counters answered ${granted.kind}`);
  await counters.free(EPOCH, [{ pool: POOL, token: `token-${call}`, fence: granted.fence }]);
}

async function takeMany(counters: RedisCounters, call: number): Promise<void> {
  const request = { holder: HOLDER, priority: 0, waiter: null, chain: null, stops: false };
  const tokens = Array.from({ length: BATCH }, (_, at) => `token-${call}-${at}`);
  const requests = tokens.map((token, at) => ({ ...request, allocations: [allocationOf(token, at % TEAMS)] }));
  const outcomes = await counters.grantAll(EPOCH, requests);
  const refs = outcomes.map((outcome, at) => {
    if (outcome.kind !== "granted") throw new Error(`the counters answered ${outcome.kind}`);
    return { pool: POOL, token: tokens[at] ?? "", fence: outcome.fence };
  });
  await counters.free(EPOCH, refs);
}

/** As many scripts as a batch has tokens, once for the takes and once for the returns. */
async function runMany(redis: Redis, sha: string): Promise<void> {
  for (let turn = 0; turn < 2; turn++) {
    const pipeline = redis.pipeline();
    for (let at = 0; at < BATCH; at++) pipeline.evalsha(sha, 1, "bench");
    await pipeline.exec();
  }
}

/** A set whose members name their project and namespace. */
async function fillSet(redis: Redis, held: number): Promise<string> {
  const set = `bench:${held}`;
  const members = Array.from({ length: held }, (_, at) => memberOf(`held-${at}`, at % TEAMS));
  for (let from = 0; from < members.length; from += 1_000) await redis.sadd(set, members.slice(from, from + 1_000));
  return set;
}

function memberOf(token: string, team: number): string {
  return `project-${team}:team-${team}:${token}`;
}

/** Counts as Flyte's resource manager does: the caps of a project and of a namespace by the names of all members. */
async function countInSet(redis: Redis, of: { readonly set: string; readonly held: number; readonly call: number }) {
  const { set, held, call } = of;
  const team = call % TEAMS;
  const member = memberOf(`token-${call}`, team);
  const most = held + 10 * CALLERS * BATCH;
  if ((await redis.sismember(set, member)) === 1) return;
  if ((await redis.scard(set)) >= most) throw new Error("the pool is full");
  const members = await redis.smembers(set);
  for (const prefix of [`project-${team}:`, `project-${team}:team-${team}:`]) {
    if (members.filter((one) => one.startsWith(prefix)).length >= most) throw new Error(`${prefix} has all it may`);
  }
  await redis.sadd(set, member);
  await redis.srem(set, member);
}
