/** Connects one process of a service that several processes share, for `gangway serve`. */
import type { Db } from "../adapters/store/db/db.ts";
import { checkAddresses } from "../api/server.ts";
import type { ServeProcess } from "../cli/service/serve.ts";
import type { Role, ServeOptions } from "../cli/shell/deps.ts";
import type { Config } from "../config/config.ts";
import { isService } from "../core/kinds/kind.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { BASELINE_DEFAULT } from "../core/pods/policy/pod-policy.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { authenticates } from "./access.ts";
import { type Base, DEFAULT_QUEUE, startBase } from "./base.ts";
import { type FollowedClusters, followClusters } from "./clusters.ts";
import { consoleOf, consoleText, webOf } from "./console.ts";
import { openCounters } from "./counters.ts";
import { openServer } from "./database.ts";
import { startClock } from "./decision-clock.ts";
import { describeParts } from "./in-use.ts";
import { startPlanner } from "./planner.ts";
import { startServer } from "./server.ts";
import { endSimulation, NO_SIMULATIONS } from "./simulated-clusters.ts";
import { startSurvey } from "./survey.ts";
import { logFormatOf, observed, startHealth, startProcessTelemetry } from "./telemetry.ts";
import { followTls } from "./tls.ts";
import { type Quota, startQuota } from "./tokens.ts";
import { startWatchdog } from "./watchdog.ts";
import { startWorker } from "./worker.ts";

/** Starts a process with these roles. Throws an error that a user understands if a part cannot be had. */
export async function startServe(options: ServeOptions, config: Config, kinds: Registry): Promise<ServeProcess> {
  const { database: server, redis } = config;
  const protection = { tls: config.tls, authenticates: authenticates(config) };
  if (server === null) {
    throw new Error("serve needs a PostgreSQL database: set DATABASE_URL (`gangway up` needs none: it brings its own)");
  }
  const has = (role: Role) => options.roles.includes(role);
  const web = consoleOf(config.console, "serve");
  const { insecure, listen } = { ...options, listen: options.listen ?? config.listen };
  if (has("api")) await checkAddresses({ listen, insecure, ...protection, web });
  await using parts = new AsyncDisposableStack();
  // Durations are measured by decision time as soon as there is one.
  let decides: Clock = systemClock();
  const measuring = { ...decides, nowMs: () => decides.nowMs() };
  const started = await startProcessTelemetry({ config, kinds, file: null, clock: measuring, parts });
  const { telemetry } = started;
  const tls = followTls(config.tls, { clock: systemClock(), telemetry, parts });
  const { warnings, ...opened } = await openServer(server, telemetry, parts);
  const db = observed(opened.db, { clock: systemClock(), telemetry });
  const clock = await startClock(db, { leaseMs: config.leaseMs, telemetry, isAlone: false });
  decides = clock;
  const { openNamespaces } = config;
  const takesBuckets = has("worker");
  const opening = { openNamespaces, podPolicyDefault: BASELINE_DEFAULT };
  const base = await startBase({ config, kinds, db, server, ...opening, takesBuckets, clock, started, parts });
  if (has("worker")) await endSimulation(base, db);
  await base.store.admin.ensureQueue({ name: DEFAULT_QUEUE, strategy: "BEST_EFFORT_FIFO", quotas: [] });
  const followed = await clustersFor(base, options.roles, config);
  const quota = await quotaFor(base, db, options.roles, config);
  if (has("worker") && followed !== null) {
    const { sections, processName } = base;
    const watched = { shared: sections.shared, processName, leaseMs: config.leaseMs, telemetry, parts };
    startWatchdog({ ...watched, target: { server }, logFile: null, logFormat: logFormatOf(config, null) });
    startWorker(base, followed.clusters, quota, config);
  }
  if (has("planner") && quota !== null) startPlanner(base, quota.planner, config);
  startSurvey(base);
  const api =
    has("api") && followed !== null && quota !== null
      ? await startServer(base, followed, quota, { ...options, ...protection, tls, web }, config)
      : null;
  const synced = () => !has("worker") || followed === null || followed.clusters.synced();
  const says = [() => warnings, ...base.warnings];
  await startHealth({ config, clock, db, warnings: says, synced, started, tls, parts });
  await base.member.look();
  telemetry.processStarted({ roles: options.roles, address: api?.address ?? null, ...webOf(api) });
  const clusters = (await base.store.admin.listClusters()).filter(({ simulated }) => !simulated);
  const running = parts.move();
  return {
    address: api?.address ?? null,
    console: consoleText(api),
    inUse: describeParts({ database: server, directory: null, redis, counts: quota !== null, clusters }),
    close: async () => {
      await running.disposeAsync();
      telemetry.serviceStopped();
    },
  };
}

/**
 * A worker listens to all clusters; the API connects to them for logs, checks and registrations. A planner reads what
 * workers have recorded of them, and needs no connection and no credentials.
 */
async function clustersFor(base: Base, roles: readonly Role[], config: Config): Promise<FollowedClusters | null> {
  const listens = roles.includes("worker");
  if (!listens && !roles.includes("api")) return null;
  return followClusters(base, { config, listens, simulations: NO_SIMULATIONS });
}

/** A worker without other roles has counters only if it shares them and if a kind may ask it for tokens. */
async function quotaFor(base: Base, db: Db, roles: readonly Role[], { redis }: Config): Promise<Quota | null> {
  const asksTokens = redis !== null && base.kinds.all.some(isService);
  if (!roles.includes("planner") && !roles.includes("api") && !asksTokens) return null;
  return startQuota(base, await openCounters(base, db, redis));
}
