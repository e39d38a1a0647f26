import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { type RedisCounters, redisCounters } from "../../src/adapters/quota/redis/redis-counters.ts";
import { SCRIPTS } from "../../src/adapters/quota/redis/scripts.ts";
import { CounterState } from "../../src/core/quota/counter-state.ts";
import type { AllocationLine, Holder, LedgerRow, QueueLimit } from "../../src/core/quota/counters.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { type Cut, CuttingProxy } from "../support/cutting-proxy.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { canonicalSums } from "./sums.ts";

/**
 * How many histories: GANGWAY_REDIS_HISTORIES. One that failed is replayed by GANGWAY_REDIS_REPLAY with the JSON that the failure prints.
 */
const HISTORIES = Number(process.env["GANGWAY_REDIS_HISTORIES"] ?? 500);
const REPLAY = JSON.parse(process.env["GANGWAY_REDIS_REPLAY"] ?? "{}") as {
  seed?: number;
  path?: string;
  replayPath?: string;
};

const MAX = Number.MAX_SAFE_INTEGER;
const KEYS = ["meta", "limits", "sums", "tokens", "fences"] as const;

type Request = { readonly epoch: number; readonly holder: Holder; readonly lines: readonly AllocationLine[] };

/** What is expected: the executable specification, and what has become of its Redis meanwhile. */
class Expected {
  spec = new CounterState();
  /** The epoch under which it was last asked to open, whether or not that is open still. */
  epoch = 0;
  /** An older epoch does not open again while this is remembered. */
  remembered: number | null = null;
  /** Something was lost since it was opened. */
  lost = false;
  /** What was granted and not freed, as a ledger would know it. */
  rows: LedgerRow[] = [];
  limits: readonly QueueLimit[] = [];

  open(epoch: number): void {
    if (this.remembered !== null && epoch < this.remembered) return;
    this.spec.open(epoch, this.rows, this.limits);
    this.remembered = epoch;
    this.lost = false;
  }

  /** Everything was flushed, or one key is gone: closed until it is opened again. */
  lose(everything: boolean): void {
    this.spec = new CounterState();
    this.lost = true;
    if (everything) this.remembered = null;
  }

  grant(request: Request) {
    const outcome = this.spec.grant(request);
    if (outcome.kind !== "granted" || outcome.held) return outcome;
    const { holder, lines } = request;
    this.rows.push(...lines.map((line) => ({ ...line, holder, fence: outcome.fence })));
    return outcome;
  }

  free(epoch: number, fence: bigint) {
    const outcome = this.spec.free(epoch, fence);
    if (outcome === "freed") this.rows = this.rows.filter((row) => row.fence !== fence);
    return outcome;
  }

  setLimits(epoch: number, limits: readonly QueueLimit[]) {
    const outcome = this.spec.setLimits(epoch, limits);
    if (outcome === "set") this.limits = limits;
    return outcome;
  }
}

type Real = {
  readonly counters: RedisCounters;
  readonly server: RedisServer;
  readonly proxy: CuttingProxy;
  readonly tag: string;
};

type Step = { readonly cut?: Cut | undefined; readonly stale: number };

/** A step is taken on both sides, and both must give the same answer and then hold the same sums. */
class Command implements fc.AsyncCommand<Expected, Real> {
  readonly #text: string;
  readonly #run: (expected: Expected, real: Real) => Promise<void>;

  constructor(text: string, run: (expected: Expected, real: Real) => Promise<void>) {
    this.#text = text;
    this.#run = run;
  }

  check(): boolean {
    return true;
  }

  async run(expected: Expected, real: Real): Promise<void> {
    await this.#run(expected, real);
    assert.deepEqual(canonicalSums(await real.counters.used()), canonicalSums(expected.spec.used()));
  }

  toString(): string {
    return this.#text;
  }
}

