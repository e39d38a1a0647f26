export type Host = { readonly host: string; readonly port: number };

/** What a server is asked for and shown; secrets are never part of a message. */
export type Login = { readonly username: string | null; readonly password: string | null };

/** Certificates in PEM; null: what the machine trusts, and none of our own. */
export type TlsOptions = {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** The name that the servers' certificates are checked against; null: the host that is connected to. */
  readonly serverName: string | null;
};

type Common = Login & {
  readonly tls: boolean;
  /** Where to begin; one for a server that stands alone. */
  readonly hosts: readonly [Host, ...Host[]];
};

/** Where Redis is, as its URL says. */
export type RedisAddress =
  | (Common & { readonly kind: "standalone"; readonly db: number })
  /** Hosts are those of sentinels, `name` is what they call the primary. */
  | (Common & { readonly kind: "sentinel"; readonly name: string; readonly db: number })
  | (Common & { readonly kind: "cluster" });

const DEFAULT_PORT = { standalone: 6379, sentinel: 26379, cluster: 6379 };

const FORMS = [
  "redis://USER:PASSWORD@HOST:PORT/DATABASE",
  "redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE",
  "redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT",
].join(", ");

const URL_FORM =
  /^redis(?<tls>s)?(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<login>[^@/]*)@)?(?<hosts>[^@/?#]+)(?:\/(?<path>[^?#]*))?$/;

/** Throws an error that repeats nothing of a URL that it does not understand: it may hold a password. */
export function parseAddress(url: string): RedisAddress {
  const groups = URL_FORM.exec(url)?.groups;
  if (groups === undefined) throw malformed("it looks like none of them");
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
    if (others.length > 0) throw malformed("several hosts are for +sentinel and +cluster");
    return { kind, ...common, db: parseDb(path) };
  }
  if (kind === "cluster") {
    if (path.join("") !== "") throw malformed("a Redis Cluster has no databases, so no path belongs there");
    return { kind, ...common };
  }
  const [name = "", ...rest] = path;
  if (name === "") throw malformed("after the sentinels comes the name that they give to the primary");
  return { kind, ...common, name, db: parseDb(rest) };
}

/** Names it without its secrets. */
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
  if (host === undefined || number < 1 || number > 65_535) throw malformed("a host is not HOST or HOST:PORT");
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
  if (rest.join("") !== "" || !/^\d{0,5}$/.test(text)) throw malformed("the database is not a number");
  return Number(text);
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw malformed(`${what} is not percent-encoded`);
  }
}

function malformed(why: string): Error {
  return new Error(`allowed are ${FORMS}, each with rediss for TLS: ${why}`);
}
