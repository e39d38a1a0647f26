import { join } from "node:path";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** What the environment says; command line options come on top. */
export type Config = {
  /** Where the command line finds the service: GANGWAY_ADDRESS. */
  readonly address: string;
  /** Where the service listens: GANGWAY_LISTEN. */
  readonly listen: string;
  /** Where the embedded service keeps everything: GANGWAY_DATA. */
  readonly dataDirectory: string;
  /** GANGWAY_LOG_LEVEL. */
  readonly logLevel: LogLevel;
  /** Where `/livez` and `/readyz` are served: GANGWAY_HTTP_LISTEN; null: nowhere. */
  readonly httpListen: string | null;
  /** Where Prometheus finds `/metrics`: GANGWAY_METRICS_LISTEN; null: nothing is kept for it. */
  readonly metricsListen: string | null;
  /** What the OTEL_* variables ask for; null: nothing. */
  readonly otel: { readonly serviceName: string | null } | null;
  /** Colours are not wanted: NO_COLOR. */
  readonly plain: boolean;
};

export const DEFAULT_ADDRESS = "127.0.0.1:7443";
const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "silent"];

/**
 * Reads the environment once; `workingDirectory` is where relative defaults begin.
 * @throws Error naming the variable, what it is and what is allowed.
 */
export function readConfig(workingDirectory: string, env: NodeJS.ProcessEnv = process.env): Config {
  const level = env["GANGWAY_LOG_LEVEL"] || "info";
  const logLevel = LEVELS.find((known) => known === level);
  if (logLevel === undefined) throw new Error(`GANGWAY_LOG_LEVEL is "${level}"; allowed are ${LEVELS.join(", ")}`);
  return {
    address: env["GANGWAY_ADDRESS"] || DEFAULT_ADDRESS,
    listen: env["GANGWAY_LISTEN"] || DEFAULT_ADDRESS,
    dataDirectory: env["GANGWAY_DATA"] || join(workingDirectory, ".gangway"),
    logLevel,
    httpListen: env["GANGWAY_HTTP_LISTEN"] || null,
    metricsListen: env["GANGWAY_METRICS_LISTEN"] || null,
    otel: readOtel(env),
    plain: Boolean(env["NO_COLOR"]),
  };
}

const OTEL_ENDPOINTS = ["", "_TRACES", "_METRICS"].map((signal) => `OTEL_EXPORTER_OTLP${signal}_ENDPOINT`);
const OTEL_EXPORTERS = ["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"];

/** Asked for by an endpoint, or by an exporter other than `none`. The service names itself where nobody else does. */
function readOtel(env: NodeJS.ProcessEnv): Config["otel"] {
  if (env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return null;
  const asked =
    OTEL_ENDPOINTS.some((name) => env[name]) || OTEL_EXPORTERS.some((name) => (env[name] || "none") !== "none");
  const named =
    Boolean(env["OTEL_SERVICE_NAME"]) || /(^|,)\s*service\.name=/.test(env["OTEL_RESOURCE_ATTRIBUTES"] ?? "");
  return asked ? { serviceName: named ? null : "gangway" } : null;
}

const GPU = "nvidia.com/gpu";

/** The queues that the embedded service starts with; what an admin changes of them stays changed. */
export const EMBEDDED_QUEUES = [
  {
    name: "default",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 8 },
      { flavor: "gpu/a100", resource: GPU, nominal: 8 },
    ],
  },
  {
    name: "research",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 16 },
      { flavor: "gpu/a100", resource: GPU, nominal: 12 },
    ],
  },
] as const;
