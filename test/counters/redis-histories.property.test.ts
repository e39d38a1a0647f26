import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { Redis } from "ioredis";
import { type RedisCounters, redisCounters } from "../../src/adapters/counters/redis/redis-counters.ts";
import { SCRIPTS } from "../../src/adapters/counters/redis/scripts.ts";
import { CounterState } from "../../src/core/quota/counter-state.ts";
import type { AllocationRef, Counters, HeldToken, Limits, TurnOver } from "../../src/core/quota/counters.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";
import { type Cut, CuttingProxy } from "../support/cutting-proxy.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import * as some from "../tokens/arbitraries.ts";
import { allHeld, canonicalHeld, canonicalSums } from "../tokens/sums.ts";

/**
 * The number of histories: GANGWAY_REDIS_HISTORIES, or `npm run histories -- N`. To replay a failure, set
 * GANGWAY_REDIS_REPLAY to the JSON that it prints.
 */
const HISTORIES = Number(process.env["GANGWAY_REDIS_HISTORIES"] ?? 2_000);
const REPLAY = JSON.parse(process.env["GANGWAY_REDIS_REPLAY"] ?? "{}") as {
  seed?: number;
  path?: string;
  replayPath?: string;
};

const KEYS = ["meta", "limits", "sums", "tokens", "waiters", "line", "expiries", "unconfirmed", "stands"] as const;
const TAG = "{gangway:histories:default}";
const CHANNEL = `${TAG}:offers`;

/** The expected state: the executable specification, and the losses of its Redis. */
class Expected {
  readonly offers: string[] = [];
  spec = this.#fresh();
  /** The epoch of the last call of open, even if the domain is closed by now. */
  epoch = 0;
  /** While this is set, an open with an older epoch does nothing. */
  remembered: number | null = null;
  /** True: a key was lost since the last open. */
  lost = false;
  /** The held tokens at the last look, as a ledger would have recorded them. */
  rows: readonly HeldToken[] = [];
  limits: Limits;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  open(epoch: number, rows: readonly HeldToken[]): void {
    if (this.remembered !== null && epoch < this.remembered) return;
    this.spec.open(epoch, { rows: rows.map(ledgerRow), limits: this.limits });
    this.remembered = epoch;
    this.lost = false;
    this.rows = rows;
  }

  /** Everything was flushed, or one key was lost: the domain is closed until the next open. */
  lose(everything: boolean): void {
    this.spec = this.#fresh();
    this.lost = true;
    if (everything) this.remembered = null;
  }

  look(): void {
    if (!this.lost) this.rows = this.spec.held(null, Number.MAX_SAFE_INTEGER).tokens;
  }

  #fresh(): CounterState {
    return new CounterState((waiter) => void this.offers.push(waiter));
  }
}

type Real = { readonly counters: RedisCounters; readonly server: RedisServer; readonly proxy: CuttingProxy };

const ledgerRow = ({ confirmed: _, ...row }: HeldToken) => row;

/** Runs one step on both sides. Both must then give the same answer, hold the same tokens and list the same waiters. */
class Command implements fc.AsyncCommand<Expected, Real> {
  readonly #text: () => string;
  readonly #run: (expected: Expected, real: Real) => Promise<Seen | undefined>;

  /** `text`: only a failure shows it, and to make it takes longer than a step. */
  constructor(text: () => string, run: (expected: Expected, real: Real) => Promise<Seen | undefined>) {
    this.#text = text;
    this.#run = run;
  }

  check(): boolean {
    return true;
  }

