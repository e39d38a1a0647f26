import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import { RedisRefusedError } from "../../src/adapters/counters/redis/connection.ts";
import { type RedisCounters, redisCounters } from "../../src/adapters/counters/redis/redis-counters.ts";
import { GRANTS_MAX } from "../../src/core/quota/allocations.ts";
import type { Allocation, Counters, Holder, LedgerRow } from "../../src/core/quota/counters.ts";
import { SERVED_MAX } from "../../src/core/quota/domain-state.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { ceilings } from "../tokens/limits.ts";
import { allHeld, canonicalHeld, canonicalSums } from "../tokens/sums.ts";

const MAX = Number.MAX_SAFE_INTEGER;
const ALLOCATION: Allocation = {
  pool: "gpu/h100",
  token: "t",
  amount: 1,
  project: "p",
  namespace: "n",
  queue: "q",
  caps: { project: null, namespace: null },
  leaseMs: null,
};
const BY: Holder = { kind: "admission", jobUid: "job", admission: 1 };
const LIMITS = ceilings([{ queue: "q", pool: "gpu/h100", limit: 4 }]);
const ref = (fence: bigint, token = "t") => ({ pool: "gpu/h100", token, fence });

describe("counters in Redis", { skip: !hasRedisServer() }, () => {
  let server: RedisServer;
  const opened: RedisCounters[] = [];
  before(async () => {
    server = await RedisServer.start();
  });
  after(async () => {
    for (const counters of opened) await counters.close();
    await server.stop();
  });

  /** Opens counters of a new installation, unless one is given. */
  async function connected(given: Partial<Parameters<typeof redisCounters>[0]> = {}): Promise<RedisCounters> {
    const counters = await redisCounters({
      url: server.url,
      installation: randomUUID(),
      domain: "default",
      reconnectMsMin: 1,
      onError: () => undefined,
      onWarning: (message) => assert.fail(message),
      ...given,
    });
    opened.push(counters);
    return counters;
  }

  const grant = (counters: Pick<Counters, "grant">, epoch: number, allocation: Partial<Allocation> = {}) =>
    counters.grant({ epoch, holder: BY, priority: 0, waiter: null, allocations: [{ ...ALLOCATION, ...allocation }] });

  test("they are closed until they are opened", async () => {
    const counters = await connected();
    assert.deepEqual(await grant(counters, 1), { kind: "closed" });
    assert.equal(await counters.free(1, [ref(1n)]), "closed");
    assert.equal(await counters.setLimits(1, LIMITS), "closed");
    assert.deepEqual(await counters.used(), []);
  });

  test("fences are exact where doubles are not, up to the last epoch that the ledger can name", async () => {
    for (const epoch of [1, 2 ** 21 + 1, 2 ** 31 - 1]) {
      const counters = await connected();
      const base = BigInt(epoch) * 2n ** 32n;
      const row: LedgerRow = { ...ALLOCATION, token: "old", holder: BY, fence: base + 2n ** 32n - 4n };
      await counters.open(epoch, { rows: [row], limits: LIMITS });
      for (const counter of [3n, 2n, 1n]) {
        const fence = base + 2n ** 32n - counter;
        assert.deepEqual(await grant(counters, epoch, { token: `${counter}` }), {
          kind: "granted",
          fence,
          held: false,
          confirmed: false,
          expiresInMs: [null],
        });
        assert.deepEqual(await counters.free(epoch, [ref(fence, `${counter}`)]), ["freed"]);
      }
      assert.deepEqual(await grant(counters, epoch, { token: "next" }), { kind: "closed" });
    }
  });

  test("amounts are exact up to 2^53 - 1", async () => {
    const counters = await connected();
    await counters.open(1, { rows: [], limits: ceilings([{ queue: "q", pool: "gpu/h100", limit: MAX }]) });
    assert.equal((await grant(counters, 1, { token: "a", amount: MAX - 2 })).kind, "granted");
    assert.equal((await grant(counters, 1, { token: "b", amount: 1 })).kind, "granted");
    assert.deepEqual(await grant(counters, 1, { token: "c", amount: 2 }), {
      kind: "exhausted",
      index: 0,
      violation: {
        scope: { kind: "pool", pool: "gpu/h100" },
        used: MAX - 1,
        limit: MAX,
        requested: 2,
        reservedForHead: 0,
      },
    });
    assert.equal((await grant(counters, 1, { token: "c", amount: 1 })).kind, "granted");
    assert.ok((await counters.used()).every(({ used }) => used === MAX));
  });

  test("an invalid amount throws", async () => {
    const counters = await connected();
    await counters.open(1, { rows: [], limits: LIMITS });
    for (const amount of [0, -1, 1.5, Number.NaN, MAX + 1]) {
      await assert.rejects(grant(counters, 1, { amount }), /the amount of t/);
    }
  });

  test("names with any characters stay distinct and come back unchanged", async () => {
    const counters = await connected();
    const spec = inProcessCounters();
    const names = [
      "",
      "load",
      "a\u0000b",
      '"],["',
      "\ud800",
      "\udc00",
      "é",
      "e\u0301",
      "日本",
      "{x}",
      "a:b",
      "\\",
      "\u2028",
    ];
    const limits = ceilings(names.flatMap((queue) => names.map((pool) => ({ queue, pool, limit: 10 }))));
    for (const each of [counters, spec]) await each.open(1, { rows: [], limits: limits });
    for (const [at, name] of names.entries()) {
      const other = names[(at + 1) % names.length] ?? "";
      const allocation = { token: name, pool: name, queue: other, project: name, namespace: other };
      assert.deepEqual(await grant(counters, 1, allocation), await grant(spec, 1, allocation), JSON.stringify(name));
      assert.deepEqual(await grant(counters, 1, allocation), await grant(spec, 1, allocation), JSON.stringify(name));
    }
    assert.deepEqual(canonicalSums(await counters.used()), canonicalSums(await spec.used()));
    assert.deepEqual(await momentOf(counters, []), await momentOf(spec, []));
  });

  test("one moment shows all sums, every unconfirmed token, and the asked tokens that are held", async () => {
    const counters = await connected();
    const spec = inProcessCounters();
    const limits = ceilings([{ queue: "q", pool: ALLOCATION.pool, limit: 10 }]);
    for (const each of [counters, spec]) {
      await each.open(1, { rows: [], limits: { ...limits, version: 7 } });
      for (const token of ["a", "b", "c"]) await grant(each, 1, { token, queue: "q" });
      const refs = ["a", "b"].map((token, at) => ({ pool: ALLOCATION.pool, token, fence: 2n ** 32n + BigInt(at + 1) }));
      await each.confirm(1, refs);
      const tokens = ["b", "none", "c"].map((token) => ({ pool: ALLOCATION.pool, token }));
      const { held, ...rest } = await momentOf(each, tokens);
      assert.deepEqual(
        Object.values(held).map(({ token, confirmed }) => [token, confirmed]),
        [
          ["b", true],
          ["c", false],
        ],
      );
      assert.deepEqual([rest.limitsVersion, Object.values(rest.sums)], [7, [3, 3, 3, 3]]);
      assert.equal(await each.moment(2, []), "closed");
    }
  });

  test("a large ledger is loaded in steps, and each of its grants can be repeated and freed", async () => {
    const counters = await connected();
    const spec = inProcessCounters();
    const rows: LedgerRow[] = Array.from({ length: 6_000 }, (_, at) => ({
      ...ALLOCATION,
      token: `t${at}`,
      amount: 1 + (at % 7),
      queue: `q${at % 900}`,
      holder: { kind: "admission", jobUid: `job${at >> 1}`, admission: 1 },
      fence: BigInt(at >> 1) + 2n ** 32n,
    }));
    const limits = ceilings(
      Array.from({ length: 900 }, (_, at) => ({ queue: `q${at}`, pool: ALLOCATION.pool, limit: at })),
    );
    for (const each of [counters, spec]) await each.open(2, { rows: rows, limits: limits });
    for (const at of [0, 1_000, 5_998]) {
      const allocations = rows.slice(at, at + 2).map((row) => ({ ...row, caps: ALLOCATION.caps }));
      const request = { epoch: 2, allocations, priority: 0, waiter: null };
      const holder: Holder = rows[at]?.holder ?? BY;
      assert.deepEqual(await counters.grant({ ...request, holder }), await spec.grant({ ...request, holder }));
      assert.deepEqual(await counters.free(2, rows.slice(at, at + 2)), ["freed", "freed"]);
      assert.deepEqual(await spec.free(2, rows.slice(at, at + 2)), ["freed", "freed"]);
    }
    assert.deepEqual(canonicalSums(await counters.used()), canonicalSums(await spec.used()));
  });

  test("all keys of a domain share one hash tag, and two domains share no key", async () => {
    const installation = randomUUID();
    const one = await connected({ installation, keyPrefix: "ours" });
    const two = await connected({ installation, domain: "other", keyPrefix: "ours" });
    await one.open(1, { rows: [], limits: LIMITS });
    await two.open(7, { rows: [], limits: LIMITS });
    assert.equal((await grant(one, 1, { amount: 4 })).kind, "granted");
    assert.equal((await grant(two, 7, { amount: 4 })).kind, "granted");
    const keys = await server.admin.keys(`{ours:${installation}:*`);
    assert.equal(keys.length, 18);
    for (const key of keys) assert.match(key, new RegExp(`^\\{ours:${installation}:(default|other)\\}:[a-z]+$`));
    await assert.rejects(connected({ keyPrefix: "a}b" }), /braces/);
  });

  test("a server that forgot its scripts gets them again", async () => {
    const counters = await connected();
    await counters.open(1, { rows: [], limits: LIMITS });
    await server.admin.script("FLUSH");
    assert.equal((await grant(counters, 1)).kind, "granted");
  });

  test("one call grants many requests with many allocations each, as the specification does", async () => {
    const limits = ceilings([{ queue: "q", pool: "gpu/h100", limit: 1_000 }]);
    const counters = await connected();
    const spec = inProcessCounters();
    for (const each of [counters, spec]) await each.open(1, { rows: [], limits });
    const requests = Array.from({ length: GRANTS_MAX }, (_, at) => ({
      holder: BY,
      allocations: Array.from({ length: 40 }, (_, part) => ({ ...ALLOCATION, token: `t${at}/${part}`, amount: 1 })),
      priority: 0,
      waiter: null,
      chain: at % 2 === 0 ? "even" : null,
      stops: false,
    }));
    const outcomes = await counters.grantAll(1, requests);
    assert.deepEqual(outcomes, await spec.grantAll(1, requests));
    assert.equal(outcomes.filter(({ kind }) => kind === "granted").length, 25);
    assert.deepEqual(canonicalSums(await counters.used()), canonicalSums(await spec.used()));
  });

  test("many grants at once never exceed a limit", async () => {
    const installation = randomUUID();
    const callers = await Promise.all(Array.from({ length: 4 }, () => connected({ installation })));
    await callers[0]?.open(1, { rows: [], limits: ceilings([{ queue: "q", pool: "gpu/h100", limit: 10 }]) });
    const outcomes = await Promise.all(
      Array.from({ length: 128 }, (_, at) => grant(callers[at % 4]!, 1, { token: `t${at}` })),
    );
    assert.equal(outcomes.filter(({ kind }) => kind === "granted").length, 10);
    assert.equal(outcomes.filter(({ kind }) => kind === "exhausted").length, 118);
  });

  for (const lost of ["meta", "limits", "sums", "tokens", "waiters", "line", "expiries", "unconfirmed", "stands"]) {
    test(`the loss of the key ${lost} closes the domain until the next open`, async () => {
      const installation = randomUUID();
      const counters = await connected({ installation });
      await counters.open(1, { rows: [], limits: LIMITS });
      await grant(counters, 1);
      assert.equal(await server.admin.del(`{gangway:${installation}:default}:${lost}`), 1);
      assert.deepEqual(await grant(counters, 1, { token: "u" }), { kind: "closed" });
      assert.equal(await counters.free(1, [ref(2n ** 32n + 1n)]), "closed");
      assert.equal(await counters.setLimits(1, LIMITS), "closed");
      assert.deepEqual(await counters.used(), []);
      await counters.open(2, { rows: [], limits: LIMITS });
      assert.equal((await grant(counters, 2)).kind, "granted");
    });
  }

  test("keys of another version's scripts are closed until the next open", async () => {
    const installation = randomUUID();
    const counters = await connected({ installation });
    await counters.open(1, { rows: [], limits: LIMITS });
    await server.admin.hset(`{gangway:${installation}:default}:meta`, "layout", "1");
    assert.deepEqual(await grant(counters, 1), { kind: "closed" });
    assert.deepEqual(await counters.used(), []);
    await counters.open(2, { rows: [], limits: LIMITS });
    assert.equal((await grant(counters, 2)).kind, "granted");
  });

  test("contradicting keys close the domain, and no sum falls below 0", async () => {
    for (const [key, field] of [["sums", JSON.stringify(["pool", ALLOCATION.pool])]] as const) {
      const installation = randomUUID();
      const counters = await connected({ installation });
      await counters.open(1, { rows: [], limits: LIMITS });
      await grant(counters, 1);
      assert.equal(await server.admin.hdel(`{gangway:${installation}:default}:${key}`, field), 1);
      assert.equal(await counters.free(1, [ref(2n ** 32n + 1n)]), "closed");
      assert.deepEqual(await grant(counters, 1, { token: "u" }), { kind: "closed" });
    }
  });

  test("a load fails if a newer load begins, and if its keys are lost", async () => {
    const installation = randomUUID();
    const [one, two] = [await connected({ installation }), await connected({ installation })];
    const rows = Array.from({ length: 4_000 }, (_, at) => ({
      ...ALLOCATION,
      token: `${at}`,
      holder: BY,
      fence: BigInt(at),
    }));
    const slow = assert.rejects(one.open(1, { rows: rows, limits: LIMITS }), UnavailableError);
    const meta = `{gangway:${installation}:default}:meta`;
    await waitUntil("the load begins", async () => (await server.admin.exists(meta)) > 0, { pollMs: 1 });
    await two.open(2, { rows: [], limits: LIMITS });
    await slow;
    assert.equal((await grant(two, 2)).kind, "granted");
    await one.open(1, { rows: [], limits: LIMITS });
    assert.equal((await grant(one, 2, { token: "u" })).kind, "granted");

    const again = assert.rejects(one.open(3, { rows: rows, limits: LIMITS }), UnavailableError);
    await waitUntil("the next load begins", async () => (await server.admin.hget(meta, "epoch")) === "3", {
      pollMs: 1,
    });
    await server.admin.flushall();
    await again;
    assert.deepEqual(await grant(one, 3), { kind: "closed" });
  });

  test("a freed token goes to the head of the waiting line, which gets an offer on any connection", async () => {
    const installation = randomUUID();
    const [one, two] = [await connected({ installation }), await connected({ installation })];
    const pools = LIMITS.pools.map((of) => ({ ...of, quota: 4 }));
    await one.open(1, { rows: [], limits: { ...LIMITS, pools } });
    const heard: string[] = [];
    const stop = two.onOffer((waiter) => void heard.push(waiter));
    await subscribed(server, 1);
    assert.equal((await grant(one, 1, { amount: 4 })).kind, "granted");
    const allocation = { ...ALLOCATION, token: "next", amount: 3 };
    const stand = {
      epoch: 1,
      waiter: "w/\u{1f600}",
      holder: BY,
      allocations: [allocation],
      priority: 0,
      sinceMs: 1,
      grants: true,
    };
    const waiting = await two.stand(stand);
    assert.ok(waiting.kind === "waiting" && waiting.position === 1 && waiting.violation?.scope.kind === "pool");
    const views = [{ waiter: stand.waiter, pool: ALLOCATION.pool, holder: BY, amount: 3, priority: 0, sinceMs: 1 }];
    assert.deepEqual(await one.waiting(), views);
    assert.deepEqual(await one.free(1, [ref(2n ** 32n + 1n)]), ["freed"]);
    await waitUntil("an offer is heard", () => heard.length > 0, { pollMs: 1 });
    assert.deepEqual(heard, [stand.waiter]);
    const granted = await two.stand(stand);
    assert.ok(granted.kind === "granted" && granted.held && !granted.confirmed);
    stop();
    await subscribed(server, 0);
  });

  test("held tokens are read in pages, each token at least once", async () => {
    const counters = await connected();
    const rows = Array.from({ length: 2_500 }, (_, at) => ({
      ...ALLOCATION,
      token: `${at}`,
      holder: BY,
      fence: BigInt(at),
    }));
    const ledger = rows.map(({ caps: _, ...row }) => ({ ...row, leaseMs: 5_000 }));
    await counters.open(1, { rows: ledger, limits: LIMITS });
    const first = await counters.held(null, 100);
    assert.ok(first.next !== null && first.tokens.length < 1_000);
    const expected = ledger.map((row) => ({ ...row, confirmed: true }));
    assert.deepEqual(canonicalHeld(await allHeld(counters, 100)), canonicalHeld(expected));
  });

  test("a long waiting line is served in parts, and the next tick serves the rest", async () => {
    const counters = await connected();
    const spec = inProcessCounters();
    const wide = ceilings([{ queue: "q", pool: ALLOCATION.pool, limit: SERVED_MAX + 10 }]);
    for (const each of [counters, spec]) {
      await each.open(1, { rows: [], limits: wide });
      await grant(each, 1, { token: "all", amount: SERVED_MAX + 10 });
      for (let at = 0; at < SERVED_MAX + 10; at += 1) {
        const allocations = [{ ...ALLOCATION, token: `${at}` }];
        await each.stand({
          epoch: 1,
          waiter: `${at}`,
          holder: BY,
          allocations,
          priority: 0,
          sinceMs: at,
          grants: true,
        });
      }
      await each.free(1, [ref(2n ** 32n + 1n, "all")]);
      assert.equal((await each.waiting()).length, wide.queues.length * 10);
      await each.tick(1, { elapsedMs: 0, unconfirmedMs: 0, limit: 1 });
      assert.deepEqual(await each.waiting(), []);
    }
  });

  test("a lost answer throws UnavailableError, the call is not repeated, and the connection comes back", async () => {
    const proxy = await CuttingProxy.start(server.port);
    const counters = await connected({ url: proxy.url });
    await counters.open(1, { rows: [], limits: LIMITS });
    await grant(counters, 1, { token: "known script" });
    proxy.cutNext("request");
    await assert.rejects(grant(counters, 1, { token: "lost request" }), UnavailableError);
    await usable(counters);
    proxy.cutNext("answer");
    await assert.rejects(grant(counters, 1, { token: "lost answer" }), UnavailableError);
    await usable(counters);
    const queue = (await counters.used()).find(({ scope }) => scope.kind === "queue");
    assert.equal(queue?.used, 2);
    assert.equal((await grant(counters, 1, { token: "lost answer" })).kind, "granted");
    await counters.close();
    await proxy.stop();
  });

  test("a call to a frozen server ends after its timeout", async (t) => {
    const frozen = await RedisServer.start();
    t.after(() => frozen.stop());
    const counters = await connected({ url: frozen.url, commandTimeoutMs: 100 });
    await counters.open(1, { rows: [], limits: LIMITS });
    await frozen.admin.call("CLIENT", "PAUSE", "60000", "ALL");
    await assert.rejects(grant(counters, 1), UnavailableError);
    await counters.close();
  });

  test("a start without a reachable Redis fails with a plain reason, without the password", async () => {
    const gone = await RedisServer.start();
    await gone.stop();
    const url = gone.url.replace("127.0.0.1", "user:secret@127.0.0.1");
    await assert.rejects(connected({ url }), (error: Error) => {
      assert.ok(error instanceof UnavailableError);
      assert.match(error.message, new RegExp(`Redis at 127.0.0.1:${gone.port} cannot be used now: .*ECONNREFUSED`));
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    for (const url of ["localhost:6379", "http://localhost", "", "redis://"]) {
      await assert.rejects(connected({ url }), RedisRefusedError);
    }
  });

  test("a Redis that evicts keys is refused at start, and the error says what to set", async (t) => {
    const evicting = await RedisServer.start(["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    t.after(() => evicting.stop());
    await assert.rejects(connected({ url: evicting.url }), (error: Error) => {
      assert.ok(error instanceof RedisRefusedError);
      assert.match(
        error.message,
        /maxmemory-policy allkeys-lru, maxmemory 52428800 bytes.*set maxmemory-policy noeviction/,
      );
      return true;
    });
    await evicting.admin.config("SET", "maxmemory", "0");
    await (await connected({ url: evicting.url })).close();
  });

  test("a node of a Redis Cluster is refused at start", async (t) => {
    const node = await RedisServer.start(["--cluster-enabled", "yes"]);
    t.after(() => node.stop());
    await assert.rejects(connected({ url: node.url }), /is refused: it is a node of a Redis Cluster/);
  });

  test("a Redis that starts to evict keys is refused at the next connection, until it is configured", async (t) => {
    const turning = await RedisServer.start(["--maxmemory", "50mb"]);
    t.after(() => turning.stop());
    const errors: Error[] = [];
    const counters = await connected({ url: turning.url, onError: (error) => void errors.push(error) });
    await counters.open(1, { rows: [], limits: LIMITS });
    await turning.admin.config("SET", "maxmemory-policy", "allkeys-random");
    await turning.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const isRefused = () => errors.some((error) => error instanceof RedisRefusedError);
    await waitUntil("Redis is refused", isRefused, { pollMs: 1 });
    await assert.rejects(grant(counters, 1), /noeviction/);
    await turning.admin.config("SET", "maxmemory-policy", "noeviction");
    await usable(counters);
    assert.equal((await grant(counters, 1)).kind, "granted");
    await counters.close();
  });

  test("a full Redis refuses grants and loads, and still frees", async (t) => {
    const full = await RedisServer.start();
    t.after(() => full.stop());
    const counters = await connected({ url: full.url });
    await counters.open(1, { rows: [], limits: LIMITS });
    await grant(counters, 1, { token: "a" });
    await grant(counters, 1, { token: "b", amount: 2 });
    await full.admin.config("SET", "maxmemory", "1");
    await assert.rejects(grant(counters, 1), UnavailableError);
    assert.deepEqual(await counters.shrink(1, [{ ...ref(2n ** 32n + 2n, "b"), amount: 1 }]), ["shrunk"]);
    const from = { ...ref(2n ** 32n + 1n, "a"), kept: 0 };
    const { leaseMs: _lease, caps: _caps, ...heir } = { ...ALLOCATION, token: "heir" };
    const turn = { from, to: { ...heir, holder: { kind: "caller", name: "heir" } as const, fence: from.fence } };
    assert.deepEqual(await counters.turnOver(1, [turn]), ["turnedOver"]);
    assert.deepEqual(await counters.free(1, [{ ...from, token: "heir" }]), ["freed"]);
    assert.equal(await counters.report(1), "reported");
    assert.equal((await counters.tick(1, { elapsedMs: 1_000, unconfirmedMs: 0, limit: 1 })).kind, "ticked");
    assert.equal(await counters.confirm(1, [ref(2n ** 32n + 2n, "b")]), "confirmed");
    assert.equal(await counters.setLimits(1, LIMITS), "set");
    const queue = (await counters.used()).find(({ scope }) => scope.kind === "queue");
    assert.equal(queue?.used, 1);
    await assert.rejects(counters.open(2, { rows: [], limits: LIMITS }), UnavailableError);
    await full.admin.config("SET", "maxmemory", "0");
    assert.deepEqual(await grant(counters, 2), { kind: "closed" });
    await counters.close();
  });

  test("a user without INFO is refused at start, since restarts would go unnoticed", async () => {
    await server.admin.call("ACL", "SETUSER", "shy", "on", ">secret", "~*", "+@all", "-info");
    const url = server.url.replace("//", "//shy:secret@");
    await assert.rejects(connected({ url }), /is refused: its user may not run INFO.*allow \+info/);
  });

  test("a wrong password gives a plain reason that does not show it", async () => {
    await server.admin.call("ACL", "SETUSER", "known", "on", ">right", "~*", "+@all");
    const errors: Error[] = [];
    const url = server.url.replace("//", "//known:not-the-one@");
    const failing = connected({ url, onError: (error) => void errors.push(error) });
    await assert.rejects(failing, /cannot be used now: WRONGPASS/);
    assert.doesNotMatch(JSON.stringify(errors.map((error) => ({ ...error, message: error.message }))), /not-the-one/);
  });

  test("a restart of the server is noticed, even if it kept every key", async (t) => {
    const kept = await RedisServer.start();
    t.after(() => kept.stop());
    const counters = await connected({ url: kept.url });
    await counters.open(1, { rows: [], limits: LIMITS });
    await grant(counters, 1, { token: "a" });
    await kept.admin.save();
    await grant(counters, 1, { token: "b" });
    await kept.kill();
    await kept.start();
    assert.equal(await kept.admin.dbsize(), 9);
    await usable(counters);
    assert.deepEqual(await grant(counters, 1, { token: "c" }), { kind: "closed" });
    await counters.open(2, { rows: [], limits: LIMITS });
    assert.equal((await grant(counters, 2)).kind, "granted");
    await counters.close();
  });
});

async function momentOf(counters: Counters, tokens: Parameters<Counters["moment"]>[1]) {
  const moment = await counters.moment(1, tokens);
  assert.ok(moment !== "closed");
  const { used, limitsVersion, tokens: held } = moment;
  return { sums: canonicalSums(used), limitsVersion, held: canonicalHeld(held) };
}

/** Resolves when the server has this many channels of offers with listeners. */
async function subscribed(server: RedisServer, count: number): Promise<void> {
  const channels = async () => (await server.admin.pubsub("CHANNELS", "*:offers")) as string[];
  await waitUntil(`${count} channels are subscribed to`, async () => (await channels()).length === count, {
    pollMs: 1,
  });
}

/** Resolves when calls are answered again. */
function usable(counters: Pick<Counters, "used">): Promise<void> {
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
