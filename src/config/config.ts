/** Reads the environment once, at the start of a service, and refuses values that are not allowed. */
import { resolve } from "node:path";
import { parseAllowedHosts } from "../adapters/cluster/allowed-hosts.ts";
import { type Login, parseAddress, type TlsOptions } from "../adapters/counters/redis/address.ts";
import type { ConnectionBounds } from "../api/connection-bounds.ts";
import { type AccessFile, readAccessFile } from "../core/access/access-file.ts";
import {
  type AuthenticationSettings,
  NO_AUTHENTICATION,
  readAuthentication,
} from "../core/access/authentication-settings.ts";
import { type CallLimitSettings, readCallLimits } from "../core/access/call-limits.ts";
import { type CredentialKeys, onlyDefault, parseKey, readCredentialKeys } from "../core/admin/credential-keys.ts";
import type { LossRule } from "../core/admin/lost-clusters.ts";
import { type ObjectPlace, readObjectPlaces } from "../core/admin/object-places.ts";
import { type PendingConfig, PLAIN_POD_CONFIG, type PodConfig } from "../core/pods/pod-config.ts";
import { POD_SECURITY_LEVELS, type PodSecurityLevel } from "../core/pods/policy/control.ts";
import type { PendingLimits } from "../core/pods/read/read-pending.ts";
import { readPodConfig } from "../core/pods/read-pod-config.ts";
import { LOG_FORMATS, type LogFormat } from "../runtime/log-format.ts";
import { type ClientConfig, type Environment, given, namesOf, readClientConfig } from "./client-config.ts";
import { type ConsoleConfig, readConsole } from "./config-console.ts";
import { parsedYaml, readable, readSettingsFile, readSettingsText, type SettingsFile } from "./config-files.ts";
import { readRedisTls, readTls, type TlsConfig } from "./config-tls.ts";
import { VARIABLES, type Variable, type VariableName } from "./variables.ts";

/** A PostgreSQL server that replaces the database in the data directory. */
export type DatabaseConfig = {
  /** DATABASE_URL. It may lead through a pooler. */
  readonly url: string;
  /** DATABASE_DIRECT_URL: leads to the server itself, for what needs a session of its own. */
  readonly directUrl: string;
  readonly poolMax: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly idleTimeoutMs: number;
};

/** The Redis whose counters several processes share. */
export type RedisConfig = {
  readonly url: string;
  readonly keyPrefix: string;
  /** Null: the user or password of the URL. */
  readonly username: string | null;
  readonly password: string | null;
  readonly sentinel: Login;
  readonly tls: TlsOptions;
};

const DAY_MS = 86_400_000;