  async run(expected: Expected, real: Real): Promise<void> {
    const [used, held, waiting, found] = (await this.#run(expected, real)) ?? (await look(expected, real));
    assert.deepEqual(canonicalSums(used), canonicalSums(expected.spec.used()));
    assert.deepEqual(canonicalHeld(held), canonicalHeld(expected.spec.held(null, 1_000).tokens));
    assert.deepEqual(waiting, expected.spec.waiting());
    assert.deepEqual(found, expected.spec.find(soughtOf(expected)));
    expected.look();
  }

  toString(): string {
    return this.#text();
  }
}

type Seen = Awaited<ReturnType<typeof look>>;

/** All questions travel together. */
function look(expected: Expected, { counters }: Real) {
  return Promise.all([counters.used(), allHeld(counters), counters.waiting(), counters.find(soughtOf(expected))]);
}

/** The tokens that a look asks for by their names: some of those held at the last look, and one of nobody. */
function soughtOf({ rows }: Expected) {
  return [...rows.slice(0, 3), { pool: "nowhere", token: "none" }].map(({ pool, token }) => ({ pool, token }));
}

/** Usually the present epoch and an answer that arrives. */
type Step = { readonly cut?: Cut | undefined; readonly stale: number };

const step: fc.Arbitrary<Step> = fc.record({
  cut: fc.oneof(
    { weight: 60, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom<Cut>("request", "answer") },
  ),
  stale: fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(-1, 1) }),
});

/**
 * Calls one verb with the same request on both sides. If the call is cut its answer is unknown, and it ran only if the
 * cut lost the answer.
 */
function verb<Given, Request>(
  name: string,
  given: fc.Arbitrary<Given>,
  of: {
    readonly request: (given: Given, epoch: number, expected: Expected) => Request;
    readonly spec: (spec: CounterState, request: Request) => unknown;
    readonly redis: (counters: Counters, request: Request) => Promise<unknown>;
  },
) {
  return fc.tuple(given, step).map(
    ([asked, { cut, stale }]) =>
      new Command(
        () => `${name}(${fc.stringify([asked, cut, stale])})`,
        async (expected, real) => {
          const request = of.request(asked, expected.epoch + stale, expected);
          if (cut === undefined) {
            // Pipelined in this order, because the server knows every script.
            const [answer, seen] = await Promise.all([of.redis(real.counters, request), look(expected, real)]);
            assert.deepEqual(answer, of.spec(expected.spec, request));
            return seen;
          }
          real.proxy.cutNext(cut);
          await assert.rejects(of.redis(real.counters, request), UnavailableError);
          if (cut === "answer") of.spec(expected.spec, request);
          await usable(real.counters);
          return undefined;
        },
      ),
  );
}

/** Resolves when calls are answered again. */
function usable(counters: RedisCounters): Promise<void> {
  const isAnswered = () =>
    counters.used().then(
      () => true,
      (error: unknown) => {
        if (error instanceof UnavailableError) return false;
        throw error;
      },
    );
  return waitUntil("calls are answered", isAnswered, { pollMs: 1 });
}

const NO_CAPS = { project: null, namespace: null };
const NOTHING = { pool: "gpu/0", token: "t0", fence: 99n };
const rowAt = ({ rows }: Expected, at: number): HeldToken | undefined => rows[at % Math.max(1, rows.length)];
const refsAt = (expected: Expected, picks: readonly number[]) =>
  picks.map((at) => {
    const { pool, token, fence } = rowAt(expected, at) ?? NOTHING;
    // One pick has the fence of another grant.
    return { pool, token, fence: at === 7 ? fence + 1n : fence };
  });
const picks = fc.array(fc.nat(7), { minLength: 1, maxLength: 3 });
const asking = fc.record({
  holder: some.holder,
  allocations: some.allocations,
  priority: some.priority,
  waiter: fc.option(some.waiter, { freq: 2 }),
});

const grants = verb("grant", asking, {
  request: (asked, epoch) => ({ ...asked, epoch }),
  spec: (spec, request) => spec.grant(request),
  redis: (counters, request) => counters.grant(request),
});

/** Grants several requests in one call. Some are in chains, and some stop the call if a pool refuses them. */
const batches = verb(
  "grantAll",
  fc.array(fc.tuple(asking, fc.constantFrom(null, null, "q", "r"), fc.constantFrom(false, false, true)), {
    maxLength: 6,
  }),
  {
    request: (asked, epoch) => ({
      epoch,
      requests: asked.map(([request, chain, stops]) => ({ ...request, chain, stops })),
    }),
    spec: (spec, { epoch, requests }) => spec.grantAll(epoch, requests),
    redis: (counters, { epoch, requests }) => counters.grantAll(epoch, requests),
  },
);

