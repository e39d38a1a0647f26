export type Host = { readonly host: string; readonly port: number };

/** The login that a server gets. No message repeats it. */
export type Login = { readonly username: string | null; readonly password: string | null };

/**
 * Certificates in PEM. Null `ca`: the authorities that the machine trusts. Null `cert` and `key`: no client
 * certificate.
 */
export type TlsOptions = {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** The name to check the servers' certificates against. Null: the host of the connection. */
  readonly serverName: string | null;
};

type Common = Login & {
  readonly tls: boolean;
  /** The first hosts to connect to. Exactly one for a standalone server. */
  readonly hosts: readonly [Host, ...Host[]];
};

/** The address of Redis, read from its URL. */
export type RedisAddress =
  | (Common & { readonly kind: "standalone"; readonly db: number })
  /** `hosts` are the sentinels, `name` is their name for the primary. */
  | (Common & { readonly kind: "sentinel"; readonly name: string; readonly db: number })
  | (Common & { readonly kind: "cluster" });

const DEFAULT_PORT = { standalone: 6379, sentinel: 26379, cluster: 6379 };

const FORMS = [
  "redis://USER:PASSWORD@HOST:PORT/DATABASE",
  "redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE",
  "redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT",
].join(", ");

const URL_FORM = new RegExp(
  "^redis(?<tls>s)?(?:\\+(?<kind>sentinel|cluster))?://" +
    "(?:(?<login>[^@/]*)@)?(?<hosts>[^@/?#]+)(?:/(?<path>[^?#]*))?$",
);

/** Throws if the URL is malformed. The error repeats no part of the URL, which may hold a password. */
export function parseAddress(url: string): RedisAddress {
  const groups = URL_FORM.exec(url)?.groups;
  if (groups === undefined) throw malformed("it matches none of these forms");
  const kind = (groups["kind"] ?? "standalone") as RedisAddress["kind"];
  const [first, ...others] = (groups["hosts"] ?? "").split(",").map((text) => parseHost(text, DEFAULT_PORT[kind]));
  if (first === undefined) throw malformed("it names no host");
  const common = {
    tls: groups["tls"] !== undefined,
    hosts: [first, ...others],
    ...parseLogin(groups["login"]),
  } as const;
  const path = (groups["path"] ?? "").split("/").map((part) => decoded(part, "its path"));
  if (kind === "standalone") {
    if (others.length > 0) throw malformed("only +sentinel and +cluster take several hosts");
    return { kind, ...common, db: parseDb(path) };
  }
  if (kind === "cluster") {
    if (path.join("") !== "") throw malformed("it must not name a path, since a Redis Cluster has no databases");
    return { kind, ...common };
  }
  const [name = "", ...rest] = path;
  if (name === "") throw malformed("the sentinels' name for the primary must follow the hosts");
  return { kind, ...common, name, db: parseDb(rest) };
}

/** Describes the address without its secrets. */
export function describeAddress(address: RedisAddress): string {
  const hosts = address.hosts.map(hostText).join(", ");
  if (address.kind === "sentinel") return `Redis ${address.name} of the sentinels ${hosts}`;
  return `${address.kind === "cluster" ? "the Redis Cluster" : "Redis"} at ${hosts}`;
}

export function hostText({ host, port }: Host): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function parseHost(text: string, defaultPort: number): Host {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535) throw malformed("each host must be HOST or HOST:PORT");
  return { host, port: number };
}

function parseLogin(text: string | undefined): Login {
  if (text === undefined) return { username: null, password: null };
  const [username = "", ...password] = text.split(":");
  return {
    username: decoded(username, "its user") || null,
    password: password.length === 0 ? null : decoded(password.join(":"), "its password"),
  };
}

function parseDb(path: readonly string[]): number {
  const [text = "", ...rest] = path;
  if (rest.join("") !== "" || !/^\d{0,5}$/.test(text)) throw malformed("the database must be a number");
  return Number(text);
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw malformed(`${what} must be percent-encoded`);
  }
}

function malformed(why: string): Error {
  return new Error(`allowed are ${FORMS}, each also with rediss for TLS; ${why}`);
}
