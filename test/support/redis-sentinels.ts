import type { ConnectionOptions } from "node:tls";
import type { Redis } from "ioredis";
import { waitUntil } from "./bounded.ts";
import { RedisServer } from "./redis-server.ts";

const NAME = "gangway-primary";
/** A sentinel also promotes only replicas that lost their link at most ten times this before the primary was down. */
const DOWN_AFTER_MS = 1_500;
const POLL_MS = 20;

export type SentinelOptions = {
  /** Clients of the sentinels need it. */
  readonly password?: string;
  /** Servers and sentinels accept only TLS. */
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
    for (const replica of replicas) await replica.linked();
    const sentinels: RedisServer[] = [];
    for (let at = 0; at < 3; at += 1) sentinels.push(await startSentinel(primary.port, given));
    // By default sentinels check roles every ten seconds and correct them after eight. Redis 6.2 refuses the command.
    for (const { admin } of sentinels) {
      const faster = ["INFO-PERIOD", "300", "PUBLISH-PERIOD", "300"];
      await admin.call("SENTINEL", "DEBUG", ...faster).catch(() => undefined);
    }
    for (const { admin, port } of sentinels) {
      const seesAll = async () => /slaves=2,sentinels=3/.test(await admin.info("sentinel"));
      await waitUntil(`the sentinel on port ${port} sees two replicas and three sentinels`, seesAll, {
        pollMs: POLL_MS,
      });
    }
    return new SentinelServers([primary, ...replicas], sentinels);
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${NAME}`;
  }

  /** The primary according to a sentinel. */
  async primary(): Promise<RedisServer> {
    const sentinel = this.sentinels.find(({ runs }) => runs) as RedisServer;
    const [, port] = (await sentinel.admin.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)) as [string, string];
    const primary = this.servers.find((server) => server.port === Number(port));
    if (primary === undefined)
      throw new Error(`the sentinel says that the primary is on port ${port}, which is no server of this test`);
    return primary;
  }

  /** Resolves once another server than that one is the primary. */
  async switchedFrom(before: RedisServer): Promise<RedisServer> {
    let primary = before;
    const hasSwitched = async () => {
      primary = await this.primary();
      return primary !== before && (await primary.admin.info("replication")).includes("role:master");
    };
    await waitUntil(`another server than that on port ${before.port} is the primary`, hasSwitched, { pollMs: POLL_MS });
    return primary;
  }

  /**
   * Makes a replica the primary while the old one lives. A sentinel gives up a failover that takes too long; the
   * request is then repeated.
   */
  async failOver(): Promise<void> {
    const { admin } = this.sentinels[0] as RedisServer;
    const before = await this.primary();
    const hasFailedOver = async () => {
      if ((await this.primary()) !== before) return true;
      if (await this.#isFailingOver(admin)) return false;
      await admin.call("SENTINEL", "FAILOVER", NAME).catch((error: unknown) => {
        // The sentinel has not checked the replicas yet, or has just begun to fail over.
        if (!(error instanceof Error && /^(NOGOODSLAVE|INPROG)/.test(error.message))) throw error;
      });
      return false;
    };
    await waitUntil("a replica is the primary", hasFailedOver);
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