/** The settings of the environment. Options of the command line override them. */
export type Config = ClientConfig & {
  /** Where the service serves its API. */
  readonly listen: string;
  /** The listener for browsers. */
  readonly console: ConsoleConfig;
  /** The certificate of every listener, as it was read. Null: no listener speaks TLS. */
  readonly tls: TlsConfig | null;
  /** Which callers the service knows. */
  readonly authentication: AuthenticationSettings;
  /** The file that says so, or null. */
  readonly authenticationFile: SettingsFile<AuthenticationSettings> | null;
  /** The file with roles and bindings, or null. */
  readonly accessFile: SettingsFile<AccessFile> | null;
  /** The file with limits of callers, or null. */
  readonly limitsFile: SettingsFile<CallLimitSettings> | null;
  readonly dataDirectory: string;
  /** Other processes take over from one that was silent for this long. */
  readonly leaseMs: number;
  /** How long a process that stops waits for calls that are under way. */
  readonly drainMs: number;
  /** The most reservations that a pool has at a time. */
  readonly reservationsPerPool: number;
  /** The first job of a namespace creates it. `gangway up` always does so. */
  readonly openNamespaces: boolean;
  /** The level of namespaces whose admin has set none. Null: that of the command that runs the service. */
  readonly podSecurity: PodSecurityLevel | null;
  /** The namespaces in which Gangway itself runs. No job may use them. */
  readonly reservedNamespaces: readonly string[];
  readonly logLevel: string;
  /** Null: as the output suggests. */
  readonly logFormat: LogFormat | null;
  /** Null: health is not served. */
  readonly httpListen: string | null;
  /** Null: metrics are neither kept nor served. */
  readonly metricsListen: string | null;
  /** Null: nothing is sent. A null name: OpenTelemetry's own variables give the service's name. */
  readonly otel: { readonly serviceName: string | null } | null;
  /** Encrypt the credentials of registered clusters. Without a current one, none can be stored. */
  readonly credentialsKeys: CredentialKeys;
  /** The file that gives them, or null. */
  readonly credentialsKeysFile: SettingsFile<CredentialKeys> | null;
  readonly allowLocalKubeconfigs: boolean;
  /** The hosts that registered clusters may have, as `parseAllowedHosts` reads them. */
  readonly clusterHosts: string;
  /** The most writes to one cluster that are under way at a time. */
  readonly clusterWritesMax: number;
  /** When a cluster that does not answer counts as lost. */
  readonly lossRule: LossRule;
  /** Gangs that move leave a lost cluster after so much silence. */
  readonly moveAfterMs: number;
  /** The events of a job are also Kubernetes events in its cluster. */
  readonly clusterEvents: boolean;
  /** The images of the init containers that Gangway adds to pods. */
  readonly images: { readonly init: string; readonly kubectl: string };
  /** When a pod that does not start has failed. */
  readonly pending: PendingLimits;
  /** The platform's settings for pods. */
  readonly podConfig: PodConfig;
  /** The file of these settings with its text; null without one. `parse` throws like `readConfig`. */
  readonly podConfigFile: {
    readonly path: string;
    readonly text: string;
    readonly parse: (text: string) => PodConfig;
  } | null;
  readonly connectionBounds: ConnectionBounds;
  /** How long entries of the audit log are kept. */
  readonly auditMs: number;
  /** The most namespaces that exist. */
  readonly namespacesMax: number;
  readonly quotaBounds: { readonly poolsMax: number; readonly tokensMax: number; readonly waitersMax: number };
  readonly pluginCallMsMax: number;
  /** The folder of the secrets that plugins may read. Null: there are none. */
  readonly secretsDirectory: string | null;
  /** The places of objects that plugins may read and write. */
  readonly objectPlaces: readonly ObjectPlace[];
  /** Null: the database is in the data directory. */
  readonly database: DatabaseConfig | null;
  /** Null: this process counts tokens in its memory. */
  readonly redis: RedisConfig | null;
};

/**
 * Reads the environment; relative paths begin at `workingDirectory`.
 * @throws Error naming the variable, its value unless it may hold a secret, and what is allowed.
 */