/** Repeats the request of a held grant, unchanged or with one change. */
const repeats = verb(
  "repeat",
  fc.tuple(fc.nat(7), fc.constantFrom("same", "holder", "amount", "part"), some.priority),
  {
    request: ([at, change, priority], epoch, expected) => {
      const row = rowAt(expected, at);
      const together = row === undefined ? [] : expected.rows.filter((other) => other.fence === row.fence);
      const asked = together.map(({ pool, token, amount, project, namespace, queue, leaseMs }) => {
        return { pool, token, amount, project, namespace, queue, leaseMs, caps: NO_CAPS };
      });
      const token = ["x", "y", "z", "a"].find((name) => asked.every((allocation) => allocation.token !== name)) ?? "";
      const never = { pool: "gpu/0", token, amount: 1, project: "p", namespace: "n", queue: null };
      const more = change === "part" || asked.length === 0 ? [{ ...never, leaseMs: null, caps: NO_CAPS }] : [];
      const allocations = [...asked, ...more].map((allocation, index) =>
        change === "amount" && index === 0 ? { ...allocation, amount: allocation.amount === 1 ? 2 : 1 } : allocation,
      );
      const another = { kind: "caller", name: "another" } as const;
      const holder = change === "holder" ? another : (row?.holder ?? another);
      return { epoch, holder, allocations, priority, waiter: null };
    },
    spec: (spec, request) => spec.grant(request),
    redis: (counters, request) => counters.grant(request),
  },
);

const frees = verb("free", picks, {
  request: (asked, epoch, expected) => ({ epoch, allocations: refsAt(expected, asked) }),
  spec: (spec, { epoch, allocations }) => spec.free(epoch, allocations),
  redis: (counters, { epoch, allocations }) => counters.free(epoch, allocations),
});

/** Gives tokens back by their names, some of them with another holder, scope or fence. */
const givesBack = verb("giveBack", fc.tuple(picks, fc.constantFrom("any", "own", "holder", "project", "namespace")), {
  request: ([asked, how], _epoch, expected) =>
    refsAt(expected, asked).map((ref, at) => {
      const row = rowAt(expected, asked[at] ?? 0);
      if (how === "any" || row === undefined)
        return { ...ref, holder: null, project: null, namespace: null, fence: null };
      const { holder, project, namespace } = row;
      const other = { kind: "caller", name: "another" } as const;
      return {
        ...ref,
        holder: how === "holder" ? other : holder,
        project: how === "project" ? "elsewhere" : project,
        namespace: how === "namespace" ? "elsewhere" : namespace,
      };
    }),
  spec: (spec, tokens) => spec.giveBack(tokens),
  redis: (counters, tokens) => counters.giveBack(tokens),
});

const shrinks = verb("shrink", fc.tuple(picks, fc.array(some.rest, { minLength: 3, maxLength: 3 })), {
  request: ([asked, rests], epoch, expected) => {
    const allocations = refsAt(expected, asked).map((ref, at) => ({ ...ref, amount: rests[at] ?? 1 }));
    return { epoch, allocations };
  },
  spec: (spec, { epoch, allocations }) => spec.shrink(epoch, allocations),
  redis: (counters, { epoch, allocations }) => counters.shrink(epoch, allocations),
});

/** Turns parts of tokens over to heirs, once or twice, also of tokens that are not held. */
const turnOvers = verb("turnOver", fc.tuple(picks, fc.array(some.heir, { minLength: 3, maxLength: 3 })), {
  request: ([asked, heirs], epoch, expected) => ({ epoch, turns: turnsOf(refsAt(expected, asked), heirs) }),
  spec: (spec, { epoch, turns }) => spec.turnOver(epoch, turns),
  redis: (counters, { epoch, turns }) => counters.turnOver(epoch, turns),
});

function turnsOf(refs: readonly AllocationRef[], heirs: readonly some.Heir[]): readonly TurnOver[] {
  return refs.flatMap((from, at) => {
    const { kept, ...to } = heirs[at % heirs.length] as some.Heir;
    return { from: { ...from, kept }, to: { ...to, pool: from.pool, fence: from.fence } };
  });
}

