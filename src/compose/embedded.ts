/** Connects the whole service in one process, for `gangway up`. */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkAddresses } from "../api/server.ts";
import type { RunningService } from "../cli/service/up.ts";
import type { UpOptions } from "../cli/shell/deps.ts";
import type { Config, DatabaseConfig } from "../config/config.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { BASELINE_DEFAULT, TRIAL_DEFAULT } from "../core/pods/policy/pod-policy.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { authenticates } from "./access.ts";
import { startBase } from "./base.ts";
import { followClusters } from "./clusters.ts";
import { consoleOf, consoleText, webOf } from "./console.ts";
import { openCounters, ownCounters } from "./counters.ts";
import { holdDirectory, migrateServer, type OpenedDatabase, openDirectory, openServer } from "./database.ts";
import { startClock } from "./decision-clock.ts";
import { describeParts } from "./in-use.ts";
import { startPlanner } from "./planner.ts";
import { startServer } from "./server.ts";
import { holdSimulation, startSimulations } from "./simulated-clusters.ts";
import { startSurvey } from "./survey.ts";
import { logFormatOf, observed, startHealth, startProcessTelemetry } from "./telemetry.ts";
import { followTls } from "./tls.ts";
import { startQuota } from "./tokens.ts";
import { notesFile, startWatchdog, takeNotes } from "./watchdog.ts";
import { startWorker } from "./worker.ts";

/**
 * Starts the service, with simulated clusters if no real one is registered. Their state is in one directory. The
 * database is in that directory too unless the configuration names a server, which is migrated first: `up` brings up
 * everything by itself. Throws an error that a user understands if a part cannot be had. Calls `progress` with each of
 * its steps.
 */
export async function startEmbedded(
  options: UpOptions,
  config: Config,
  kinds: Registry,
  progress: (text: string) => void = () => {},
): Promise<RunningService> {
  const protection = { tls: config.tls, authenticates: authenticates(config) };
  // The address comes before anything is made: it is the most frequent mistake.
  const web = consoleOf(config.console, "up");
  await checkAddresses({ listen: options.listen ?? config.listen, insecure: options.insecure, ...protection, web });
  const directory = resolve(options.data ?? config.dataDirectory);
  const { database: server, redis } = config;
  await using parts = new AsyncDisposableStack();
  progress(openingText(server, directory));
  // The lock comes first: it keeps a second process away from everything in the directory.
  const openDatabase = await reserve(directory, server, parts);
  const file = join(directory, "gangway.log");
  // Durations are measured by decision time as soon as there is one.
  let decides: Clock = systemClock();
  const measuring = { ...decides, nowMs: () => decides.nowMs() };
  const started = await startProcessTelemetry({ config, kinds, file, clock: measuring, parts });
  const { telemetry } = started;
  const tls = followTls(config.tls, { clock: systemClock(), telemetry, parts });
  const { warnings, migrated, ...opened } = await openDatabase(telemetry);
  const db = observed(opened.db, { clock: systemClock(), telemetry });
  const clock = await startClock(db, { leaseMs: config.leaseMs, telemetry, isAlone: server === null });
  decides = clock;
  const base = await startBase({
    config,
    kinds,
    db,
    server,
    openNamespaces: true,
    // A service that knows its callers serves several people: none of them may read the files of its nodes.
    podPolicyDefault: protection.authenticates ? BASELINE_DEFAULT : TRIAL_DEFAULT,
    takesBuckets: true,
    clock,
    started,
    parts,
  });
  if (server !== null) await holdSimulation(base, db);
  // No other process uses the database of a directory.
  const counters = server === null && redis === null ? ownCounters : await openCounters(base, db, redis);
  const quota = await startQuota(base, counters);
  progress("starting the simulated clusters");
  const simulations = await startSimulations(base, { directory, besideReal: options.simulate });
  const followed = await followClusters(base, { config, listens: true, simulations });
  startPlanner(base, quota.planner, config);
  startSurvey(base);
  const notes = notesFile(directory);
  await takeNotes(notes, base.store.blame);
  startWatchdog({
    shared: base.sections.shared,
    processName: base.processName,
    leaseMs: config.leaseMs,
    target: server === null ? { file: notes } : { server },
    logFile: file,
    logFormat: logFormatOf(config, file),
    telemetry,
    parts,
  });
  startWorker(base, followed.clusters, quota, config);
  const says = [() => warnings, ...base.warnings];
  await startHealth({ config, clock, db, warnings: says, synced: followed.clusters.synced, started, tls, parts });
  const api = await startServer(base, followed, quota, { ...options, ...protection, tls, web }, config);
  // Takes the leases that the stages want, without waiting for the next renewal.
  await base.member.look();
  telemetry.serviceStarted({ address: api.address, ...webOf(api), directory });
  const clusters = await base.store.admin.listClusters();
  const running = parts.move();
  return {
    address: api.address,
    console: consoleText(api),
    inUse: describeParts({ database: server, directory, redis, counts: true, clusters }),
    realClusters: clusters.filter(({ simulated }) => !simulated).map(({ name }) => name),
    isPlain: tls === null && !protection.authenticates,
    migrated,
    close: async () => {
      await running.disposeAsync();
      telemetry.serviceStopped();
    },
  };
}

function openingText(server: DatabaseConfig | null, directory: string): string {
  if (server !== null) return "migrating the database";
  if (existsSync(join(directory, "db"))) return `opening the database in ${directory}`;
  return `making a database in ${directory}, which takes some seconds`;
}

type MigratedDatabase = OpenedDatabase & { readonly migrated: readonly string[] };

/** Locks the directory, and returns how to open the database once the log is open, which is in the directory. */
async function reserve(
  directory: string,
  server: DatabaseConfig | null,
  parts: AsyncDisposableStack,
): Promise<(telemetry: Telemetry) => Promise<MigratedDatabase>> {
  if (server === null) {
    const db = await openDirectory(directory, parts);
    return async () => ({ db, warnings: [], migrated: [] });
  }
  holdDirectory(directory, parts);
  return async (telemetry) => {
    const migrated = await migrateServer(server);
    return { migrated, ...(await openServer(server, telemetry, parts)) };
  };
}
