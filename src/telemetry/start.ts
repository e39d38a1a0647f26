import type { Registry } from "../core/kinds/registry.ts";
import type { Clock } from "../runtime/clock.ts";
import type { LogFormat } from "../runtime/log-format.ts";
import { createTelemetry, type Telemetry } from "./events.ts";
import { createInstrumentation, type Instrumentation } from "./instrumentation.ts";
import { allMeters, type Meter } from "./metrics.ts";
import type { Prometheus } from "./prometheus.ts";
import type { Tracing } from "./tracing.ts";

export type TelemetrySettings = {
  readonly level: string;
  /** The file of the log. Null: standard output. */
  readonly file: string | null;
  /** Omitted: lines are JSON. */
  readonly format?: LogFormat;
  readonly clock: Clock;
  readonly kinds: Registry;
  /** Keeps metrics for Prometheus. */
  readonly metrics: boolean;
  /** Null: OpenTelemetry is off. */
  readonly otel: { readonly serviceName: string | null } | null;
};

export type StartedTelemetry = {
  readonly telemetry: Telemetry;
  readonly instrumentation: Instrumentation;
  /** Null: no metrics are kept for Prometheus. */
  readonly scrape: Prometheus["scrape"] | null;
  /** Sends the remaining traces and metrics. */
  readonly close: () => Promise<void>;
};

/** Starts the log, and metrics and traces if the settings ask for them. Loads only the packages that it needs. */
export async function startTelemetry({
  level,
  file,
  format = "json",
  clock,
  kinds,
  metrics,
  otel,
}: TelemetrySettings): Promise<StartedTelemetry> {
  const prometheus = metrics ? await (await import("./prometheus.ts")).createPrometheus() : null;
  const exported = otel === null ? null : await startOtel(otel);
  const meters = [prometheus, exported?.meter].filter((meter) => meter !== null && meter !== undefined);
  const meter = allMeters(meters);
  const tracing = exported?.tracing ?? null;
  const telemetry = createTelemetry({ level, file, format, meter, traceIds: tracing?.ids });
  return {
    telemetry,
    instrumentation: createInstrumentation({ clock, telemetry, kinds, tracing, meter }),
    scrape: prometheus?.scrape ?? null,
    close: exported?.close ?? (async () => {}),
  };
}

async function startOtel(
  otel: NonNullable<TelemetrySettings["otel"]>,
): Promise<{ readonly meter: Meter; readonly tracing: Tracing; readonly close: () => Promise<void> }> {
  const { startOtelSdk } = await import("./otel-sdk.ts");
  const close = await startOtelSdk(otel);
  // Instruments belong to the provider that is registered when they are created.
  const [{ createOtelMeter }, { createTracing }] = await Promise.all([
    import("./otel-meter.ts"),
    import("./tracing.ts"),
  ]);
  return { meter: createOtelMeter(), tracing: createTracing(), close };
}