const confirms = verb("confirm", picks, {
  request: (asked, epoch, expected) => ({ epoch, allocations: refsAt(expected, asked) }),
  spec: (spec, { epoch, allocations }) => spec.confirm(epoch, allocations),
  redis: (counters, { epoch, allocations }) => counters.confirm(epoch, allocations),
});

const renewals = verb("renew", fc.tuple(picks, fc.constantFrom(null, 500, 2_000), fc.boolean()), {
  request: ([asked, leaseMs, own], epoch, expected) => {
    const row = rowAt(expected, asked[0] ?? 0);
    const holder = own && row !== undefined ? row.holder : ({ kind: "caller", name: "another" } as const);
    return { epoch, holder, allocations: refsAt(expected, asked).map(({ pool, token }) => ({ pool, token, leaseMs })) };
  },
  spec: (spec, { epoch, ...of }) => spec.renew(epoch, of),
  redis: (counters, { epoch, ...of }) => counters.renew(epoch, of),
});

const stands = verb("stand", some.stand, {
  request: (asked, epoch) => ({ ...asked, epoch }),
  spec: (spec, request) => spec.stand(request),
  redis: (counters, request) => counters.stand(request),
});

const leaves = verb("leave", some.waiter, {
  request: (waiter, epoch) => ({ epoch, waiter }),
  spec: (spec, { epoch, waiter }) => spec.leave(epoch, waiter),
  redis: (counters, { epoch, waiter }) => counters.leave(epoch, waiter),
});

const ticks = verb("tick", some.tick, {
  request: (asked, epoch) => ({ epoch, asked }),
  spec: (spec, { epoch, asked }) => spec.tick(epoch, asked),
  redis: (counters, { epoch, asked }) => counters.tick(epoch, asked),
});

const reports = verb("report", fc.constant(null), {
  request: (_, epoch) => epoch,
  spec: (spec, epoch) => spec.report(epoch),
  redis: (counters, epoch) => counters.report(epoch),
});

const limitChanges = verb("setLimits", fc.tuple(some.limits, fc.constantFrom(0, 1, 1, 1, -1)), {
  request: ([limits, by], epoch, expected) => {
    expected.limits = { ...limits, version: Math.max(0, expected.limits.version + by) };
    return { epoch, limits: expected.limits };
  },
  spec: (spec, { epoch, limits }) => spec.setLimits(epoch, limits),
  redis: (counters, { epoch, limits }) => counters.setLimits(epoch, limits),
});

/** Opens with the ledger's rows, under a raised epoch, the present one or an older one. */
const opens = fc.tuple(fc.constantFrom("raised", "same", "older"), fc.constantFrom(0, 1, 9)).map(
  ([how, keep]) =>
    new Command(
      () => `open(${fc.stringify([how, keep])})`,
      async (expected, real) => {
        if (how === "older" && (expected.remembered === null || expected.epoch < 2)) return undefined;
        // A lost domain is opened only under a raised epoch, since its fences are unknown.
        if (how === "raised" || (how === "same" && (expected.lost || expected.epoch === 0))) expected.epoch += 1;
        const epoch = how === "older" ? expected.epoch - 1 : expected.epoch;
        const kept = new Set([...new Set(expected.rows.map(({ fence }) => fence))].slice(0, keep));
        const rows = expected.rows.filter(({ fence }) => kept.has(fence)).map((row) => ({ ...row, confirmed: true }));
        await real.counters.open(epoch, { rows: rows.map(ledgerRow), limits: expected.limits });
        expected.open(epoch, rows);
        return undefined;
      },
    ),
);

