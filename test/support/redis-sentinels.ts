import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";
import type { Redis } from "ioredis";
import { RedisServer } from "./redis-server.ts";

const NAME = "gangway-primary";
/** Also decides which replicas may follow: their link to the primary was lost at most ten times as long before it was. */
const DOWN_AFTER_MS = 1_500;

export type SentinelOptions = {
  /** What the sentinels ask for. */
  readonly password?: string;
  /** All of them speak TLS alone. */
  readonly tls?: { readonly args: readonly string[]; readonly admin: ConnectionOptions };
};

/** A primary with two replicas, and three sentinels that watch over them. */
export class SentinelServers {
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];

  private constructor(servers: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  static async start(given: SentinelOptions = {}): Promise<SentinelServers> {
    const { args = [], admin } = given.tls ?? {};
    const fast = ["--repl-diskless-sync-delay", "0", ...args];
    const variant = admin === undefined ? {} : { tls: admin };
    const primary = await RedisServer.start(fast, variant);
    const replicaOf = ["--replicaof", "127.0.0.1", `${primary.port}`];
    const replicas: RedisServer[] = [];
    for (let at = 0; at < 2; at += 1) replicas.push(await RedisServer.start([...fast, ...replicaOf], variant));
    for (const { admin } of replicas) {
      while (!(await admin.info("replication")).includes("master_link_status:up")) await sleep(20);
    }
    const sentinels: RedisServer[] = [];
    for (let at = 0; at < 3; at += 1) sentinels.push(await startSentinel(primary.port, given));
    // They look at roles every ten seconds otherwise, and set them right after eight. Redis 6.2 cannot be told.
    for (const { admin } of sentinels) {
      const faster = ["INFO-PERIOD", "300", "PUBLISH-PERIOD", "300"];
      await admin.call("SENTINEL", "DEBUG", ...faster).catch(() => undefined);
    }
    for (const { admin } of sentinels) {
      while (!/slaves=2,sentinels=3/.test(await admin.info("sentinel"))) await sleep(20);
    }
    return new SentinelServers([primary, ...replicas], sentinels);
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${NAME}`;
  }

  /** Who is the primary, as the sentinels say. */
  async primary(): Promise<RedisServer> {
    const sentinel = this.sentinels.find(({ runs }) => runs) as RedisServer;
    const [, port] = (await sentinel.admin.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)) as [string, string];
    const primary = this.servers.find((server) => server.port === Number(port));
    if (primary === undefined) throw new Error(`nobody listens on ${port}`);
    return primary;
  }

  /** Resolves once another server than that one is the primary. */
  async switchedFrom(before: RedisServer): Promise<RedisServer> {
    for (;;) {
      const primary = await this.primary();
      if (primary !== before && (await primary.admin.info("replication")).includes("role:master")) return primary;
      await sleep(20);
    }
  }

  /** Makes a replica the primary while the old one lives. Sentinels give up one that takes too long, and must be asked again. */
  async failOver(): Promise<void> {
    const { admin } = this.sentinels[0] as RedisServer;
    const before = await this.primary();
    while ((await this.primary()) === before) {
      await admin.call("SENTINEL", "FAILOVER", NAME).catch((error: unknown) => {
        // It has not looked at the replicas yet, or is about to change over.
        if (!(error instanceof Error && /^(NOGOODSLAVE|INPROG)/.test(error.message))) throw error;
      });
      do await sleep(50);
      while (await this.#isFailingOver(admin));
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  async #isFailingOver(sentinel: Redis): Promise<boolean> {
    const facts = (await sentinel.call("SENTINEL", "MASTER", NAME)) as readonly string[];
    return facts[facts.indexOf("flags") + 1]?.includes("failover_in_progress") === true;
  }
}

function startSentinel(primaryPort: number, { password, tls }: SentinelOptions): Promise<RedisServer> {
  const lines = [
    `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 3000`,
  ];
  if (password !== undefined) lines.push(`requirepass ${password}`, `sentinel sentinel-pass ${password}`);
  return RedisServer.start(tls?.args ?? [], {
    sentinelConfig: `${lines.join("\n")}\n`,
    ...(tls && { tls: tls.admin }),
    ...(password !== undefined && { password }),
  });
}
