/** Recognizes a pooler in front of PostgreSQL at the start, and says what must be set for it. */
import { missingLimits, notifies, sessionUse } from "../adapters/store/db/pooler.ts";
import type { DatabaseConfig } from "../config/config.ts";

type PoolerFound =
  /** Calls would fail. */
  | { readonly kind: "refused"; readonly message: string }
  /** Calls succeed. Each warning says what is missing, and what to set. */
  | { readonly kind: "usable"; readonly warnings: readonly string[] };

export const NEEDS_DIRECT_URL =
  "a pooler that lends sessions for one transaction only (PgBouncer: pool_mode = transaction)";

const PER_STATEMENT =
  "DATABASE_URL leads through a pooler that lends sessions for one statement only (PgBouncer: pool_mode = " +
  "statement), so transactions fail: set pool_mode = transaction and DATABASE_DIRECT_URL, or pool_mode = session";

const SHARED =
  `DATABASE_URL leads through ${NEEDS_DIRECT_URL}, where prepared statements fail: set DATABASE_DIRECT_URL to the ` +
  "address of the PostgreSQL server itself, and leave DATABASE_URL as it is";

/** Asks the server by short connections of their own. Throws an `UnavailableError` if it cannot be reached. */
export async function recognizePooler(config: DatabaseConfig): Promise<PoolerFound> {
  const { url, directUrl, connectTimeoutMs, statementTimeoutMs } = config;
  const [pooled, direct] = [
    { url, connectTimeoutMs },
    { url: directUrl, connectTimeoutMs },
  ];
  // First, because a pooler that takes no settings refuses the connections that ask for them.
  const limits = { statement_timeout: statementTimeoutMs, idle_in_transaction_session_timeout: statementTimeoutMs };
  const missing = await missingLimits(pooled, limits);
  const use = await sessionUse(pooled);
  if (use === "perStatement") return { kind: "refused", message: PER_STATEMENT };
  if (use === "shared" && directUrl === url) return { kind: "refused", message: SHARED };
  const directUse = directUrl === url ? use : await sessionUse(direct);
  const hears = directUse === "own" && (await notifies(direct));
  return {
    kind: "usable",
    warnings: [
      ...missing.map((name) => limitAdvice(name, url, statementTimeoutMs)),
      ...(hears ? [] : [noNews(config)]),
    ],
  };
}

function limitAdvice(name: string, url: string, ms: number): string {
  const database = decodeURIComponent(new URL(url).pathname.slice(1)) || "DATABASE";
  return (
    `${name} is not in force for connections to DATABASE_URL, probably because of a pooler: run ` +
    `alter database "${database}" set ${name} = '${ms}ms', then let the pooler reconnect`
  );
}

function noNews({ url, directUrl }: DatabaseConfig): string {
  const by = url === directUrl ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
  return (
    `${by} delivers no notifications, probably because of ${NEEDS_DIRECT_URL}, so processes notice the changes of ` +
    "others seconds later: set DATABASE_DIRECT_URL to the address of the PostgreSQL server itself"
  );
}
