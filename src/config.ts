import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type Login, parseAddress, type TlsOptions } from "./adapters/quota/redis/address.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "./core/pods/pod-config.ts";
import { PENDING_LIMITS, type PendingLimits } from "./core/pods/read-pending.ts";
import { readPodConfig } from "./core/pods/read-pod-config.ts";
import { POOLS_MAX, TOKENS_MAX, WAITERS_MAX } from "./core/quota/limits.ts";
import type { Json } from "./runtime/json.ts";

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

/** Where counters are kept that several processes share. */
export type RedisConfig = {
  /** REDIS_URL: a server that stands alone, one that sentinels watch over, or a Redis Cluster. */
  readonly url: string;
  /** REDIS_KEY_PREFIX: what the names of keys begin with. */
  readonly keyPrefix: string;
  /** REDIS_USERNAME and REDIS_PASSWORD, before what the URL says. */
  readonly username: string | null;
  readonly password: string | null;
  /** REDIS_SENTINEL_USERNAME and REDIS_SENTINEL_PASSWORD: what the sentinels ask for. */
  readonly sentinel: Login;
  /** REDIS_CA_FILE, REDIS_CERT_FILE, REDIS_KEY_FILE and REDIS_TLS_SERVER_NAME. */
  readonly tls: TlsOptions;
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
  /** A job's events are told in its cluster too: GANGWAY_CLUSTER_EVENTS=on. */
  readonly clusterEvents: boolean;
  /** Images of the init containers that are added to pods. */
  readonly images: {
    /** GANGWAY_INIT_IMAGE: waits for a master's name; needs `sh` and `nslookup`. */
    readonly init: string;
    /** GANGWAY_KUBECTL_IMAGE: brings `kubectl` to the launchers of MPIJobs; needs `sh`, `cp`, `sed`, `grep`, `sleep` and `kubectl`. */
    readonly kubectl: string;
  };
  /** When a pod that does not start has failed: GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS and others. */
  readonly pending: PendingLimits;
  /** What the platform gives to pods: the file that GANGWAY_POD_CONFIG names; without it nothing. */
  readonly podConfig: PodConfig;
  /** That file, as it was read, and how a later text of it is; null without one. Parsing throws as the first time. */
  readonly podConfigFile: {
    readonly path: string;
    readonly text: string;
    readonly parse: (text: string) => PodConfig;
  } | null;
  /** How large a quota domain may grow: GANGWAY_POOLS_MAX, GANGWAY_TOKENS_MAX, and GANGWAY_WAITERS_MAX in the line of each pool. */
  readonly quotaBounds: { readonly poolsMax: number; readonly tokensMax: number; readonly waitersMax: number };
  /** Modules of kinds that are served beside our own: GANGWAY_PLUGINS, separated by commas. */
  readonly plugins: readonly string[];
  /** A call of a plugin is cut off after so long: GANGWAY_PLUGIN_TIMEOUT_SECONDS. */
  readonly pluginCallMsMax: number;
  /** The folder of the secrets that plugins may ask for, one a file: GANGWAY_SECRETS; null: there are none. */
  readonly secretsDirectory: string | null;
  /** Colours are not wanted: NO_COLOR. */
  readonly plain: boolean;
  /** Null without DATABASE_URL. */
  readonly database: DatabaseConfig | null;
  /** Null without REDIS_URL: tokens are counted in the process. */
  readonly redis: RedisConfig | null;
};

/** The environment that a program gets which the command line starts: its own, and these. */
export function programEnvironment(
  variables: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = process.env,
): Readonly<Record<string, string | undefined>> {
  return { ...env, ...variables };
}

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
    clusterEvents: readSwitch(env, "GANGWAY_CLUSTER_EVENTS"),
    images: {
      init: readImage(env, "GANGWAY_INIT_IMAGE", "busybox:1.36"),
      kubectl: readImage(env, "GANGWAY_KUBECTL_IMAGE", "kubeflow/kubectl-delivery:latest"),
    },
    pending: readPendingLimits(env),
    ...podConfig(env),
    quotaBounds: {
      poolsMax: wholeNumber(env, "GANGWAY_POOLS_MAX", { absent: POOLS_MAX, min: 1, max: 1_000_000 }),
      tokensMax: wholeNumber(env, "GANGWAY_TOKENS_MAX", { absent: TOKENS_MAX, min: 1, max: 100_000_000 }),
      waitersMax: wholeNumber(env, "GANGWAY_WAITERS_MAX", { absent: WAITERS_MAX, min: 1, max: 1_000_000 }),
    },
    plugins: (env["GANGWAY_PLUGINS"] ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
    pluginCallMsMax: wholeNumber(env, "GANGWAY_PLUGIN_TIMEOUT_SECONDS", { absent: 30, min: 1, max: 600 }) * 1000,
    secretsDirectory: env["GANGWAY_SECRETS"] || null,
    plain: Boolean(env["NO_COLOR"]),
    database: readDatabase(env),
    redis: readRedis(env),
  };
}

const PENDING_SECONDS_MAX = 86_400;