/** Asks both sides. Where the call is cut its answer is unknown, and it was carried out only if it was the answer that was lost. */
async function askBoth<T>(real: Real, cut: Cut | undefined, sides: { expected: () => T; redis: () => Promise<T> }) {
  if (cut === undefined) {
    assert.deepEqual(await sides.redis(), sides.expected());
    return;
  }
  // The answer that is lost must be that of the call, not that its script is unknown.
  for (const { text } of Object.values(SCRIPTS)) await real.server.admin.script("LOAD", text);
  real.proxy.cutNext(cut);
  await assert.rejects(sides.redis(), UnavailableError);
  if (cut === "answer") sides.expected();
  await usable(real.counters);
}

async function usable(counters: RedisCounters): Promise<void> {
  for (;;) {
    const answered = await counters.used().then(
      () => true,
      (error: unknown) => {
        if (error instanceof UnavailableError) return false;
        throw error;
      },
    );
    if (answered) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const name = (letter: string, count: number) => fc.nat(count - 1).map((at) => `${letter}${at}`);
const line = fc.record({
  pool: name("gpu/", 2),
  token: name("t", 6),
  amount: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constantFrom(MAX - 1, MAX)),
  project: fc.constantFrom("team", "team1"),
  namespace: fc.constantFrom("team", "ns"),
  queue: name("q", 2),
});
const lines = fc.uniqueArray(line, { minLength: 1, maxLength: 3, selector: (l) => `${l.pool}/${l.token}` });
const holder = fc.record({ jobUid: name("job", 2), admission: fc.integer({ min: 1, max: 2 }) });
const limits = fc.uniqueArray(
  fc.record({ queue: name("q", 2), pool: name("gpu/", 2), limit: fc.oneof(fc.nat(12), fc.constant(MAX)) }),
  { maxLength: 4, selector: ({ queue, pool }) => `${queue}|${pool}` },
);
const roomy = ["q0", "q1"].flatMap((queue) => ["gpu/0", "gpu/1"].map((pool) => ({ queue, pool, limit: 12 })));

/** Mostly the present epoch and an answer that arrives. */
const step: fc.Arbitrary<Step> = fc.record({
  cut: fc.oneof(
    { weight: 12, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom<Cut>("request", "answer") },
  ),
  stale: fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(-1, 1) }),
});

const grants = fc.tuple(holder, lines, step).map(
  ([by, asked, { cut, stale }]) =>
    new Command(`grant(${fc.stringify([by, asked, cut, stale])})`, (expected, real) => {
      const request = { epoch: expected.epoch + stale, holder: by, lines: asked };
      return askBoth(real, cut, {
        expected: () => expected.grant(request),
        redis: () => real.counters.grant(request),
      });
    }),
);

/** Asks again for what is held, exactly or with one thing changed. */
const repeats = fc.tuple(fc.nat(5), fc.constantFrom("same", "holder", "amount", "part"), step).map(
  ([at, change, { cut }]) =>
    new Command(`repeat(${fc.stringify([at, change, cut])})`, async (expected, real) => {
      const row = expected.rows[at % Math.max(1, expected.rows.length)];
      if (row === undefined) return;
      const together = expected.rows.filter((other) => other.fence === row.fence);
      const by = change === "holder" ? { ...row.holder, admission: 9 } : row.holder;
      const [first, ...others] = together.map(({ holder: _holder, fence: _fence, ...asked }) => asked);
      if (first === undefined) return;
      const changed = change === "amount" ? { ...first, amount: first.amount === 1 ? 2 : 1 } : first;
      const more = change === "part" ? [{ ...first, token: "never held" }] : [];
      const request = { epoch: expected.epoch, holder: by, lines: [changed, ...others, ...more] };
      await askBoth(real, cut, {
        expected: () => expected.grant(request),
        redis: () => real.counters.grant(request),
      });
    }),
);

const frees = fc.tuple(fc.nat(7), step).map(
  ([at, { cut, stale }]) =>
    new Command(`free(${fc.stringify([at, cut, stale])})`, (expected, real) => {
      const fence = expected.rows[at]?.fence ?? 99n;
      const epoch = expected.epoch + stale;
      return askBoth(real, cut, {
        expected: () => expected.free(epoch, fence),
        redis: () => real.counters.free(epoch, fence),
      });
    }),
);

