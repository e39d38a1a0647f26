import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer, type RedisServer } from "../support/redis-server.ts";
import type { ServeChild } from "../support/serve-process.ts";
import { type Combination, conserve, type Scene, type Strike } from "./conserve.ts";

const server = await postgresServer();
const SMALL = { servers: 2, quota: 10, callers: 48, callsEach: 8 };
/** This many grants and releases show that the domain is open again. */
const MORE = 10;

/** The faults, each under load. After each of them the domain opens again without help. */
const strikes: Record<string, { topology: Combination["topology"]; strike: Strike; isUpgraded?: boolean }> = {
  "Redis is flushed, loses single keys, forgets its scripts, restarts with nothing and is killed": {
    topology: "standalone",
    strike: async (scene) => {
      const { redis, more } = scene;
      const [only] = redis.all() as [RedisServer];
      await only.admin.flushall();
      await more(MORE);
      for (const key of await keysOf(only)) {
        await only.admin.del(key);
        await more(MORE);
      }
      await only.admin.script("FLUSH");
      await more(MORE);
      await only.kill("SIGTERM");
      await only.start();
      await more(MORE);
      await only.kill("SIGKILL");
      await only.start();
      await more(MORE);
    },
  },
  "a primary fails over to a lagging replica, which loses a lowered limit": {
    topology: "sentinel",
    strike: async (scene) => {
      await stopReplication(scene);
      await scene.setQuota("conserve/b", 3);
      await scene.more(MORE);
      await scene.redis.losePrimary();
      await letReplicate(scene);
      await scene.more(MORE);
      await scene.setQuota("conserve/b", SMALL.quota);
      await scene.more(MORE);
    },
  },
  "a primary of a Redis Cluster is killed": {
    topology: "cluster",
    strike: async ({ redis, more }) => {
      await redis.losePrimary();
      await more(MORE);
    },
  },
  "one of several servers is killed, and the others continue": {
    topology: "standalone",
    strike: async ({ children, more }) => {
      await children[0]?.end("SIGKILL");
      await more(MORE);
    },
  },
  "two versions of the scripts are in use, and Redis sometimes forgets both": {
    topology: "standalone",
    isUpgraded: true,
    strike: async ({ redis, more }) => {
      const [only] = redis.all() as [RedisServer];
      for (let time = 0; time < 3; time += 1) {
        await only.admin.script("FLUSH");
        await more(MORE);
      }
    },
  },
  "a server is stopped until others declare it dead, and then continues": {
    topology: "standalone",
    strike: async ({ db, children, more }) => {
      const [frozen] = children as [ServeChild];
      frozen.freeze();
      await waitUntil("it is no longer a member", async () => {
        const members = await db.query<{ name: string }>("select name from workers");
        return !members.some(({ name }) => name.includes(`/${frozen.child.pid}/`));
      });
      frozen.thaw();
      await more(MORE);
    },
  },
};

describe("no token is lost and no limit exceeded", { skip: server === null || !hasRedisServer() }, () => {
  for (const [at, [name, { strike, ...how }]] of Object.entries(strikes).entries()) {
    test(`while ${name}`, async (t) => {
      const outcome = await conserve(server ?? "", { ...SMALL, ...how, seed: at + 1 }, strike);
      t.diagnostic(JSON.stringify(outcome));
      assert.ok(outcome.granted > MORE && outcome.released > MORE && outcome.looks > MORE);
    });
  }
});

function keysOf({ admin }: RedisServer): Promise<readonly string[]> {
  return admin.keys("{gangway:*:default}:*");
}

/** Cuts replicas off from their primary, and keeps them from connecting again. */
async function stopReplication({ redis }: Scene): Promise<void> {
  const primary = await redis.primary();
  for (const { admin } of redis.all()) await admin.config("SET", "masteruser", "nobody", "masterauth", "wrong");
  await primary.admin.call("CLIENT", "KILL", "TYPE", "replica");
}

async function letReplicate({ redis }: Scene): Promise<void> {
  for (const { admin } of redis.all()) await admin.config("SET", "masteruser", "", "masterauth", "");
}
