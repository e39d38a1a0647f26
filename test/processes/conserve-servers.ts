import { waitUntil } from "../support/bounded.ts";
import { RedisClusterServers } from "../support/redis-cluster.ts";
import { SentinelServers } from "../support/redis-sentinels.ts";
import { RedisServer } from "../support/redis-server.ts";

export type Topology = "standalone" | "cluster" | "sentinel";

/** A Redis, the variables by which a service finds it, and the faults that a test can cause. */
export type RedisUnderTest = {
  readonly env: Readonly<Record<string, string>>;
  /** The server that now holds the domain's counters. */
  readonly primary: () => Promise<RedisServer>;
  /** Servers that answer queries for keys. */
  readonly all: () => readonly RedisServer[];
  /** Kills the primary. Another server takes over, or the same one returns empty. */
  readonly losePrimary: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** The permissions that docs/operating.md names. The service needs no others. */
export const ACL_RULES = ["~{gangway:*", "&{gangway:*", "+@all", "-@dangerous", "+info", "+cluster|slots"];

export async function startRedis(topology: Topology): Promise<RedisUnderTest> {
  if (topology === "cluster") return startCluster();
  return topology === "sentinel" ? startSentinels() : startStandalone();
}

async function startStandalone(): Promise<RedisUnderTest> {
  const user = ["--user", "gangway", "on", ">secret", ...ACL_RULES];
  const server = await RedisServer.start(user);
  return {
    env: { REDIS_URL: server.url, REDIS_USERNAME: "gangway", REDIS_PASSWORD: "secret" },
    primary: async () => server,
    all: () => [server],
    losePrimary: async () => {
      await server.kill();
      await server.start();
    },
    stop: () => server.stop(),
  };
}

async function startCluster(): Promise<RedisUnderTest> {
  const cluster = await RedisClusterServers.start();
  const primary = async () => {
    let key: string | undefined;
    await waitUntil("a node of the Redis cluster holds a key of the domain", async () => {
      for (const { admin } of cluster.running) key ??= (await admin.keys("{gangway:*:default}:*"))[0];
      return key !== undefined;
    });
    return cluster.ownerOf(key as unknown as string);
  };
  return {
    env: { REDIS_URL: cluster.url },
    primary,
    all: () => cluster.running,
    losePrimary: async () => (await primary()).kill(),
    stop: () => cluster.stop(),
  };
}

async function startSentinels(): Promise<RedisUnderTest> {
  const servers = await SentinelServers.start();
  return {
    env: { REDIS_URL: servers.url },
    primary: () => servers.primary(),
    all: () => servers.servers.filter(({ runs }) => runs),
    losePrimary: async () => {
      const before = await servers.primary();
      await before.kill();
      await servers.switchedFrom(before);
    },
    stop: () => servers.stop(),
  };
}
