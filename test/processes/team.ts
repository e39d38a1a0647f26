import { sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import { DEMO_CLUSTERS } from "../../src/adapters/simcluster/demo-clusters.ts";
import { type SimCluster, startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { createDatabase, onServer, postgresOptions } from "../support/postgres.ts";
import { RedisServer } from "../support/redis-server.ts";
import { ServeChild } from "../support/serve-process.ts";

const LEASE_MS = 2_000;
const GPU = "nvidia.com/gpu";

export type TeamOptions = {
  /** True: acknowledged data survives a crash of the database's server. */
  readonly isDurable?: boolean;
  /** Variables beside those that every team has. */
  readonly env?: Readonly<Record<string, string>>;
};

/** A service as a team runs it: processes over one PostgreSQL database, one Redis and simulated clusters. */
export class Team {
  readonly db: Db;
  readonly clusters: readonly SimCluster[];
  readonly children: ServeChild[] = [];
  readonly redis: RedisServer;
  /** The address of its database. */
  readonly url: string;
  /** The variables of its processes. */
  readonly env: Readonly<Record<string, string>>;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    db: Db,
    clusters: readonly SimCluster[],
    redis: RedisServer,
    env: Readonly<Record<string, string>> & { readonly DATABASE_URL: string },
    parts: AsyncDisposableStack,
  ) {
    this.db = db;
    this.clusters = clusters;
    this.redis = redis;
    this.env = env;
    this.url = env.DATABASE_URL;
    this.#parts = parts;
  }

  static async start(server: string, roles: readonly string[], options: TeamOptions = {}): Promise<Team> {
    await using parts = new AsyncDisposableStack();
    const { url, drop } = await createDatabase(server);
    parts.defer(drop);
    // The settings of a new database: acknowledged data survives a crash of the server.
    if (options.isDurable)
      await onServer(server, (client) => client.query(`alter database ${new URL(url).pathname.slice(1)} reset all`));
    const db = await openPostgres(postgresOptions(url));
    parts.defer(() => db.close());
    const redis = await RedisServer.start();
    parts.defer(() => redis.stop());
    const clusters = await startClusters(db, parts);
    const env = {
      DATABASE_URL: url,
      REDIS_URL: redis.url,
      NAMESPACES: "open",
      GANGWAY_LEASE_SECONDS: String(LEASE_MS / 1000),
      GANGWAY_CREDENTIALS_KEY: CREDENTIALS_KEY.toString("base64"),
      GANGWAY_LOG_LEVEL: "warn",
      ...options.env,
    };
    const team = new Team(db, clusters, redis, env, parts.move());
    for (const role of roles) team.add(role);
    try {
      await Promise.all(team.children.map((child) => child.serving()));
    } catch (error) {
      await team.close();
      throw error;
    }
    return team;
  }

  add(roles: string): ServeChild {
    const child = new ServeChild(roles, this.env);
    this.children.push(child);
    return child;
  }

  /** Kills a process by SIGKILL, and starts another in its place. */
  async replace(child: ServeChild): Promise<void> {
    await child.end("SIGKILL");
    this.children[this.children.indexOf(child)] = new ServeChild(child.roles, this.env);
  }

  /** A client of any API process that serves; its caller closes it. */
  client(signal: AbortSignal): GangwayClient | null {
    const addresses = this.children.flatMap((child) => (child.hasEnded ? [] : (child.address ?? [])));
    const address = addresses[Math.floor(Math.random() * addresses.length)];
    return address === undefined ? null : connect(address, signal);
  }

  async close(): Promise<void> {
    await Promise.all(this.children.map((child) => child.end("SIGKILL")));
    await this.#parts.disposeAsync();
  }
}

export const CREDENTIALS_KEY = Buffer.alloc(32, 7);

async function startClusters(db: Db, parts: AsyncDisposableStack): Promise<readonly SimCluster[]> {
  const clock = systemClock();
  const store = createStore(db, {
    clock,
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "default",
    onAppended: () => {},
  });
  const quotas = [
    { flavor: "gpu/h100", resource: GPU, nominal: 16 },
    { flavor: "gpu/a100", resource: GPU, nominal: 12 },
  ];
  await store.admin.createQueue({ name: "default", strategy: "BEST_EFFORT_FIFO", quotas });
  return Promise.all(
    DEMO_CLUSTERS.map(async ({ name, labels, flavors, nodes }) => {
      const cluster = await startSimCluster({ name, nodes, directory: null, clock });
      parts.defer(() => cluster.close());
      const credentials = sealKubeconfig({ name: "default", bytes: CREDENTIALS_KEY }, name, cluster.kubeconfig());
      await store.clusters.register({ name, labels, flavors, credentials });
      return cluster;
    }),
  );
}
