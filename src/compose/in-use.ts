/** Says which database, counters and clusters a process uses, for its first line of output. */
import { hostText, parseAddress } from "../adapters/counters/redis/address.ts";
import type { Config } from "../config/config.ts";

export type PartsInUse = {
  readonly database: Config["database"];
  /** The directory of the database of a process without a server. */
  readonly directory: string | null;
  readonly redis: Config["redis"];
  /** False: this process neither plans nor serves callers. */
  readonly counts: boolean;
  readonly clusters: readonly { readonly name: string; readonly simulated: boolean }[];
};

/** More clusters than this are not named. */
const NAMES_MAX = 8;

/** One line without line break. Of a URL it shows host, port and database alone: the rest may hold secrets. */
export function describeParts({ database, directory, redis, counts, clusters }: PartsInUse): string {
  const counters = redis === null ? "in the memory of this process" : redisText(redis.url);
  return [
    `database: ${database === null ? `embedded in ${directory}` : postgresText(database.url)}`,
    `counters: ${counts ? counters : "none"}`,
    `clusters: ${clustersText(clusters)}`,
  ].join(" · ");
}

function postgresText(text: string): string {
  const url = new URL(text);
  const host = url.hostname || url.searchParams.get("host") || "localhost";
  return `PostgreSQL ${decodeURIComponent(host)}:${url.port || 5432}${url.pathname === "/" ? "" : url.pathname}`;
}

function redisText(url: string): string {
  const address = parseAddress(url);
  const hosts = address.hosts.map(hostText).join(", ");
  if (address.kind === "sentinel") return `Redis ${address.name} of the sentinels ${hosts}`;
  return `${address.kind === "cluster" ? "Redis Cluster" : "Redis"} ${hosts}`;
}

function clustersText(clusters: PartsInUse["clusters"]): string {
  const namesOf = (simulated: boolean) => clusters.filter((cluster) => cluster.simulated === simulated);
  const groups = [
    { names: namesOf(true).map(({ name }) => name), suffix: " (simulated)" },
    { names: namesOf(false).map(({ name }) => name), suffix: "" },
  ].filter(({ names }) => names.length > 0);
  return groups.map(({ names, suffix }) => `${listText(names)}${suffix}`).join("; ") || "none registered";
}

function listText(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
