/** Connects a process with its operator: log lines, metrics, traces, and the addresses for health and metrics. */
import type { Db } from "../adapters/store/db/db.ts";
import type { Config } from "../config.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ServerTls } from "../runtime/server-tls.ts";
import { startHttp } from "../telemetry/http.ts";
import { startTelemetry } from "../telemetry/start.ts";

export type ProcessTelemetry = Awaited<ReturnType<typeof startProcessTelemetry>>;

/** Starts log, metrics and traces. Lines go to the file; null: to standard output. */
export async function startProcessTelemetry(of: {
  readonly config: Config;
  readonly kinds: Registry;
  readonly file: string | null;
  readonly clock: Clock;
  readonly parts: AsyncDisposableStack;
}) {
  const { config, kinds, file, clock, parts } = of;
  const { logLevel: level, metricsListen, otel } = config;
  const started = await startTelemetry({ level, file, clock, kinds, metrics: metricsListen !== null, otel });
  parts.defer(started.close);
  return started;
}

/** Serves `/livez`, `/readyz` and `/metrics` at the addresses that the configuration names, if any. */
export async function startHealth(of: {
  readonly config: Config;
  readonly clock: Clock;
  readonly db: Db;
  readonly warnings: readonly string[];
  readonly synced: () => boolean;
  readonly tls: ServerTls | null;
  readonly scrape: ProcessTelemetry["scrape"];
  readonly parts: AsyncDisposableStack;
}): Promise<void> {
  const { config, clock, db, warnings, synced, scrape, tls, parts } = of;
  const checks = [
    { name: "database", ready: () => db.query("select 1").then(() => true) },
    { name: "clusters", ready: synced },
  ];
  const listen = { health: config.httpListen, metrics: config.metricsListen, tls };
  const http = await startHttp({ clock, checks, warnings: () => warnings, scrape }, listen);
  parts.defer(http.close);
  parts.defer(http.drain);
}