export function readConfig(workingDirectory: string, env: Environment = process.env): Config {
  const pods = readPodSettings(env);
  return {
    ...readClientConfig(workingDirectory, env),
    listen: textOf(env, "GANGWAY_LISTEN"),
    console: readConsole(env),
    tls: readTls(env),
    ...readAuthenticationFile(env),
    accessFile: readAccess(env),
    limitsFile: readLimits(env),
    dataDirectory: resolve(workingDirectory, textOf(env, "GANGWAY_DATA")),
    leaseMs: numberOf(env, "GANGWAY_LEASE_SECONDS") * 1000,
    drainMs: numberOf(env, "GANGWAY_DRAIN_SECONDS") * 1000,
    reservationsPerPool: numberOf(env, "GANGWAY_RESERVATIONS_PER_POOL"),
    openNamespaces: choiceOf(env, "NAMESPACES") === "open",
    podSecurity: readPodSecurity(env),
    reservedNamespaces: namesOf(textOf(env, "GANGWAY_RESERVED_NAMESPACES")),
    logLevel: choiceOf(env, "GANGWAY_LOG_LEVEL"),
    logFormat: readLogFormat(env),
    httpListen: given(env, "GANGWAY_HTTP_LISTEN"),
    metricsListen: given(env, "GANGWAY_METRICS_LISTEN"),
    otel: readOtel(env),
    ...readKeys(env),
    allowLocalKubeconfigs: given(env, "GANGWAY_LOCAL_KUBECONFIGS") === "allow",
    clusterHosts: readClusterHosts(env),
    clusterWritesMax: numberOf(env, "GANGWAY_CLUSTER_WRITES_MAX"),
    lossRule: {
      lostAfterMs: numberOf(env, "GANGWAY_CLUSTER_LOST_SECONDS") * 1000,
      shareMax: numberOf(env, "GANGWAY_CLUSTERS_LOST_PERCENT") / 100,
    },
    moveAfterMs: numberOf(env, "GANGWAY_CLUSTER_MOVE_SECONDS") * 1000,
    clusterEvents: choiceOf(env, "GANGWAY_CLUSTER_EVENTS") === "on",
    images: { init: readImage(env, "GANGWAY_INIT_IMAGE"), kubectl: readImage(env, "GANGWAY_KUBECTL_IMAGE") },
    pending: readPending(env, pods.podConfig.pending),
    ...pods,
    connectionBounds: {
      connectionsMax: numberOf(env, "GANGWAY_CONNECTIONS_MAX"),
      callsMax: numberOf(env, "GANGWAY_CALLS_PER_CONNECTION_MAX"),
      idleMs: numberOf(env, "GANGWAY_IDLE_CONNECTION_SECONDS") * 1000,
      ageMs: numberOf(env, "GANGWAY_CONNECTION_AGE_SECONDS") * 1000,
    },
    auditMs: numberOf(env, "GANGWAY_AUDIT_DAYS") * DAY_MS,
    namespacesMax: numberOf(env, "GANGWAY_NAMESPACES_MAX"),
    quotaBounds: {
      poolsMax: numberOf(env, "GANGWAY_POOLS_MAX"),
      tokensMax: numberOf(env, "GANGWAY_TOKENS_MAX"),
      waitersMax: numberOf(env, "GANGWAY_WAITERS_MAX"),
    },
    pluginCallMsMax: numberOf(env, "GANGWAY_PLUGIN_TIMEOUT_SECONDS") * 1000,
    secretsDirectory: given(env, "GANGWAY_SECRETS"),
    objectPlaces: readSettingsFile(env, "GANGWAY_OBJECT_STORES", readObjectPlaces)?.value ?? [],
    database: readDatabase(env),
    redis: readRedis(env),
  };
}

function readPodSecurity(env: Environment): PodSecurityLevel | null {
  const text = given(env, "GANGWAY_POD_SECURITY");
  if (text === null) return null;
  const level = POD_SECURITY_LEVELS.find((one) => one === text);
  if (level !== undefined) return level;
  throw new Error(`GANGWAY_POD_SECURITY is "${text}"; allowed are ${POD_SECURITY_LEVELS.join(", ")}`);
}

function readLogFormat(env: Environment): LogFormat | null {
  const text = given(env, "GANGWAY_LOG_FORMAT");
  if (text === null) return null;
  const format = LOG_FORMATS.find((one) => one === text);
  if (format !== undefined) return format;
  throw new Error(`GANGWAY_LOG_FORMAT is "${text}"; allowed are ${LOG_FORMATS.join(", ")}`);
}

type NameWith<Member extends keyof Variable> = {
  [Name in VariableName]: (typeof VARIABLES)[Name] extends Record<Member, unknown> ? Name : never;
}[VariableName];

/** The value of a variable, or its default. */
function textOf(env: Environment, name: NameWith<"default">): string {
  return given(env, name) ?? VARIABLES[name].default;
}

function numberOf(env: Environment, name: NameWith<"range">): number {
  const text = textOf(env, name);
  const [min, max] = VARIABLES[name].range;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Error(`${name} is "${text}"; allowed are ${min} to ${max}`);
}

