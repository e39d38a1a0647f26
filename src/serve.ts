/** One process of a team's service, on real parts. With main.ts, which loads it only where it is to run, it knows everyone. */
import { inProcessCounters } from "./adapters/quota/in-process.ts";
import { holdCounters } from "./adapters/store/counters-holder.ts";
import { clockOffsetMs } from "./adapters/store/database-clock.ts";
import type { Db } from "./adapters/store/db.ts";
import type { Hints as HintLine } from "./adapters/store/hints.ts";
import { installationId } from "./adapters/store/installation.ts";
import { createHints } from "./adapters/store/notify.ts";
import { openPostgres } from "./adapters/store/postgres.ts";
import { requireSchema } from "./adapters/store/schema.ts";
import { createStore } from "./adapters/store/store.ts";
import type { ServeOptions } from "./cli/deps.ts";
import type { ServeProcess } from "./cli/serve.ts";
import {
  type Base,
  DEFAULT_QUEUE,
  followClusters,
  type Hints,
  joinAsMember,
  nameOfProcess,
  noHints,
  startHealth,
  startPlanner,
  startServer,
  startTelling,
  startWorker,
} from "./compose.ts";
import { startQuota } from "./compose-quota.ts";
import type { Config, DatabaseConfig } from "./config.ts";
import { isService } from "./core/kinds/kind.ts";
import { servedKinds } from "./core/kinds/registry.ts";
import type { Counters } from "./core/quota/counters.ts";
import { type Clock, systemClock } from "./runtime/clock.ts";
import type { Telemetry } from "./telemetry/events.ts";

/** Starts a process with these roles. Throws an error that a user understands where something that it needs is not there. */
export async function startServe(options: ServeOptions, config: Config): Promise<ServeProcess> {
  if (config.database === null) {
    throw new Error("serve needs a PostgreSQL database: set DATABASE_URL (`gangway up` needs none: it brings its own)");
  }
  await using parts = new AsyncDisposableStack();
  const told = await startTelling({ config, file: null, clock: systemClock(), parts });
  const { telemetry } = told;
  const db = await openDatabase(config.database, telemetry, parts);
  const clock = systemClock(await clockOffsetMs(db, systemClock().nowMs));
  const base = await startBase({ options, config, database: config.database, db, clock, told, parts });
  const works = options.roles.includes("worker");
  // Whoever plans or serves may observe for a cluster too, but only workers listen to them: they hear everything anyway.
  const followed = await followClusters(base, { config, listens: works, given: [], simulated: () => null });
  const { clusters } = followed;
  // A worker counts only where a kind may ask it for tokens, and where counters can be shared.
  const asksTokens = works && config.redis !== null && servedKinds().some(isService);
  const counts = options.roles.includes("planner") || options.roles.includes("api") || asksTokens;
  const quota = counts ? await startQuota(base, await countersFor(base, db, config)) : null;
  if (works) startWorker(base, clusters, quota, config);
  if (quota !== null && options.roles.includes("planner")) startPlanner(base, quota.planner);
  const listen = options.listen ?? config.listen;
  const api =
    quota !== null && options.roles.includes("api")
      ? await startServer(base, followed, quota, {
          listen,
          insecure: options.insecure,
          podConfig: config.podConfig,
          podConfigFile: config.podConfigFile,
        })
      : null;
  await startHealth({ config, clock, db, synced: () => !works || clusters.synced(), scrape: told.scrape, parts });
  await base.member.look();
  telemetry.processStarted({ roles: options.roles, address: api?.address ?? null });
  const running = parts.move();
  return {
    address: api?.address ?? null,
    close: async () => {
      await running.disposeAsync();
      telemetry.serviceStopped();
    },
  };
}

async function openDatabase(config: DatabaseConfig, telemetry: Telemetry, parts: AsyncDisposableStack): Promise<Db> {
  const { url, poolMax, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs } = config;
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "database connection", error });
  const db = await openPostgres({ url, poolMax, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs, onError });
  parts.defer(() => db.close());
  await requireSchema(db);
  return db;
}

async function startBase(of: {
  readonly options: ServeOptions;
  readonly config: Config;
  readonly database: DatabaseConfig;
  readonly db: Db;
  readonly clock: Clock;
  readonly told: Awaited<ReturnType<typeof startTelling>>;
  readonly parts: AsyncDisposableStack;
}): Promise<Base> {
  const { clock, parts, db, database, config } = of;
  const { telemetry, observer } = of.told;
  const line = createHints({
    url: database.directUrl,
    connectTimeoutMs: database.connectTimeoutMs,
    clock,
    random: Math.random,
    onError: (error) => telemetry.loopFailed({ loop: "notifications", error }),
  });
  parts.defer(() => line.close());
  const tell = hintsTo(line);
  const heard = noHints();
  parts.defer(listen(line, heard));
  const store = createStore(db, {
    clock,
    openNamespaces: config.openNamespaces,
    defaultQueue: DEFAULT_QUEUE,
    onAppended: tell.appended,
    quotaBounds: config.quotaBounds,
  });
  await store.admin.ensureQueue({ name: DEFAULT_QUEUE, strategy: "BEST_EFFORT_FIFO", quotas: [] });
  const takesBuckets = of.options.roles.includes("worker");
  const processName = nameOfProcess();
  const leaseMs = config.leaseMs;
  const member = await joinAsMember({ processName, clock, store, telemetry, parts, takesBuckets, leaseMs });
  const installation = await installationId(db);
  return { processName, clock, store, installation, telemetry, observer, tell, heard, member, parts };
}

function hintsTo(line: HintLine): Hints {
  return {
    appended: () => line.send({ kind: "log" }),
    planner: () => line.send({ kind: "planner" }),
    job: (uid) => line.send({ kind: "job", uid }),
  };
}

/** Passes hints on to the stages of this process; what is due is found by the worker's next poll. */
function listen(line: HintLine, heard: Hints): () => void {
  return line.onHint((hint) => {
    if (hint.kind === "log") heard.appended();
    else if (hint.kind === "planner") heard.planner();
    else if (hint.kind === "job") heard.job(hint.uid);
  });
}

/** Counters in Redis where it is configured; otherwise in this process, which then is the only one that may plan or serve callers. */
async function countersFor(base: Base, db: Db, config: Config): Promise<(domain: string) => Promise<Counters>> {
  const { installation, telemetry, parts } = base;
  if (config.redis === null) {
    const hold = await holdCounters(db, {
      holder: base.processName,
      clock: base.clock,
      // The ledger refuses what it grants from now on, and whoever has taken it says so at its start.
      onLost: (error) => telemetry.loopFailed({ loop: "counters", error }),
      onError: (error) => telemetry.loopFailed({ loop: "counters", error }),
    });
    parts.defer(() => hold.release());
    return async () => inProcessCounters();
  }
  const { redis } = config;
  const { redisCounters } = await import("./adapters/quota/redis/redis-counters.ts");
  const open: { readonly close: () => Promise<void> }[] = [];
  parts.defer(async () => {
    await Promise.all(open.map((counters) => counters.close()));
  });
  return async (domain) => {
    const counters = await redisCounters({
      ...redis,
      installation,
      domain,
      onError: (error) => telemetry.loopFailed({ loop: "redis connection", error }),
      onWarning: (message) => telemetry.loopFailed({ loop: "redis settings", error: new Error(message) }),
    });
    open.push(counters);
    return counters;
  };
}
