/** The metrics of the whole fleet are those of one process of a team, whichever processes there are. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { createDatabase, postgresOptions, postgresServer } from "../support/postgres.ts";
import { freePort, hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { ServeChild } from "../support/serve-process.ts";

const server = await postgresServer();
const LOOK_MS = 100;
const NOMINAL = 'gangway_queue_nominal{queue="ml",flavor="gpu/h100"} 8';
const DEPTH = 'gangway_queue_depth{queue="ml"} 0';

/** A process that serves metrics. */
class Measured {
  readonly child: ServeChild;
  readonly #metrics: string;

  constructor(roles: string, env: Readonly<Record<string, string>>, port: number) {
    this.#metrics = `127.0.0.1:${port}`;
    this.child = new ServeChild(roles, { ...env, GANGWAY_METRICS_LISTEN: this.#metrics });
  }

  async shows(line: string): Promise<boolean> {
    const response = await fetch(`http://${this.#metrics}/metrics`);
    return (await response.text()).split("\n").includes(line);
  }
}

describe("the metrics of the whole fleet", { skip: server === null || !hasRedisServer() }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let redis: RedisServer;
  const team: Measured[] = [];
  before(async () => {
    database = await createDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(database.url));
    const options = { clock: systemClock(), kinds: OWN_KINDS, openNamespaces: false, defaultQueue: "default" };
    const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 8 }];
    const store = createStore(db, { ...options, onAppended: () => {} });
    await store.admin.ensureQueue({ name: "ml", strategy: "BEST_EFFORT_FIFO", quotas });
    await db.close();
    redis = await RedisServer.start();
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      GANGWAY_LEASE_SECONDS: "2",
      GANGWAY_LOG_LEVEL: "warn",
    };
    for (const roles of ["planner", "planner,worker"]) team.push(new Measured(roles, env, await freePort()));
    await Promise.all(team.map(({ child }) => child.serving()));
  });
  after(async () => {
    await Promise.all(team.map(({ child }) => child.end("SIGKILL")));
    await redis.stop();
    await database.drop();
  });

  /** The processes that show this line, once one does. */
  async function showing(line: string): Promise<readonly Measured[]> {
    const look = async () => {
      for (;;) {
        const living = team.filter(({ child }) => !child.hasEnded);
        const shown = await Promise.all(living.map((one) => one.shows(line)));
        if (shown.includes(true)) return living.filter((_, at) => shown[at]);
        await wait(LOOK_MS);
      }
    };
    return within(line, WAIT_MS_MAX, look());
  }

  test("are shown by one process, and those of the planner by the one that leads", async () => {
    assert.equal((await showing(NOMINAL)).length, 1);
    assert.equal((await showing(DEPTH)).length, 1);
  });

  test("are shown by another process once the one that showed them is killed", async () => {
    const [surveys] = await showing(NOMINAL);
    await surveys?.child.end("SIGKILL");
    const others = team.filter((one) => one !== surveys);
    assert.deepEqual(await showing(NOMINAL), others);
    assert.deepEqual(await showing(DEPTH), others);
  });
});