function choiceOf(env: Environment, name: NameWith<"values">): string {
  const text = textOf(env, name);
  const values: readonly string[] = VARIABLES[name].values;
  if (values.includes(text)) return text;
  throw new Error(`${name} is "${text}"; allowed are ${values.join(", ")}`);
}

function readClusterHosts(env: Environment): string {
  const text = textOf(env, "GANGWAY_CLUSTER_HOSTS");
  try {
    parseAllowedHosts(text);
    return text;
  } catch (error) {
    throw new Error(`GANGWAY_CLUSTER_HOSTS has a wrong part: ${error instanceof Error ? error.message : error}`);
  }
}

/** A variable of the environment comes before the file of settings for pods. */
function readPending(env: Environment, file: PendingConfig): PendingLimits {
  const msOf = (name: NameWith<"range">, inFile: number | undefined) =>
    given(env, name) === null && inFile !== undefined ? inFile : numberOf(env, name) * 1000;
  return {
    createContainerErrorGraceMs: msOf("GANGWAY_CREATE_CONTAINER_ERROR_GRACE_SECONDS", file.createContainerErrorGraceMs),
    createContainerConfigErrorGraceMs: msOf(
      "GANGWAY_CREATE_CONTAINER_CONFIG_ERROR_GRACE_SECONDS",
      file.createContainerConfigErrorGraceMs,
    ),
    imagePullBackoffGraceMs: msOf("GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS", file.imagePullBackoffGraceMs),
    podPendingTimeoutMs: msOf("GANGWAY_POD_PENDING_TIMEOUT_SECONDS", file.podPendingTimeoutMs),
  };
}

/** Reads YAML, and JSON with it. */
function readPodSettings(env: Environment): Pick<Config, "podConfig" | "podConfigFile"> {
  const path = given(env, "GANGWAY_POD_CONFIG");
  if (path === null) return { podConfig: PLAIN_POD_CONFIG, podConfigFile: null };
  const refuse = (why: string) => new Error(`GANGWAY_POD_CONFIG names ${path}, ${why}`);
  const parsed = (text: string): PodConfig => {
    const outcome = readPodConfig(
      readable(() => parsedYaml(text), refuse),
      (name) => env[name],
    );
    if (outcome.kind === "refused") throw refuse(`where ${outcome.errors.join("; ")}`);
    return outcome.config;
  };
  const text = readable(() => readSettingsText(path), refuse);
  return { podConfig: parsed(text), podConfigFile: { path, text, parse: parsed } };
}

const OTEL_ENDPOINTS = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
] as const;
const OTEL_EXPORTERS = ["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"] as const;

/** An endpoint, or an exporter other than `none`, turns OpenTelemetry on. */
function readOtel(env: Environment): Config["otel"] {
  if (given(env, "OTEL_SDK_DISABLED")?.toLowerCase() === "true") return null;
  const isOn =
    OTEL_ENDPOINTS.some((name) => given(env, name) !== null) ||
    OTEL_EXPORTERS.some((name) => textOf(env, name) !== "none");
  const isNamed =
    given(env, "OTEL_SERVICE_NAME") !== null ||
    /(^|,)\s*service\.name=/.test(given(env, "OTEL_RESOURCE_ATTRIBUTES") ?? "");
  return isOn ? { serviceName: isNamed ? null : "gangway" } : null;
}

function readDatabase(env: Environment): DatabaseConfig | null {
  const url = postgresUrl(env, "DATABASE_URL");
  const directUrl = postgresUrl(env, "DATABASE_DIRECT_URL");
  if (url === null) return null;
  return {
    url,
    directUrl: directUrl ?? url,
    poolMax: numberOf(env, "DATABASE_POOL_MAX"),
    connectTimeoutMs: numberOf(env, "DATABASE_CONNECT_TIMEOUT_MS"),
    statementTimeoutMs: numberOf(env, "DATABASE_STATEMENT_TIMEOUT_MS"),
    idleTimeoutMs: numberOf(env, "DATABASE_IDLE_TIMEOUT_MS"),
  };
}

