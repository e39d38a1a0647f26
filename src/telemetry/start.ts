import type { Clock } from "../runtime/clock.ts";
import { createTelemetry, type Telemetry } from "./events.ts";
import { allMeters, type Meter } from "./metrics.ts";
import { createObserver, type Observer } from "./observer.ts";
import type { Prometheus } from "./prometheus.ts";
import type { Tracing } from "./tracing.ts";

export type TelemetryWanted = {
  readonly level: string;
  /** A file for log lines; null: standard output. */
  readonly file: string | null;
  readonly clock: Clock;
  /** Whether metrics are kept for Prometheus. */
  readonly metrics: boolean;
  /** Null: OpenTelemetry is not asked for. */
  readonly otel: { readonly serviceName: string | null } | null;
};

export type StartedTelemetry = {
  readonly telemetry: Telemetry;
  readonly observer: Observer;
  /** Null where metrics are not kept for Prometheus. */
  readonly scrape: Prometheus["scrape"] | null;
  /** Sends what is not sent yet. */
  readonly close: () => Promise<void>;
};

/** Starts what is wanted, and loads nothing beside it: by default that is a log alone. */
export async function startTelemetry({
  level,
  file,
  clock,
  metrics,
  otel,
}: TelemetryWanted): Promise<StartedTelemetry> {
  const prometheus = metrics ? await (await import("./prometheus.ts")).createPrometheus() : null;
  const exported = otel === null ? null : await startOtel(otel);
  const meters = [prometheus, exported?.meter].filter((meter) => meter !== null && meter !== undefined);
  const meter = allMeters(meters);
  const tracing = exported?.tracing ?? null;
  const telemetry = createTelemetry({ level, file, meter, traceIds: tracing?.ids });
  return {
    telemetry,
    observer: createObserver({ clock, telemetry, tracing, meter }),
    scrape: prometheus?.scrape ?? null,
    close: exported?.close ?? (async () => {}),
  };
}

async function startOtel(
  otel: NonNullable<TelemetryWanted["otel"]>,
): Promise<{ readonly meter: Meter; readonly tracing: Tracing; readonly close: () => Promise<void> }> {
  const { startOtelSdk } = await import("./otel-sdk.ts");
  const close = await startOtelSdk(otel);
  // Instruments belong to the provider that is registered when they are made.
  const [{ createOtelMeter }, { createTracing }] = await Promise.all([
    import("./otel-meter.ts"),
    import("./tracing.ts"),
  ]);
  return { meter: createOtelMeter(), tracing: createTracing(), close };
}
