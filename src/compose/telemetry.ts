/** Connects a process with its operator: log lines, metrics, traces, and the addresses for health and metrics. */

import type { Db } from "../adapters/store/db/db.ts";
import { type NotingDb, notingShortages } from "../adapters/store/db/shortage.ts";
import type { Config } from "../config/config.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { Clock } from "../runtime/clock.ts";
import type { LogFormat } from "../runtime/log-format.ts";
import type { ServerTls } from "../runtime/server-tls.ts";
import { ShortageError, shortageWords } from "../runtime/unavailable-error.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { type ReadyCheck, startHttp } from "../telemetry/http.ts";
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
  const format = logFormatOf(config, file);
  const started = await startTelemetry({ level, file, format, clock, kinds, metrics: metricsListen !== null, otel });
  parts.defer(started.close);
  // A probe sees that the process is not ready, and a scrape its last numbers, until it ends.
  const atEnd = { close: async () => {} };
  parts.defer(() => atEnd.close());
  return { ...started, atEnd };
}

/** Lines are for people in a terminal, and for programs in a file and a pipe, unless the configuration says. */
export function logFormatOf({ logFormat }: Pick<Config, "logFormat">, file: string | null): LogFormat {
  return logFormat ?? (file === null && process.stdout.isTTY ? "text" : "json");
}

/** A database whose shortages are counted, and shown in `/readyz`. */
export function observed(
  db: Db,
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
): NotingDb {
  const onShortage = (shortage: string) => telemetry.databaseShort({ shortage });
  return notingShortages(db, { monotonicMs: clock.monotonicMs, onShortage });
}

/** Serves `/livez`, `/readyz` and `/metrics` at the addresses that the configuration names, if any. */
export async function startHealth(of: {
  readonly config: Config;
  readonly clock: Clock;
  readonly db: NotingDb;
  /** Each returns sentences that `/readyz` shows now. */
  readonly warnings: readonly (() => readonly string[])[];
  readonly synced: () => boolean;
  readonly tls: ServerTls | null;
  readonly started: Pick<ProcessTelemetry, "scrape" | "atEnd">;
  readonly parts: AsyncDisposableStack;
}): Promise<void> {
  const { config, clock, db, warnings, synced, started, tls, parts } = of;
  const { scrape, atEnd } = started;
  let lately: readonly string[] = [];
  const checks: readonly ReadyCheck[] = [
    {
      name: "database",
      ready: async () => {
        const lacks = await db.query("select 1").then(() => null, wordsOf);
        if (lacks !== null) return lacks;
        const seen = await db.shortage();
        const words = seen === null ? null : shortageWords(seen.shortage);
        lately = words === null || seen?.isNow === true ? [] : [`database: ${words} now and then`];
        return words === null || seen?.isNow !== true || words;
      },
    },
    { name: "clusters", ready: synced },
  ];
  const listen = { health: config.httpListen, metrics: config.metricsListen, tls };
  const http = await startHttp(
    { clock, checks, warnings: () => [...lately, ...warnings.flatMap((of) => of())], scrape },
    listen,
  );
  atEnd.close = http.close;
  parts.defer(http.drain);
}

/** The shortage for which the database does not even read. Throws every other error. */
function wordsOf(error: unknown): string {
  if (error instanceof ShortageError) return error.words;
  throw error;
}