const limitChanges = fc.tuple(limits, step).map(
  ([wanted, { cut, stale }]) =>
    new Command(`setLimits(${fc.stringify([wanted, cut, stale])})`, (expected, real) => {
      const epoch = expected.epoch + stale;
      return askBoth(real, cut, {
        expected: () => expected.setLimits(epoch, wanted),
        redis: () => real.counters.setLimits(epoch, wanted),
      });
    }),
);

/** Opens with what the ledger holds: under a raised epoch, the present one, or one that is past. */
const opens = fc.tuple(fc.constantFrom("raised", "raised", "same", "older"), fc.nat(9)).map(
  ([how, keep]) =>
    new Command(`open(${fc.stringify([how, keep])})`, async (expected, real) => {
      if (how === "older") {
        if (expected.remembered === null || expected.epoch < 2) return;
        await real.counters.open(expected.epoch - 1, expected.rows, expected.limits);
        expected.open(expected.epoch - 1);
        return;
      }
      // What was lost is opened under a raised epoch alone: its fences are not known any more.
      if (how === "raised" || expected.lost || expected.epoch === 0) expected.epoch += 1;
      const kept = new Set([...new Set(expected.rows.map(({ fence }) => fence))].slice(0, keep));
      expected.rows = expected.rows.filter(({ fence }) => kept.has(fence));
      await real.counters.open(expected.epoch, expected.rows, expected.limits);
      expected.open(expected.epoch);
    }),
);

const disasters = fc.constantFrom("flush", "forget scripts", ...KEYS).map(
  (what) =>
    new Command(`lose(${what})`, async (expected, { server, tag }) => {
      if (what === "forget scripts") {
        await server.admin.script("FLUSH");
        return;
      }
      if (what === "flush") await server.admin.flushall();
      else await server.admin.del(`{${tag}}:${what}`);
      if (what === "flush" || expected.epoch > 0) expected.lose(what === "flush" || what === "meta");
    }),
);

const histories = fc.commands([grants, grants, grants, repeats, frees, frees, limitChanges, opens, disasters], {
  maxCommands: 40,
  size: "max",
  ...(REPLAY.replayPath === undefined ? {} : { replayPath: REPLAY.replayPath }),
});

describe("histories of counters", { skip: !hasRedisServer() }, () => {
  let server: RedisServer;
  let proxy: CuttingProxy;
  before(async () => {
    server = await RedisServer.start();
    proxy = await CuttingProxy.start(server.port);
  });
  after(async () => {
    await proxy.stop();
    await server.stop();
  });

  test("Redis answers every step of every history as the specification does", async () => {
    const property = fc.asyncProperty(limits, fc.boolean(), histories, async (first, small, commands) => {
      const installation = randomUUID();
      const counters = await redisCounters({
        url: proxy.url,
        installation,
        domain: "default",
        reconnectMsMin: 1,
        onError: () => undefined,
        onWarning: (message) => assert.fail(message),
      });
      const expected = new Expected();
      expected.limits = small ? first : roomy;
      expected.epoch = 1;
      try {
        await counters.open(1, [], expected.limits);
        expected.open(1);
        const real = { counters, server, proxy, tag: `gangway:${installation}:default` };
        await fc.asyncModelRun(() => ({ model: expected, real }), commands);
      } finally {
        await counters.close();
        proxy.cutNothing();
      }
    });
    const { seed, path } = REPLAY;
    const run = await fc.check(property, {
      numRuns: HISTORIES,
      ...(seed === undefined ? {} : { seed }),
      ...(path === undefined ? {} : { path, endOnFailure: true }),
    });
    if (!run.failed) return;
    const [, replayPath] = /replayPath="([^"]*)"/.exec(String(run.counterexample?.[2])) ?? [];
    const replay = JSON.stringify({ seed: run.seed, path: run.counterexamplePath, replayPath });
    assert.fail(`replay with GANGWAY_REDIS_REPLAY='${replay}'\n${fc.defaultReportMessage(run)}`);
  });
});
