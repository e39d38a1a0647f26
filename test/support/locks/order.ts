/** The order in which transactions lock rows, as data. `docs/architecture/locks.md` explains it. */

/** What is known of a table whose rows transactions lock. */
export type LockedTable = {
  readonly name: string;
  /** The columns that name one row, for each key of the table. No columns: the table has one row. */
  readonly keys: readonly (readonly string[])[];
  /** Rows of this table are locked in any order by a transaction that has locked rows of one of these tables. */
  readonly gates?: readonly string[];
  /** True: nobody waits for rows that are inserted here, since no two transactions insert the same key. */
  readonly isLog?: true;
};

/** Every table whose rows are locked, in the order in which a transaction locks them. */
export const LOCK_ORDER: readonly LockedTable[] = [
  { name: "workers", keys: [["name"]] },
  { name: "counters_holder", keys: [[]] },
  { name: "leases", keys: [["name"]] },
  { name: "decision_clock", keys: [[]] },
  { name: "bucket_leases", keys: [["bucket"]] },
  { name: "alone_steps", keys: [["worker"]] },
  { name: "step_notes", keys: [["id"]] },
  { name: "request_ids", keys: [["namespace", "request_id"]] },
  { name: "namespaces", keys: [["name"]] },
  { name: "queues", keys: [["name"]] },
  { name: "tenant_limits", keys: [["kind", "name"]] },
  { name: "priority_class_default", keys: [[]] },
  { name: "priority_classes", keys: [["name"]], gates: ["priority_class_default"] },
  { name: "jobs", keys: [["uid"], ["namespace", "name"]] },
  { name: "installation", keys: [[]] },
  { name: "training_runtimes", keys: [["namespace", "name"]], gates: ["namespaces"] },
  { name: "clusters", keys: [["name"]] },
  { name: "asks", keys: [["hash"]] },
  // Triggers write it: nobody else waits for a row.
  { name: "unused_asks", keys: [["id"]], isLog: true },
  { name: "admissions", keys: [["job_uid", "number"]], gates: ["jobs"] },
  { name: "admission_clusters", keys: [["job_uid", "admission", "cluster"]], gates: ["jobs"] },
  { name: "refusals", keys: [["job_uid"]], gates: ["jobs"] },
  // Those of one namespace change under its lock, or go with their job.
  { name: "failure_logs", keys: [["id"]], gates: ["jobs", "namespaces"] },
  { name: "cluster_capacity", keys: [["cluster", "kind", "name"]], gates: ["clusters"] },
  { name: "cluster_uids", keys: [["uid"], ["cluster"]] },
  { name: "job_log", keys: [[]] },
  { name: "job_changes", keys: [["id"]], gates: ["jobs", "job_log"] },
  { name: "job_events", keys: [["id"]], isLog: true },
  { name: "queue_preemptions", keys: [["queue", "at_ms"]] },
  { name: "quota_domains", keys: [["name"]] },
  { name: "allocation_sums", keys: [["pool", "scope", "name"]], gates: ["quota_domains"] },
  { name: "token_heirs", keys: [["id"], ["job_uid", "pool"]], gates: ["allocation_sums"] },
  { name: "allocations", keys: [["id"]], gates: ["quota_domains", "allocation_sums"] },
  { name: "token_tombstones", keys: [["pool", "token", "holder", "project", "namespace"]], gates: ["quota_domains"] },
  { name: "pools", keys: [["name"]], gates: ["quota_domains"] },
  { name: "queue_quotas", keys: [["queue", "position"]], gates: ["quota_domains", "queues"] },
  { name: "quota_grants", keys: [["queue", "flavor"]], gates: ["quota_domains"] },
  { name: "access_roles", keys: [["name"]] },
  { name: "access_bindings", keys: [["name"]] },
  { name: "robot_tokens", keys: [["name"]] },
  { name: "console_sessions", keys: [["id_hash"]], gates: ["installation"] },
  { name: "audit_entries", keys: [["id"]], isLog: true },
  // The partitions in which entries are deleted.
  { name: "audit_entries_first", keys: [["id"]] },
  { name: "audit_entries_default", keys: [["id"]] },
];

/** Tables that only migrations write. */
export const NEVER_LOCKED: readonly string[] = ["migrations"];

/** Callers' grants wait for these. A transaction that has locked one of them runs at most so many more statements. */
export const GRANTS_WAIT_FOR: readonly string[] = ["quota_domains", "allocation_sums"];
export const STATEMENTS_AFTER_MAX = 4;

/** Transactions that may break a rule, by their file and function, with the reason. There are none. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {};
