/** Digests of the tables, which show whether a call changed anything. */
import type { Departed } from "./departed.ts";
import type { Subject } from "./subject.ts";

/** Tables that the service also changes without a call: leases, timers, the planner, workers and the event log. */
const MOVING_TABLES = [
  "admission_clusters",
  "admissions",
  "allocation_sums",
  "alone_steps",
  "asks",
  "bucket_leases",
  "cluster_capacity",
  "console_sessions",
  "counters_holder",
  "decision_clock",
  "failure_logs",
  "installation",
  "job_changes",
  "job_events",
  "job_log",
  "leases",
  "migrations",
  "queue_preemptions",
  "quota_grants",
  "refusals",
  "step_notes",
  "token_tombstones",
  "unused_asks",
  "workers",
];
/** Columns that it changes without a call, and the rows that it leaves alone otherwise. */
const MOVING: Readonly<Record<string, { readonly columns: readonly string[]; readonly still?: string }>> = {
  clusters: {
    columns: [
      "admission_counter",
      "capacity",
      "capacity_epoch",
      "capacity_floor",
      "capacity_ms",
      "capacity_sequence",
      "observed_ms",
      "reachable",
      "silence_ms",
      "silent_ms",
      "unusable",
    ],
  },
  // Preemptions for a queue with a budget of them, and ends of grants, raise the version of the limits.
  quota_domains: { columns: ["epoch", "pruned_fence", "buried", "limits_version"] },
  // A worker removes jobs that are deleted, or whose time to live is over.
  jobs: {
    columns: [
      "ask_hash",
      "cluster",
      "completion_ms",
      "gang_version",
      "generation",
      "gang",
      "phase",
      "recheck_at_ms",
      "set_aside_ms",
      "status",
      "version",
    ],
    still: "delete_ms is null and spec->'runPolicy'->>'ttlSecondsAfterFinished' is null",
  },
  // A reaper takes back tokens that lapsed. DEPARTED are tokens whose callers have left.
  allocations: {
    columns: ["confirmed", "shrunk"],
    still:
      "job_uid is null and released_ms is null and (lease_ms is null or lease_ms >= 3600000) " +
      "and token not in (select json_array_elements_text(DEPARTED))",
  },
};

const COLUMNS = `
select table_name as table, string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns
  from information_schema.columns where table_schema = 'public'
   and not (table_name, column_name) in (MOVING)
   and not (select relispartition from pg_class where oid = quote_ident(table_name)::regclass)
 group by table_name order by table_name`;

export type Digests = Readonly<Record<string, string>>;

/**
 * Makes the function that takes a digest of every table. New tables are in it until they are named above. It leaves out
 * tokens of callers that have left. `rows`: a condition for each table of which it takes only some rows.
 */
export async function digester(
  subject: Subject,
  departed: Pick<Departed, "tokens">,
  rows: Readonly<Record<string, string>> = {},
): Promise<() => Promise<Digests>> {
  const moving = Object.entries(MOVING).flatMap(([table, { columns }]) =>
    columns.map((name) => `('${table}', '${name}')`),
  );
  const tables = await subject.query(COLUMNS.replace("MOVING", moving.join(", ")));
  const parts = tables
    .filter(({ table }) => !MOVING_TABLES.includes(String(table)))
    .map(({ table, columns }) => {
      const still = MOVING[String(table)]?.still ?? "true";
      const taken = rows[String(table)] ?? "true";
      const hashes = `select md5(row(${columns})::text) as row from ${table} where (${still}) and (${taken})`;
      const digest = "md5(coalesce(string_agg(row, '' order by row), ''))";
      return `select '${table}' as table, ${digest} as digest from (${hashes}) r`;
    });
  const sql = parts.join(" union all ");
  return async () => {
    const digests = await subject.query(sql.replace("DEPARTED", () => literal(departed.tokens)));
    return Object.fromEntries(digests.map(({ table, digest }) => [String(table), String(digest)]));
  };
}

/** Texts as a JSON array in SQL. PostgreSQL stores no NUL and no half of a surrogate pair. */
function literal(texts: readonly string[]): string {
  const storable = texts.filter((text) => text.isWellFormed() && !text.includes("\0"));
  return `'${JSON.stringify(storable).replaceAll("'", "''")}'::json`;
}

/** The tables whose digests differ. */
export function changedTables(before: Digests, after: Digests): readonly string[] {
  return Object.keys(after).filter((table) => before[table] !== after[table]);
}