function readPendingLimits(env: NodeJS.ProcessEnv): PendingLimits {
  const ms = (name: string, absentMs: number) =>
    wholeNumber(env, name, { absent: absentMs / 1000, min: 0, max: PENDING_SECONDS_MAX }) * 1000;
  const usual = PENDING_LIMITS;
  return {
    createContainerErrorGraceMs: ms("GANGWAY_CREATE_CONTAINER_ERROR_GRACE_SECONDS", usual.createContainerErrorGraceMs),
    createContainerConfigErrorGraceMs: ms(
      "GANGWAY_CREATE_CONTAINER_CONFIG_ERROR_GRACE_SECONDS",
      usual.createContainerConfigErrorGraceMs,
    ),
    imagePullBackoffGraceMs: ms("GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS", usual.imagePullBackoffGraceMs),
    podPendingTimeoutMs: ms("GANGWAY_POD_PENDING_TIMEOUT_SECONDS", usual.podPendingTimeoutMs),
  };
}

/** YAML, of which JSON is a part. */
function podConfig(env: NodeJS.ProcessEnv): Pick<Config, "podConfig" | "podConfigFile"> {
  const path = env["GANGWAY_POD_CONFIG"];
  if (!path) return { podConfig: PLAIN_POD_CONFIG, podConfigFile: null };
  const refuse = (why: string) => new Error(`GANGWAY_POD_CONFIG names ${path}, ${why}`);
  const readable = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw refuse(`which cannot be read: ${error instanceof Error ? error.message : error}`);
    }
  };
  const parsed = (text: string): PodConfig => {
    const outcome = readPodConfig(
      readable(() => (parse(text) ?? {}) as Json),
      (name) => env[name],
    );
    if (outcome.kind === "refused") throw refuse(`where ${outcome.errors.join("; ")}`);
    return outcome.config;
  };
  const text = readable(() => readFileSync(path, "utf8"));
  return { podConfig: parsed(text), podConfigFile: { path, text, parse: parsed } };
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

function readSwitch(env: NodeJS.ProcessEnv, name: string): boolean {
  const value = env[name] || "off";
  if (value === "on" || value === "off") return value === "on";
  throw new Error(`${name} is "${value}"; allowed are on, off`);
}

/** The parts of an image's name, before its tag and digest. Source: the grammar of distribution/reference. */
const IMAGE = new RegExp(
  [
    "^(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*",
    "(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?",
    "(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?$",
  ].join(""),
);

function readImage(env: NodeJS.ProcessEnv, name: string, absent: string): string {
  const image = env[name] || absent;
  if (IMAGE.test(image)) return image;
  throw new Error(`${name} is "${image}"; allowed is an image such as registry.example:5000/tools/kubectl:1.36`);
}

function readNamespaces(env: NodeJS.ProcessEnv): boolean {
  const value = env["NAMESPACES"] || "closed";
  if (value === "open" || value === "closed") return value === "open";
  throw new Error(`NAMESPACES is "${value}"; allowed are open, closed`);
}

/** The URL is not shown where it is refused: it may hold a password. */
function readRedis(env: NodeJS.ProcessEnv): RedisConfig | null {
  const url = env["REDIS_URL"] || null;
  if (url === null) return null;
  try {
    parseAddress(url);
  } catch (error) {
    throw new Error(`REDIS_URL is not of a form that is known: ${error instanceof Error ? error.message : error}`);
  }
  return {
    url,
    keyPrefix: env["REDIS_KEY_PREFIX"] || "gangway",
    username: env["REDIS_USERNAME"] || null,
    password: env["REDIS_PASSWORD"] || null,
    sentinel: { username: env["REDIS_SENTINEL_USERNAME"] || null, password: env["REDIS_SENTINEL_PASSWORD"] || null },
    tls: readRedisTls(env, url),
  };
}

const REDIS_TLS = ["REDIS_CA_FILE", "REDIS_CERT_FILE", "REDIS_KEY_FILE", "REDIS_TLS_SERVER_NAME"] as const;

function readRedisTls(env: NodeJS.ProcessEnv, url: string): TlsOptions {
  const [caFile, certFile, keyFile, serverName] = REDIS_TLS.map((name) => env[name] || null);
  const unused = REDIS_TLS.find((name) => env[name]);
  if (unused !== undefined && !url.startsWith("rediss"))
    throw new Error(`${unused} is set, and REDIS_URL asks for no TLS: it would have to begin with rediss`);
  if (Boolean(certFile) !== Boolean(keyFile)) throw new Error("REDIS_CERT_FILE and REDIS_KEY_FILE belong together");
  return {
    ca: pem("REDIS_CA_FILE", caFile),
    cert: pem("REDIS_CERT_FILE", certFile),
    key: pem("REDIS_KEY_FILE", keyFile),
    serverName: serverName ?? null,
  };
}

/** The text of a file in PEM. */
function pem(name: string, file: string | null | undefined): string | null {
  if (!file) return null;
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(`${name} names ${file}, which cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (!text.includes("-----BEGIN ")) throw new Error(`${name} names ${file}, which is not in PEM`);
  return text;
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
