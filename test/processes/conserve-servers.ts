import { setTimeout as sleep } from "node:timers/promises";
import { RedisClusterServers } from "../support/redis-cluster.ts";
import { SentinelServers } from "../support/redis-sentinels.ts";
import { RedisServer } from "../support/redis-server.ts";

export type Topology = "standalone" | "cluster" | "sentinel";

/** Redis as a service is told of it, with what may happen to it. */
export type RedisUnderTest = {
  readonly env: Readonly<Record<string, string>>;
  /** The server that holds the counters of the domain now. */
  readonly primary: () => Promise<RedisServer>;
  /** Servers that can be asked for keys. */
  readonly all: () => readonly RedisServer[];
  /** Ends the primary for good; another takes over, or it comes back with nothing. */
  readonly losePrimary: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** What README.md tells an operator to allow: the service does with no more. */
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
    for (;;) {
      for (const { admin } of cluster.running) {
        const [key] = await admin.keys("{gangway:*:default}:*");
        if (key !== undefined) return cluster.ownerOf(key);
      }
      await sleep(20);
    }
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
