/** Every environment variable that Gangway reads: what an operator can set, with its default and what it means. */
import { DEFAULT_CLUSTER_HOSTS } from "../adapters/cluster/allowed-hosts.ts";
import { CONNECTION_BOUNDS } from "../api/connection-bounds.ts";
import { NAMESPACES_MAX } from "../core/admin/bounds.ts";
import { PENDING_LIMITS } from "../core/pods/read/read-pending.ts";
import { POOLS_MAX, TOKENS_MAX, WAITERS_MAX } from "../core/quota/limits.ts";

export type Variable = {
  /** The value of a variable that is unset or empty. Omitted: such a variable has no effect. */
  readonly default?: string;
  readonly meaning: string;
  /** The smallest and the largest of the whole numbers that are allowed. */
  readonly range?: readonly [min: number, max: number];
  /** The values that are allowed. */
  readonly values?: readonly string[];
};

export const DEFAULT_ADDRESS = "127.0.0.1:7443";
/** Where `gangway up` serves browsers and programs that speak HTTP. */
export const DEFAULT_CONSOLE_ADDRESS = "127.0.0.1:7480";
const GRACE = [0, 86_400] as const;
const inSeconds = (ms: number) => String(ms / 1000);

/** By name. The file of pod settings may name more variables, for values of its own. */
export const VARIABLES = {
  GANGWAY_ADDRESS: {
    meaning:
      "The service's address for the command line, or several with commas. Unset: the context's, else 127.0.0.1:7443.",
  },
  GANGWAY_NAMESPACE: { meaning: "The namespace of the command line's jobs and tokens, instead of the context's." },
  GANGWAY_CONFIG: {
    meaning: "The file of the command line's contexts, instead of `~/.config/gangway/config.yaml`.",
  },
  GANGWAY_TLS: {
    default: "off",
    values: ["on", "off"],
    meaning: "`on`: the command line speaks TLS. The next four variables and the context can say so too.",
  },
  GANGWAY_CA_FILE: {
    meaning: "The PEM file of the authorities that sign the service's certificate. Unset: those that Node trusts.",
  },
  GANGWAY_CLIENT_CERT_FILE: {
    meaning: "The PEM file of the certificate that the command line shows to the service.",
  },
  GANGWAY_CLIENT_KEY_FILE: { meaning: "The PEM file of that certificate's private key." },
  GANGWAY_TLS_SERVER_NAME: {
    meaning: "The name in the service's certificate, if the command line reaches the service by another name.",
  },
  GANGWAY_TOKEN_FILE: {
    meaning: "The file of the bearer token that the command line sends; it is read again for each call.",
  },
  XDG_CONFIG_HOME: { meaning: "The folder of `gangway/config.yaml`, instead of `~/.config`." },
  KUBE_EDITOR: { meaning: "The command of the editor for `gangway edit`, before `EDITOR`." },
  EDITOR: { meaning: "The command of the editor for `gangway edit`. Unset: `vi`." },
  GANGWAY_LISTEN: { default: DEFAULT_ADDRESS, meaning: "The address at which the service serves its API." },
  GANGWAY_CONSOLE_LISTEN: {
    meaning:
      "The HOST:PORT at which the API is served over HTTP to browsers and programs; `off`: it is not. If unset: " +
      `${DEFAULT_CONSOLE_ADDRESS} in \`gangway up\` if that is free, \`off\` in \`gangway serve\`.`,
  },
  GANGWAY_CONSOLE_HOSTS: {
    meaning:
      "The names by which browsers reach that listener, beside its address: HOST or HOST:PORT, separated by commas. " +
      "Requests for other hosts, and of pages of other hosts, are refused.",
  },
  GANGWAY_TRUSTED_PROXIES: {
    meaning:
      "The proxies before that listener whose `X-Forwarded-For` names the caller's address for the audit log: " +
      "addresses and ranges such as 10.0.0.0/8, separated by commas.",
  },
  GANGWAY_TLS_CERT_FILE: {
    meaning:
      "The PEM file of the service's certificate and those above it. All its listeners then speak TLS 1.2 and later. " +
      "A changed file is read within seconds.",
  },
  GANGWAY_TLS_KEY_FILE: { meaning: "The PEM file of that certificate's private key." },
  GANGWAY_TLS_CLIENT_CA_FILE: { meaning: "The PEM file of the authorities that sign the certificates of clients." },
  GANGWAY_TLS_CLIENT: {
    meaning:
      "With `GANGWAY_TLS_CLIENT_CA_FILE`, `required` or `optional`: whether clients must show a certificate. Unset: " +
      "`required`.",
  },
  GANGWAY_AUTHENTICATION_FILE: {
    meaning:
      "The YAML file that names the issuers whose tokens the service takes, how callers are named, and where " +
      "browsers log in. Read again within seconds when it changes.",
  },
  GANGWAY_ACCESS_FILE: {
    meaning:
      "The YAML file with the first roles and bindings, or with all of them. " +
      "Read again within seconds when it changes.",
  },
  GANGWAY_LIMITS_FILE: {
    meaning:
      "The YAML file with limits of callers, for example of their calls per second. " +
      "Read again within seconds when it changes.",
  },
  GANGWAY_DATA: {
    default: ".gangway",
    meaning: "The folder of `gangway up`: its database, its simulated clusters and its log.",
  },
  GANGWAY_DRAIN_SECONDS: {
    default: "15",
    range: [0, 600],
    meaning:
      "How long a process with the role api that is asked to stop answers calls that are under way. " +
      "Ten seconds less than the time after which it is killed, or fewer.",
  },
  GANGWAY_LEASE_SECONDS: {
    default: "10",
    range: [1, 300],
    meaning: "Other processes take over the work of a process that is silent for this many seconds.",
  },
  GANGWAY_RESERVATIONS_PER_POOL: {
    default: "1",
    range: [1, 8],
    meaning: "How many jobs that have waited long have a reservation in a pool at the same time.",
  },
  NAMESPACES: {
    default: "closed",
    values: ["open", "closed"],
    meaning:
      "`open`: the first job of a namespace creates it. `closed`: an admin creates it. Always open in `gangway up`.",
  },
  GANGWAY_POD_SECURITY: {
    meaning:
      "The pod security level of namespaces whose admin has set none: `privileged`, `baseline` or `restricted`. If " +
      "unset: `baseline`; in `gangway up` without authentication also host paths, with a warning.",
  },
  GANGWAY_RESERVED_NAMESPACES: {
    default: "gangway",
    meaning: "The namespaces in which Gangway itself runs, by commas. No job may use them, nor those named `kube-…`.",
  },
  GANGWAY_LOG_LEVEL: {
    default: "info",
    values: ["trace", "debug", "info", "warn", "error", "silent"],
    meaning: "The least severe log lines that are written.",
  },
  GANGWAY_LOG_FORMAT: {
    meaning:
      "How log lines are written: `text` for people, one line each, or `json`. If unset: `text` for those of " +
      "`gangway serve` in a terminal, `json` in a pipe or a file.",
  },
  GANGWAY_HTTP_LISTEN: { meaning: "The HOST:PORT at which `/livez` and `/readyz` are served." },
  GANGWAY_METRICS_LISTEN: { meaning: "The HOST:PORT at which `/metrics` is served for Prometheus." },
  GANGWAY_CREDENTIALS_KEY: {
    meaning:
      "The key that encrypts the credentials of registered clusters and the tokens of browsers' sessions in the " +
      "database: 32 bytes in base64.",
  },
  GANGWAY_CREDENTIALS_KEYS_FILE: {
    meaning:
      "The YAML file with several such keys by name, and which of them encrypts. " +
      "Read again within seconds when it changes.",
  },
  GANGWAY_LOCAL_KUBECONFIGS: {
    meaning:
      "`allow`: a kubeconfig may be a file of the server's machine, name such files, run programs there, " +
      "and name a proxy.",
  },
  GANGWAY_CLUSTER_HOSTS: {
    default: DEFAULT_CLUSTER_HOSTS,
    meaning:
      "The hosts that registered clusters may have, separated by commas: names, `*.SUFFIX`, `*` for any, addresses, " +
      "and ranges, which alone allow loopback and link-local addresses.",
  },
  GANGWAY_CLUSTER_WRITES_MAX: {
    default: "50",
    range: [2, 500],
    meaning:
      "The most writes of a process to one cluster that are under way at a time. There are fewer while the cluster " +
      "throttles or slows down, and 2 at least.",
  },
  GANGWAY_CLUSTER_LOST_SECONDS: {
    default: "60",
    range: [20, 86_400],
    meaning:
      "A cluster that has not answered for so long counts as lost: gangs that never ran there go elsewhere. Only the " +
      "time counts in which a worker asked it in vain.",
  },
  GANGWAY_CLUSTER_MOVE_SECONDS: {
    default: "900",
    range: [20, 2_592_000],
    meaning:
      "Gangs that ran in a lost cluster run elsewhere once it has not answered for so long and they fit there, if " +
      "their queue or namespace says so. A job may set another time.",
  },
  GANGWAY_CLUSTERS_LOST_PERCENT: {
    default: "34",
    range: [0, 100],
    meaning:
      "While several clusters are silent, they count as lost only if they have at most this share of all devices. " +
      "Beyond it an operator has to say so.",
  },
  GANGWAY_CLUSTER_EVENTS: {
    default: "off",
    values: ["on", "off"],
    meaning: "`on`: the events of a job are also Kubernetes events in its cluster.",
  },
  GANGWAY_INIT_IMAGE: {
    default: "busybox:1.36",
    meaning: "The image of the init container that waits for a master's DNS name; it needs `sh` and `nslookup`.",
  },
  GANGWAY_KUBECTL_IMAGE: {
    default: "kubeflow/kubectl-delivery:latest",
    meaning:
      "The image that brings `kubectl` to MPIJob launchers; it needs `kubectl`, `sh`, `cp`, `sed`, `grep` and `sleep`.",
  },
  GANGWAY_IMAGE_PULL_BACKOFF_GRACE_SECONDS: {
    default: inSeconds(PENDING_LIMITS.imagePullBackoffGraceMs),
    range: GRACE,
    meaning: "A pod that is in ImagePullBackOff for this long is started again, and counts as a USER failure.",
  },
  GANGWAY_CREATE_CONTAINER_ERROR_GRACE_SECONDS: {
    default: inSeconds(PENDING_LIMITS.createContainerErrorGraceMs),
    range: GRACE,
    meaning: "A job fails if one of its pods is in CreateContainerError for this long.",
  },
  GANGWAY_CREATE_CONTAINER_CONFIG_ERROR_GRACE_SECONDS: {
    default: inSeconds(PENDING_LIMITS.createContainerConfigErrorGraceMs),
    range: GRACE,
    meaning: "A job fails if one of its pods is in CreateContainerConfigError for this long.",
  },
  GANGWAY_POD_PENDING_TIMEOUT_SECONDS: {
    default: inSeconds(PENDING_LIMITS.podPendingTimeoutMs),
    range: GRACE,
    meaning: "A pod that is pending for this long is started again, and counts as a USER failure; 0 disables this.",
  },
  GANGWAY_POD_CONFIG: { meaning: "The YAML file of the settings that the platform gives to all pods." },
  GANGWAY_CONNECTIONS_MAX: {
    default: String(CONNECTION_BOUNDS.connectionsMax),
    range: [1, 1_000_000],
    meaning: "The most connections of clients at a time; further ones are closed at once.",
  },
  GANGWAY_CALLS_PER_CONNECTION_MAX: {
    default: String(CONNECTION_BOUNDS.callsMax),
    range: [1, 100_000],
    meaning: "The most calls at a time on one connection, watches included; clients keep further ones back.",
  },
  GANGWAY_IDLE_CONNECTION_SECONDS: {
    default: inSeconds(CONNECTION_BOUNDS.idleMs),
    range: [1, 86_400],
    meaning: "A connection without a call for this many seconds is closed; clients connect again by themselves.",
  },
  GANGWAY_CONNECTION_AGE_SECONDS: {
    default: inSeconds(CONNECTION_BOUNDS.ageMs),
    range: [10, 86_400],
    meaning: "Where clients show certificates, a connection this old is closed: withdrawn ones count no longer then.",
  },
  GANGWAY_AUDIT_DAYS: {
    default: "365",
    range: [1, 36_500],
    meaning: "Entries of the audit log are kept for this many days.",
  },
  GANGWAY_NAMESPACES_MAX: {
    default: String(NAMESPACES_MAX),
    range: [1, 1_000_000],
    meaning: "The most namespaces; a job or call that would create another one is refused.",
  },
  GANGWAY_POOLS_MAX: {
    default: String(POOLS_MAX),
    range: [1, 1_000_000],
    meaning: "The most pools that there may be, flavors included.",
  },
  GANGWAY_TOKENS_MAX: {
    default: String(TOKENS_MAX),
    range: [1, 100_000_000],
    meaning: "The most tokens that may be held in a quota domain.",
  },
  GANGWAY_WAITERS_MAX: {
    default: String(WAITERS_MAX),
    range: [1, 1_000_000],
    meaning: "The most requests that may be in the waiting line of a pool.",
  },
  GANGWAY_PLUGINS: {
    meaning:
      "Modules whose kinds of jobs are also served, separated by commas: paths that begin with ./ or /, or packages.",
  },
  GANGWAY_PLUGIN_TIMEOUT_SECONDS: {
    default: "30",
    range: [1, 600],
    meaning: "A call of a plugin that takes longer is aborted and counts as failed.",
  },
  GANGWAY_OBJECT_STORES: {
    meaning: "A YAML file with the places of objects that plugins may read and write, as docs/plugins.md has them.",
  },
  GANGWAY_SECRETS: { meaning: "The folder of the secrets that plugins may read, one file for each secret." },
  NO_COLOR: { meaning: "Any value: the command line prints no colours." },
  DATABASE_URL: {
    meaning: "The PostgreSQL database, postgres://USER:PASSWORD@HOST:PORT/DATABASE, directly or through a pooler.",
  },
  DATABASE_DIRECT_URL: {
    meaning: "The same database without the pooler, for notifications and migrations; DATABASE_URL if unset.",
  },
  DATABASE_POOL_MAX: {
    default: "10",
    range: [2, 1_000],
    meaning: "The most connections of one process, besides one for notifications.",
  },
  DATABASE_CONNECT_TIMEOUT_MS: {
    default: "5000",
    range: [1, 600_000],
    meaning: "The longest wait for a connection, a new one or one that becomes free.",
  },
  DATABASE_STATEMENT_TIMEOUT_MS: {
    default: "30000",
    range: [1, 600_000],
    meaning: "The longest time that a statement may run and that a transaction may be idle.",
  },
  DATABASE_IDLE_TIMEOUT_MS: {
    default: "60000",
    range: [1, 86_400_000],
    meaning: "A connection that is unused for this long is closed.",
  },
  REDIS_URL: {
    meaning:
      "The Redis that counts tokens for several processes: a server, sentinels (redis+sentinel) or a Redis Cluster.",
  },
  REDIS_KEY_PREFIX: { default: "gangway", meaning: "The beginning of the names of keys and channels, after a `{`." },
  REDIS_USERNAME: { meaning: "The user of Redis, instead of the one in REDIS_URL." },
  REDIS_PASSWORD: { meaning: "The password of Redis, instead of the one in REDIS_URL." },
  REDIS_SENTINEL_USERNAME: { meaning: "The user of the sentinels." },
  REDIS_SENTINEL_PASSWORD: { meaning: "The password of the sentinels." },
  REDIS_CA_FILE: {
    meaning: "The PEM file of the authorities that sign Redis' certificates, if the system lacks them.",
  },
  REDIS_CERT_FILE: { meaning: "The PEM file of the certificate that Gangway shows to Redis." },
  REDIS_KEY_FILE: { meaning: "The PEM file of that certificate's private key." },
  REDIS_TLS_SERVER_NAME: { meaning: "The name in Redis' certificates, if Redis is reached by another name." },
  OTEL_SDK_DISABLED: { meaning: "`true`: no traces and no metrics are sent." },
  OTEL_EXPORTER_OTLP_ENDPOINT: { meaning: "The collector that traces and metrics are sent to." },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: { meaning: "The collector that traces are sent to." },
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: { meaning: "The collector that metrics are sent to." },
  OTEL_TRACES_EXPORTER: { default: "none", meaning: "The exporter of traces." },
  OTEL_METRICS_EXPORTER: { default: "none", meaning: "The exporter of metrics." },
  OTEL_SERVICE_NAME: { meaning: "The service's name in traces and metrics; `gangway` if unset." },
  OTEL_RESOURCE_ATTRIBUTES: { meaning: "Attributes of traces and metrics, such as `service.name=gangway`." },
} as const satisfies Readonly<Record<string, Variable>>;

export type VariableName = keyof typeof VARIABLES;