/** Loses keys, which closes the domain. Usually opens it again. */
const disasters = fc.tuple(fc.constantFrom("flush", ...KEYS), fc.constantFrom(true, true, true, false)).map(
  ([what, reopens]) =>
    new Command(
      () => `lose(${fc.stringify([what, reopens])})`,
      async (expected, real) => {
        const { counters, server } = real;
        if (what === "flush") await server.admin.flushall();
        else await server.admin.del(`${TAG}:${what}`);
        if (what === "flush" || expected.epoch > 0) expected.lose(what === "flush" || what === "meta");
        if (!reopens) return undefined;
        assert.deepEqual((await look(expected, real)).slice(0, 3), [[], [], []]);
        expected.epoch += 1;
        await counters.open(expected.epoch, { rows: expected.rows.map(ledgerRow), limits: expected.limits });
        expected.open(expected.epoch, expected.rows);
        return undefined;
      },
    ),
);

/** Most steps run while no key is lost. */
const often = [
  ...[
    grants,
    grants,
    grants,
    batches,
    batches,
    repeats,
    frees,
    frees,
    frees,
    givesBack,
    shrinks,
    shrinks,
    turnOvers,
    turnOvers,
    stands,
    stands,
    stands,
    stands,
  ],
  ...[confirms, renewals, leaves, ticks, ticks, ticks, reports, reports, limitChanges, limitChanges, opens],
];
const usual = [...often, ...often];
const histories = fc.commands([...usual, disasters], {
  maxCommands: 30,
  size: "max",
  ...(REPLAY.replayPath === undefined ? {} : { replayPath: REPLAY.replayPath }),
});

describe("histories of counters", { skip: !hasRedisServer() }, () => {
  let server: RedisServer;
  let proxy: CuttingProxy;
  let counters: RedisCounters;
  let subscriber: Redis;
  before(async () => {
    server = await RedisServer.start();
    proxy = await CuttingProxy.start(server.port);
    // The lost answer must be that of the call, not that the script is unknown.
    for (const { text } of Object.values(SCRIPTS)) await server.admin.script("LOAD", text);
    counters = await redisCounters({
      url: proxy.url,
      installation: "histories",
      domain: "default",
      reconnectMsMin: 1,
      onError: () => undefined,
      onWarning: (message) => assert.fail(message),
    });
    subscriber = new Redis(server.port, "127.0.0.1");
    await subscriber.subscribe(CHANNEL);
  });
  after(async () => {
    subscriber.disconnect();
    await counters.close();
    await proxy.stop();
    await server.stop();
  });

  /** Returns all offers published so far. A last message marks their end. */
  async function published(offers: readonly string[]): Promise<readonly string[]> {
    const heard = new Promise<void>((resolve) => {
      const listener = (_: string, message: string) => {
        if (message !== "the end") return;
        subscriber.off("message", listener);
        resolve();
      };
      subscriber.on("message", listener);
    });
    await server.admin.publish(CHANNEL, "the end");
    await heard;
    return offers.map((offer) => JSON.parse(offer) as string);
  }

  test("Redis answers every step of every history as the specification does", async () => {
    const property = fc.asyncProperty(some.limits, histories, async (first, commands) => {
      await server.admin.flushall();
      const offers: string[] = [];
      const hear = (_: string, message: string) => {
        if (message !== "the end") offers.push(message);
      };
      subscriber.on("message", hear);
      const expected = new Expected(first);
      expected.epoch = 1;
      try {
        await usable(counters);
        await counters.open(1, { rows: [], limits: expected.limits });
        expected.open(1, []);
        await fc.asyncModelRun(() => ({ model: expected, real: { counters, server, proxy } }), commands);
        assert.deepEqual(await published(offers), expected.offers);
      } finally {
        subscriber.off("message", hear);
        proxy.cutNothing();
      }
    });
    const { seed, path } = REPLAY;
    const replayed = path === undefined ? {} : { path, endOnFailure: true };
    const parameters = { numRuns: HISTORIES, ...(seed === undefined ? {} : { seed }), ...replayed };
    const run = await fc.check(property, parameters);
    if (!run.failed) return;
    const [, replayPath] = /replayPath="([^"]*)"/.exec(String(run.counterexample?.[1])) ?? [];
    const replay = JSON.stringify({ seed: run.seed, path: run.counterexamplePath, replayPath });
    assert.fail(`replay with GANGWAY_REDIS_REPLAY='${replay}'\n${fc.defaultReportMessage(run)}\n${run.errorInstance}`);
  });
});