/** The error does not show the value, which may hold a password. */
function postgresUrl(env: Environment, name: VariableName): string | null {
  const value = given(env, name);
  if (value === null || (/^postgres(ql)?:\/\//.test(value) && URL.canParse(value))) return value;
  throw new Error(`${name} is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE`);
}

/** The parts of an image's name, before its tag and digest. Source: the grammar of distribution/reference. */
const SEGMENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const IMAGE = new RegExp(
  `^(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?${SEGMENT}(?:/${SEGMENT})*` +
    "(?::([A-Za-z0-9_][A-Za-z0-9_.-]*))?(?:@[A-Za-z][A-Za-z0-9]*:([0-9a-fA-F]+))?$",
);
const TAG_CHARS_MAX = 128;
const DIGEST_CHARS_MIN = 32;

function isImage(text: string): boolean {
  const [found, tag = "", digest] = IMAGE.exec(text) ?? [];
  return (
    found !== undefined && tag.length <= TAG_CHARS_MAX && (digest === undefined || digest.length >= DIGEST_CHARS_MIN)
  );
}

function readImage(env: Environment, name: NameWith<"default">): string {
  const image = textOf(env, name);
  if (isImage(image)) return image;
  throw new Error(`${name} is "${image}"; allowed is an image such as registry.example:5000/tools/kubectl:1.36`);
}

/** The error does not show the URL, which may hold a password. */
function readRedis(env: Environment): RedisConfig | null {
  const url = given(env, "REDIS_URL");
  if (url === null) return null;
  try {
    parseAddress(url);
  } catch (error) {
    throw new Error(`REDIS_URL has no known form: ${error instanceof Error ? error.message : error}`);
  }
  return {
    url,
    keyPrefix: textOf(env, "REDIS_KEY_PREFIX"),
    username: given(env, "REDIS_USERNAME"),
    password: given(env, "REDIS_PASSWORD"),
    sentinel: {
      username: given(env, "REDIS_SENTINEL_USERNAME"),
      password: given(env, "REDIS_SENTINEL_PASSWORD"),
    },
    tls: readRedisTls(env, url),
  };
}

function readAuthenticationFile(env: Environment): Pick<Config, "authentication" | "authenticationFile"> {
  const file = readSettingsFile(env, "GANGWAY_AUTHENTICATION_FILE", (value) => {
    const outcome = readAuthentication(value);
    return outcome.kind === "refused" ? outcome : { kind: "read", value: outcome.settings };
  });
  return { authentication: file?.value ?? NO_AUTHENTICATION, authenticationFile: file };
}

function readAccess(env: Environment): Config["accessFile"] {
  return readSettingsFile(env, "GANGWAY_ACCESS_FILE", (value) => {
    const outcome = readAccessFile(value);
    return outcome.kind === "refused" ? outcome : { kind: "read", value: outcome.file };
  });
}

function readLimits(env: Environment): Config["limitsFile"] {
  return readSettingsFile(env, "GANGWAY_LIMITS_FILE", (value) => {
    const outcome = readCallLimits(value);
    return outcome.kind === "refused" ? outcome : { kind: "read", value: outcome.settings };
  });
}

function readKeys(env: Environment): Pick<Config, "credentialsKeys" | "credentialsKeysFile"> {
  const own = readCredentialsKey(env);
  const file = readSettingsFile(env, "GANGWAY_CREDENTIALS_KEYS_FILE", (value) => readCredentialKeys(value, own));
  return { credentialsKeys: file?.value ?? onlyDefault(own), credentialsKeysFile: file };
}

/** The error does not show the value, which is a secret. */
function readCredentialsKey(env: Environment): Buffer | null {
  const text = given(env, "GANGWAY_CREDENTIALS_KEY");
  if (text === null) return null;
  const parsed = parseKey(text);
  if ("key" in parsed) return parsed.key;
  throw new Error(`GANGWAY_CREDENTIALS_KEY ${parsed.problem}`);
}
