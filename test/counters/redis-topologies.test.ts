import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, type TestContext, test } from "node:test";
import fc from "fast-check";
import type { RedisConnection } from "../../src/adapters/counters/redis/connection.ts";
import { slotOf } from "../../src/adapters/counters/redis/slots.ts";
import { waitUntil } from "../support/bounded.ts";
import { RedisClusterServers } from "../support/redis-cluster.ts";
import { SentinelServers } from "../support/redis-sentinels.ts";
import { hasRedisServer, type RedisServer } from "../support/redis-server.ts";
import { Callers, NOTE, noneTwice, openConnection } from "../tokens/calls.ts";

const skip = !hasRedisServer();

describe("Redis behind sentinels", { skip }, () => {
  let servers: SentinelServers;
  before(async () => {
    servers = await SentinelServers.start();
  });
  after(() => servers.stop());

  /** The faults of the primary. */
  const strikes: Record<string, (primary: RedisServer) => unknown> = {
    "hands over": () => servers.failOver(),
    "is killed": (primary) => primary.kill(),
    "is frozen": (primary) => primary.freeze(),
  };
  for (const [what, strike] of Object.entries(strikes)) {
    test(`when the primary ${what}, calls continue on the new one with its run id, and none runs twice`, async (t) => {
      const key = randomUUID();
      const callers = new Callers(await opened(t, { url: servers.url }), key);
      const before = await servers.primary();
      t.after(async () => {
        await callers.stop();
        await before.revive();
        await before.linked();
      });
      await callers.answeredMore(20);
      const than = new Set(callers.runs);
      await strike(before);
      await servers.switchedFrom(before);
      await callers.answeredByAnother(than);
      await callers.answeredMore(20);
      await callers.stop();
      // On a slow machine the sentinels may switch once more.
      assert.ok(callers.runs.size >= 2);
      noneTwice(await (await servers.primary()).admin.lrange(key, 0, -1));
    });
  }

  test("published messages arrive before and after a change of the primary", async (t) => {
    const connection = await opened(t, { url: servers.url });
    const channel = randomUUID();
    const heard = new Set<string>();
    const stop = connection.subscribe(channel, (message) => heard.add(message));
    // On a slow machine the sentinels may switch once more.
    const publish = async (message: string) => (await servers.primary()).admin.publish(channel, message);
    await untilHeard("first", heard, publish);
    const before = await servers.primary();
    await servers.failOver();
    await servers.switchedFrom(before);
    await untilHeard("second", heard, publish);
    stop();
  });

  test("a start without reachable sentinels fails with a plain reason", async () => {
    const url = "redis+sentinel://:secret@127.0.0.1:1,127.0.0.1:2/main";
    await assert.rejects(openConnection({ url }), (error: Error) => {
      assert.match(
        error.message,
        /^Redis main of the sentinels 127.0.0.1:1, 127.0.0.1:2 cannot be used now: All sentinels are unreachable/,
      );
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  test("a start with a name that the sentinels do not know fails with a plain reason", async () => {
    await assert.rejects(
      openConnection({ url: servers.url.replace(/[^/]+$/, "other") }),
      /cannot be used now: .*sentinel/i,
    );
  });

  test("sentinels get their own password", async (t) => {
    const guarded = await SentinelServers.start({ password: "for-sentinels" });
    t.after(() => guarded.stop());
    const sentinel = { username: null, password: "for-sentinels" };
    const callers = new Callers(await opened(t, { url: guarded.url, sentinel }), randomUUID(), 1);
    t.after(() => callers.stop());
    await callers.answeredMore(1);
    await assert.rejects(openConnection({ url: guarded.url }), /NOAUTH/);
  });
});

describe("a Redis Cluster", { skip }, () => {
  let cluster: RedisClusterServers;
  before(async () => {
    cluster = await RedisClusterServers.start();
  });
  after(() => cluster.stop());

  const connected = (t: TestContext) => opened(t, { url: cluster.url });

  test("slots equal those that Redis computes", async () => {
    const admin = cluster.nodes[0]?.admin;
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: fc.constantFrom("{", "}", "a", "ü", ":", "日") }), async (key) => {
        assert.equal(slotOf(key), await admin?.cluster("KEYSLOT", key));
      }),
      { numRuns: 300 },
    );
  });

  test("each key of many slots is served by its owner", async (t) => {
    const connection = await connected(t);
    const runs = new Set<string>();
    for (let at = 0; at < 30; at += 1) {
      const reply = (await connection.run(NOTE, [`{domain ${at}}:list`], (runId) => ["1", runId])) as [string, string];
      assert.equal(reply[0], reply[1]);
      runs.add(reply[1]);
    }
    assert.equal(runs.size, 3);
  });

  test("calls follow a slot to its new primary, and none arrives there with the old run id", async (t) => {
    const key = `{${randomUUID()}}:list`;
    const callers = new Callers(await connected(t), key);
    t.after(() => callers.stop());
    await callers.answeredMore(20);
    const owner = await cluster.ownerOf(key);
    const to = cluster.nodes.slice(0, 3).find((node) => node !== owner) as RedisServer;
    const than = new Set(callers.runs);
    await cluster.moveSlot(key, to);
    await callers.answeredByAnother(than);
    await callers.answeredMore(20);
    await callers.stop();
    assert.ok(callers.lost > 0, "calls to the old owner were refused");
    noneTwice(await to.admin.lrange(key, 0, -1));
  });

  for (const [what, strike] of [
    ["is killed", (node: RedisServer) => node.kill()],
    ["is frozen", (node: RedisServer) => node.freeze()],
  ] as const) {
    test(`when a primary ${what}, its replica serves its slots, and other slots are not affected`, async (t) => {
      const keys = await keysByOwner(cluster);
      const [[owner, key], [, elsewhere]] = keys as [[RedisServer, string], [RedisServer, string]];
      const connection = await connected(t);
      const callers = new Callers(connection, key);
      const others = new Callers(connection, elsewhere);
      const stop = () => Promise.all([callers.stop(), others.stop()]);
      t.after(async () => {
        await stop();
        await owner.revive();
        await owner.linked();
      });
      await callers.answeredMore(20);
      const than = new Set(callers.runs);
      await strike(owner);
      await callers.answeredByAnother(than);
      await callers.answeredMore(20);
      await stop();
      assert.equal(others.runs.size, 1);
      const now = await cluster.otherOwnerOf(key, owner);
      noneTwice(await now.admin.lrange(key, 0, -1));
    });
  }

  test("messages published on any node arrive, also after the subscribed connections were cut", async (t) => {
    const connection = await connected(t);
    const channel = randomUUID();
    const heard = new Set<string>();
    connection.subscribe(channel, (message) => heard.add(message));
    const [first] = cluster.running as [RedisServer];
    const publish = (message: string) => first.admin.publish(channel, message);
    await untilHeard("first", heard, publish);
    for (const { admin } of cluster.running) await admin.call("CLIENT", "KILL", "TYPE", "pubsub");
    await untilHeard("second", heard, publish);
  });

  test("a single seed is enough to find all nodes", async (t) => {
    const connection = await opened(t, { url: `redis+cluster://127.0.0.1:${cluster.nodes[4]?.port}` });
    const callers = new Callers(connection, randomUUID(), 1);
    t.after(() => callers.stop());
    await callers.answeredMore(2);
  });

  test("a primary that evicts keys is refused at start", async (t) => {
    const owner = await cluster.ownerOf("any");
    await owner.admin.config("SET", "maxmemory", "50mb");
    await owner.admin.config("SET", "maxmemory-policy", "allkeys-lru");
    await assert.rejects(connected(t), new RegExp(`127.0.0.1:${owner.port} is refused: it evicts keys`));
    await owner.admin.config("SET", "maxmemory-policy", "noeviction");
    await connected(t);
  });

  test("a standalone server is refused under the URL of a cluster", async (t) => {
    const sentinels = await SentinelServers.start();
    t.after(() => sentinels.stop());
    const url = `redis+cluster://127.0.0.1:${sentinels.servers[0]?.port}`;
    await assert.rejects(openConnection({ url }), /is refused: it is not a node of a Redis Cluster/);
  });
});

/** Returns one key for each of two primaries. */
async function keysByOwner(cluster: RedisClusterServers): Promise<readonly (readonly [RedisServer, string])[]> {
  const keys = new Map<RedisServer, string>();
  while (keys.size < 2) {
    const key = `{${randomUUID()}}:list`;
    keys.set(await cluster.ownerOf(key), key);
  }
  return [...keys];
}

/** A connection that is closed when its test ends. */
async function opened(t: TestContext, given: Parameters<typeof openConnection>[0]): Promise<RedisConnection> {
  const connection = await openConnection(given);
  t.after(() => connection.close());
  return connection;
}

async function untilHeard(
  message: string,
  heard: ReadonlySet<string>,
  publish: (message: string) => Promise<unknown>,
): Promise<void> {
  const isHeard = async () => {
    await publish(message);
    return heard.has(message);
  };
  await waitUntil(`${message} is heard`, isHeard, { pollMs: 10 });
}
