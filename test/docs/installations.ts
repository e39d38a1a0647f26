/** Starts services and stores for the commands of the pages: an embedded service, or PostgreSQL and Redis. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newDataFolder } from "../support/data-folder.ts";
import { createEmptyDatabase, databaseUrl, onServer } from "../support/postgres.ts";
import { freePort, RedisServer } from "../support/redis-server.ts";
import { root } from "./pages.ts";
import { compileCache, plainEnvironment } from "./shell.ts";

export type Installation = {
  readonly environment: Readonly<Record<string, string>>;
  /** Texts of the pages, such as addresses, and the texts that the test puts in their place. */
  readonly replace: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
};

/** Addresses that the pages use, because they are the defaults. */
const PAGE = {
  api: "127.0.0.1:7443",
  console: "127.0.0.1:7480",
  health: "127.0.0.1:8081",
  metrics: "127.0.0.1:9464",
  database: "postgres://gangway:gangway@127.0.0.1:5432/gangway",
  restored: "postgres://gangway:gangway@127.0.0.1:5432/gangway_restored",
  everyAddress: "0.0.0.0:7444",
  byName: "localhost:7444",
  restoredName: "gangway_restored",
  redis: "redis://127.0.0.1:6379",
  keys: "keys.yaml",
};

async function loopback(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

function credentialsKey(): string {
  return randomBytes(32).toString("base64");
}

/** The embedded service in a process of its own, with its data in a folder that is removed at the end. */
export async function startEmbeddedService(): Promise<Installation> {
  const data = newDataFolder("gangway-docs-data-");
  const keys = join(data, "keys.yaml");
  writeFileSync(keys, "current: default");
  const [console, health, metrics] = [await loopback(), await loopback(), await loopback()];
  const second = await loopback();
  const child = spawn(
    process.execPath,
    [join(root, "bin/gangway"), "up", "--no-examples", "--listen", "127.0.0.1:0", "--data", data],
    {
      cwd: data,
      env: {
        ...plainEnvironment(),
        NODE_COMPILE_CACHE: compileCache,
        GANGWAY_CREDENTIALS_KEY: credentialsKey(),
        GANGWAY_CREDENTIALS_KEYS_FILE: keys,
        GANGWAY_CONSOLE_LISTEN: console,
        GANGWAY_HTTP_LISTEN: health,
        GANGWAY_METRICS_LISTEN: metrics,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const address = await listening(child);
  return {
    environment: { GANGWAY_ADDRESS: address },
    replace: {
      [PAGE.api]: address,
      [PAGE.console]: console,
      [PAGE.health]: health,
      [PAGE.metrics]: metrics,
      [PAGE.everyAddress]: second,
      [PAGE.byName]: second.replace("127.0.0.1", "localhost"),
      [PAGE.keys]: keys,
    },
    async close() {
      child.kill("SIGTERM");
      await once(child, "exit");
      rmSync(data, { recursive: true, force: true });
    },
  };
}

async function listening(child: ChildProcess): Promise<string> {
  let output = "";
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        const address = /listening on (\S+)/.exec(output)?.[1];
        if (address !== undefined) resolve(address);
      });
    }
    child.once("exit", () => reject(new Error(`the service ended: ${output}`)));
  });
}

/** An empty database and a Redis; the page starts the processes itself. */
export async function startStores(postgres: string): Promise<Installation> {
  const database = await createEmptyDatabase(postgres);
  const redis = await RedisServer.start(["--maxmemory-policy", "noeviction"]);
  const [api, health, metrics] = [await loopback(), await loopback(), await loopback()];
  const restored = `${new URL(database.url).pathname.slice(1)}_restored`;
  return {
    environment: { GANGWAY_ADDRESS: api, GANGWAY_LISTEN: api },
    replace: {
      [PAGE.api]: api,
      [PAGE.health]: health,
      [PAGE.metrics]: metrics,
      [PAGE.restored]: databaseUrl(postgres, restored),
      [PAGE.restoredName]: restored,
      [PAGE.database]: database.url,
      [PAGE.redis]: redis.url,
    },
    async close() {
      await redis.stop();
      await onServer(postgres, (client) => client.query(`drop database if exists ${restored} with (force)`));
      await database.drop();
    },
  };
}
