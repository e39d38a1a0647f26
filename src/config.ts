import { join } from "node:path";

/** A PostgreSQL server instead of the database in the data directory. */
export type DatabaseConfig = {
  /** DATABASE_URL. May lead through a pooler. */
  readonly url: string;
  /** DATABASE_DIRECT_URL, for what needs a session of its own: notifications and migrations. */
  readonly directUrl: string;
  /** DATABASE_POOL_MAX: so many connections of each process at most. */
  readonly poolMax: number;
  /** DATABASE_CONNECT_TIMEOUT_MS: how long a call waits for a connection. */
  readonly connectTimeoutMs: number;
  /** DATABASE_STATEMENT_TIMEOUT_MS: how long a statement may run, and a transaction idle. */
  readonly statementTimeoutMs: number;
  /** DATABASE_IDLE_TIMEOUT_MS: how long a connection is kept that nobody uses. */
  readonly idleTimeoutMs: number;
};

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** What the environment says; command line options come on top. */
export type Config = {
  /** Where the command line finds the service: GANGWAY_ADDRESS. */
  readonly address: string;
  /** Where the service listens: GANGWAY_LISTEN. */
  readonly listen: string;
  /** Where the embedded service keeps everything: GANGWAY_DATA. */
  readonly dataDirectory: string;
  /** After so long without a word from a process, others take over what it did: GANGWAY_LEASE_SECONDS. */
  readonly leaseMs: number;
  /** Any valid namespace is made on first use, not only by an admin: NAMESPACES is `open`. The embedded service always does so. */
  readonly openNamespaces: boolean;
  /** GANGWAY_LOG_LEVEL. */
  readonly logLevel: LogLevel;
  /** Where `/livez` and `/readyz` are served: GANGWAY_HTTP_LISTEN; null: nowhere. */
  readonly httpListen: string | null;
  /** Where Prometheus finds `/metrics`: GANGWAY_METRICS_LISTEN; null: nothing is kept for it. */
  readonly metricsListen: string | null;
  /** What the OTEL_* variables ask for; null: nothing. */
  readonly otel: { readonly serviceName: string | null } | null;
  /** What credentials of registered clusters are encrypted with: GANGWAY_CREDENTIALS_KEY, 32 bytes in base64. Null: none can be stored. */
  readonly credentialsKey: Buffer | null;
  /** Kubeconfigs may be files of this machine, name some, and run programs: GANGWAY_LOCAL_KUBECONFIGS=allow. */
  readonly allowLocalKubeconfigs: boolean;
  /** Colours are not wanted: NO_COLOR. */
  readonly plain: boolean;
  /** Null without DATABASE_URL. */
  readonly database: DatabaseConfig | null;
  /** Where counters are kept that several planners share: REDIS_URL and REDIS_KEY_PREFIX; null: in the planner's process. */
  readonly redis: { readonly url: string; readonly keyPrefix: string } | null;
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
    leaseMs: wholeNumber(env, "GANGWAY_LEASE_SECONDS", { absent: 10, min: 1, max: 300 }) * 1000,
    openNamespaces: readNamespaces(env),
    logLevel,
    httpListen: env["GANGWAY_HTTP_LISTEN"] || null,
    metricsListen: env["GANGWAY_METRICS_LISTEN"] || null,
    otel: readOtel(env),
    credentialsKey: credentialsKey(env["GANGWAY_CREDENTIALS_KEY"]),
    allowLocalKubeconfigs: env["GANGWAY_LOCAL_KUBECONFIGS"] === "allow",
    plain: Boolean(env["NO_COLOR"]),
    database: readDatabase(env),
    redis: readRedis(env),
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

function readDatabase(env: NodeJS.ProcessEnv): DatabaseConfig | null {
  const url = postgresUrl(env, "DATABASE_URL");
  const directUrl = postgresUrl(env, "DATABASE_DIRECT_URL");
  if (url === null) return null;
  return {
    url,
    directUrl: directUrl ?? url,
    poolMax: wholeNumber(env, "DATABASE_POOL_MAX", { absent: 10, min: 2, max: 1_000 }),
    connectTimeoutMs: wholeNumber(env, "DATABASE_CONNECT_TIMEOUT_MS", { absent: 5_000, min: 1, max: 600_000 }),
    statementTimeoutMs: wholeNumber(env, "DATABASE_STATEMENT_TIMEOUT_MS", { absent: 30_000, min: 1, max: 600_000 }),
    idleTimeoutMs: wholeNumber(env, "DATABASE_IDLE_TIMEOUT_MS", { absent: 60_000, min: 1, max: 86_400_000 }),
  };
}

/** The value is not shown where it is refused: it may hold a password. */
function postgresUrl(env: NodeJS.ProcessEnv, name: string): string | null {
  const value = env[name] || null;
  if (value === null || (/^postgres(ql)?:\/\//.test(value) && URL.canParse(value))) return value;
  throw new Error(`${name} is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE`);
}

function readNamespaces(env: NodeJS.ProcessEnv): boolean {
  const value = env["NAMESPACES"] || "closed";
  if (value === "open" || value === "closed") return value === "open";
  throw new Error(`NAMESPACES is "${value}"; allowed are open, closed`);
}

/** The value is not shown where it is refused: it may hold a password. */
function readRedis(env: NodeJS.ProcessEnv): Config["redis"] {
  const url = env["REDIS_URL"] || null;
  if (url === null) return null;
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Error("REDIS_URL is not of the form redis://USER:PASSWORD@HOST:PORT/DATABASE");
  }
  return { url, keyPrefix: env["REDIS_KEY_PREFIX"] || "gangway" };
}

function wholeNumber(
  env: NodeJS.ProcessEnv,
  name: string,
  allowed: { readonly absent: number; readonly min: number; readonly max: number },
): number {
  const text = env[name];
  if (!text) return allowed.absent;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= allowed.min && value <= allowed.max) return value;
  throw new Error(`${name} is "${text}"; allowed are ${allowed.min} to ${allowed.max}`);
}

const KEY_BYTES = 32;

/** The value itself is a secret and is not repeated in the error. */
function credentialsKey(text: string | undefined): Buffer | null {
  if (text === undefined || text === "") return null;
  const key = Buffer.from(text, "base64");
  if (key.length === KEY_BYTES) return key;
  throw new Error(
    `GANGWAY_CREDENTIALS_KEY must be ${KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${KEY_BYTES}\` prints them; it has ${key.length}`,
  );
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
