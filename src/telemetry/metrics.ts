/** Every metric of the service. A test compares `deploy/METRICS.md`, which documents them for operators, with this. */
export const METRICS = {
  apiCallDuration: {
    kind: "histogram",
    name: "gangway_api_call_duration_seconds",
    help: "How long unary calls of the API took, by method and gRPC code",
    labels: ["method", "code"],
  },
  queueUsed: {
    kind: "gauge",
    name: "gangway_queue_used",
    help: "How much of each flavor a queue uses, also by queues below it beyond their guarantees",
    labels: ["queue", "flavor"],
  },
  queueNominal: {
    kind: "gauge",
    name: "gangway_queue_nominal",
    help: "How much of each flavor a queue may use without borrowing: its quota and its grant",
    labels: ["queue", "flavor"],
  },
  queueBorrowed: {
    kind: "gauge",
    name: "gangway_queue_borrowed",
    help: "How much of what a queue uses of each flavor is beyond its quota and what queues below lend to it",
    labels: ["queue", "flavor"],
  },
  flavorAllocatable: {
    kind: "gauge",
    name: "gangway_flavor_allocatable",
    help: "How much of each flavor the schedulable nodes of a cluster have, such as GPUs, as last observed",
    labels: ["cluster", "flavor"],
  },
  clusterState: {
    kind: "gauge",
    name: "gangway_cluster_state",
    help: "1 for the state that a cluster is in, 0 for the others: ACTIVE, UNREACHABLE, UNUSABLE, LOST, RETURNING",
    labels: ["cluster", "state"],
  },
  flavorFree: {
    kind: "gauge",
    name: "gangway_flavor_free",
    help: "How much of that no pod requests, of Gangway or of others",
    labels: ["cluster", "flavor"],
  },
  jobs: {
    kind: "gauge",
    name: "gangway_jobs",
    help: "Jobs that have not ended, by phase, and those that wait by reason",
    labels: ["phase", "reason"],
  },
  jobsEnded: {
    kind: "counter",
    name: "gangway_jobs_ended_total",
    help: "Jobs that have ended, by phase, and failed ones by reason",
    labels: ["phase", "reason"],
  },
  queueDepth: {
    kind: "gauge",
    name: "gangway_queue_depth",
    help: "Jobs that wait in each queue, as the planner's last round knew it",
    labels: ["queue"],
  },
  reservations: {
    kind: "gauge",
    name: "gangway_reservations",
    help: "Jobs that have a reservation, as the planner's last round knew it",
    labels: [],
  },
  admissionWait: {
    kind: "histogram",
    name: "gangway_admission_wait_seconds",
    help: "How long gangs waited until they were admitted, since their creation or since they last began to wait again",
    labels: ["queue"],
  },
  preemptions: {
    kind: "counter",
    name: "gangway_preemptions_total",
    help: "Admissions that the planner asked to undo for another gang, by reason and that gang's queue",
    labels: ["reason", "queue"],
  },
  planDuration: {
    kind: "histogram",
    name: "gangway_plan_duration_seconds",
    help: "How long the planner took to decide one plan, without reading and recording",
    labels: [],
  },
  plannerStateChecks: {
    kind: "counter",
    name: "gangway_planner_state_checks_total",
    help: "Comparisons of the planner's state in memory with the database, by outcome: right or wrong",
    labels: ["outcome"],
  },
  ledgerCommits: {
    kind: "counter",
    name: "gangway_ledger_commits_total",
    help: "Transactions on the ledger of tokens, by kind and outcome",
    labels: ["kind", "outcome"],
  },
  ledgerCommitDuration: {
    kind: "histogram",
    name: "gangway_ledger_commit_duration_seconds",
    help: "How long transactions on the ledger of tokens took",
    labels: ["kind"],
  },
  reconcileDuration: {
    kind: "histogram",
    name: "gangway_reconcile_duration_seconds",
    help: "How long a worker's step of a job took: observe, decide, record, act",
    labels: ["result"],
  },
  reconcileLag: {
    kind: "histogram",
    name: "gangway_reconcile_lag_seconds",
    help: "How long a job that was woken or due waited until its step began",
    labels: [],
  },
  codeDuration: {
    kind: "histogram",
    name: "gangway_worker_code_seconds",
    help: "How long code of steps and plugins ran without a pause, by whose code it is: step or plugin",
    labels: ["of"],
  },
  codeBlocked: {
    kind: "counter",
    name: "gangway_blocked_total",
    help: "How often code blocked the process for half a second or more, by whose code it is, and plugin or cluster",
    labels: ["of", "name"],
  },
  podsPlaced: {
    kind: "counter",
    name: "gangway_pods_placed_total",
    help: "Pods that were made for a planned node and have come to a node, by cluster",
    labels: ["cluster"],
  },
  podsOffPlan: {
    kind: "counter",
    name: "gangway_pods_off_plan_total",
    help: "Pods of gangway_pods_placed_total that have come to another node than planned, by cluster",
    labels: ["cluster"],
  },
  suspects: {
    kind: "gauge",
    name: "gangway_suspect_jobs",
    help: "Jobs that the worker is still to step one at a time, because two workers have ended",
    labels: [],
  },
  jobsSetAside: {
    kind: "counter",
    name: "gangway_jobs_set_aside_total",
    help: "Jobs that were set aside because their steps stop workers, by reason",
    labels: ["reason"],
  },
  bucketsHeld: {
    kind: "gauge",
    name: "gangway_buckets_held",
    help: "Buckets of jobs that this worker holds, of 1024",
    labels: [],
  },
  bucketMoves: {
    kind: "counter",
    name: "gangway_bucket_moves_total",
    help: "Buckets of jobs that this worker has taken, and that have left it",
    labels: ["change"],
  },
  kubernetesCalls: {
    kind: "counter",
    name: "gangway_kubernetes_calls_total",
    help: "Calls to Kubernetes API servers, by cluster, verb, resource and answer",
    labels: ["cluster", "verb", "resource", "code"],
  },
  kubernetesCallDuration: {
    kind: "histogram",
    name: "gangway_kubernetes_call_duration_seconds",
    help: "How long calls to Kubernetes API servers took; for a watch, until it was open",
    labels: ["cluster", "verb"],
  },
  clusterSilence: {
    kind: "gauge",
    name: "gangway_cluster_silence_seconds",
    help: "Silence of the quietest reflector of a cluster; no value before its first answer",
    labels: ["cluster"],
  },
  clusterWritesLimit: {
    kind: "gauge",
    name: "gangway_cluster_writes_limit",
    help: "How many writes of a process to a cluster may be under way now: fewer while it throttles or slows down",
    labels: ["cluster"],
  },
  clusterWritesInFlight: {
    kind: "gauge",
    name: "gangway_cluster_writes_in_flight",
    help: "Writes of a process to a cluster that are under way",
    labels: ["cluster"],
  },
  clusterWritesWaiting: {
    kind: "gauge",
    name: "gangway_cluster_writes_waiting",
    help: "Writes of a process to a cluster that wait for others to end, or because the cluster has asked for a pause",
    labels: ["cluster"],
  },
  clusterWritesThrottled: {
    kind: "counter",
    name: "gangway_cluster_writes_throttled_total",
    help: "Writes that a cluster refused for the number of calls, or answered too late",
    labels: ["cluster"],
  },
  clusterFailures: {
    kind: "counter",
    name: "gangway_cluster_failures_total",
    help: "Failed lists, watches and reports of a cluster",
    labels: ["cluster"],
  },
  jobChanges: {
    kind: "counter",
    name: "gangway_job_changes_total",
    help: "Changes of jobs, by kind and cluster: created, restarted, succeeded, failed, cancelled, deleted",
    labels: ["kind", "cluster", "change"],
  },
  objectChanges: {
    kind: "counter",
    name: "gangway_object_changes_total",
    help: "Pods, services and PodGroups that were created or deleted, failed attempts to do so, and failed pods",
    labels: ["kind", "cluster", "object", "change"],
  },
  failureLogBytes: {
    kind: "counter",
    name: "gangway_failure_log_bytes_total",
    help: "Bytes of last lines of failed containers that were kept with their jobs",
    labels: [],
  },
  failureLogProblems: {
    kind: "counter",
    name: "gangway_failure_log_problems_total",
    help: "Logs of failed containers that could not be read, by reason",
    labels: ["reason"],
  },
  pluginCallDuration: {
    kind: "histogram",
    name: "gangway_plugin_call_duration_seconds",
    help: "How long calls of plugins took, by kind, call and outcome",
    labels: ["kind", "call", "outcome"],
  },
  pluginPhases: {
    kind: "counter",
    name: "gangway_plugin_phases_total",
    help: "Phases that jobs without pods have entered, by kind",
    labels: ["kind", "phase"],
  },
  pluginAllocations: {
    kind: "counter",
    name: "gangway_plugin_allocations_total",
    help: "Requests of plugins for tokens, by kind, pool and outcome",
    labels: ["kind", "pool", "outcome"],
  },
  pluginOwnCounts: {
    kind: "counter",
    name: "gangway_plugin_own_total",
    help: "What plugins count themselves, by plugin, and by name and label of their own",
    labels: ["plugin", "name", "label"],
  },
  pluginOwnDurations: {
    kind: "histogram",
    name: "gangway_plugin_own_seconds",
    help: "Times that plugins measure themselves, by plugin, and by name and label of their own",
    labels: ["plugin", "name", "label"],
  },
  pluginTokensWaiting: {
    kind: "gauge",
    name: "gangway_plugin_tokens_waiting",
    help: "Jobs of this worker whose plugin's last request for tokens was refused, by kind and pool",
    labels: ["kind", "pool"],
  },
  watchLag: {
    kind: "histogram",
    name: "gangway_watch_lag_seconds",
    help: "How long the oldest change of each batch waited for its position in the event log",
    labels: [],
  },
  rowsPruned: {
    kind: "counter",
    name: "gangway_pruned_rows_total",
    help: "Rows deleted because they were older than they are kept: changes of jobs, events, asks",
    labels: ["kind"],
  },
  quotaGrants: {
    kind: "counter",
    name: "gangway_quota_grants_total",
    help: "Requests for tokens, by pool, outcome and the scope whose limit was reached",
    labels: ["pool", "outcome", "scope"],
  },
  quotaGrantDuration: {
    kind: "histogram",
    name: "gangway_quota_grant_duration_seconds",
    help: "How long requests for tokens took, counters and ledger together",
    labels: ["outcome"],
  },
  quotaWait: {
    kind: "histogram",
    name: "gangway_quota_wait_seconds",
    help: "How long requests waited in a pool's waiting line, by outcome",
    labels: ["pool", "outcome"],
  },
  quotaExpired: {
    kind: "counter",
    name: "gangway_quota_expired_tokens_total",
    help: "Tokens that were released because their lease expired",
    labels: ["pool"],
  },
  quotaDoubted: {
    kind: "counter",
    name: "gangway_quota_doubted_tokens_total",
    help: "Tokens whose grant was not confirmed in time: voided, or found in the ledger",
    labels: ["domain", "outcome"],
  },
  quotaDifferences: {
    kind: "counter",
    name: "gangway_quota_differences_total",
    help: "Differences that ReconcileQuota found between counters, ledger and holders",
    labels: ["repaired"],
  },
  quotaDomainOpen: {
    kind: "gauge",
    name: "gangway_quota_domain_open",
    help: "1 while a process has a quota domain open, 0 while it is being rebuilt",
    labels: ["domain"],
  },
  quotaDomainClosings: {
    kind: "counter",
    name: "gangway_quota_domain_closings_total",
    help: "How often a quota domain was closed to be rebuilt from the ledger",
    labels: ["domain"],
  },
  quotaTicks: {
    kind: "counter",
    name: "gangway_quota_ticks_total",
    help: "Rounds of a quota domain's reaper, and whether they advanced the lease clock",
    labels: ["domain", "advanced"],
  },
  quotaScriptDuration: {
    kind: "histogram",
    name: "gangway_quota_script_duration_seconds",
    help: "How long calls to the counters took",
    labels: ["verb"],
  },
  quotaPoolUsed: {
    kind: "gauge",
    name: "gangway_quota_pool_used",
    help: "Held tokens of each pool, as its reaper last saw them",
    labels: ["pool"],
  },
  quotaPoolLimit: {
    kind: "gauge",
    name: "gangway_quota_pool_limit",
    help: "The quota of each pool that has one",
    labels: ["pool"],
  },
  quotaPoolWaiters: {
    kind: "gauge",
    name: "gangway_quota_pool_waiters",
    help: "Requests in the waiting line of each pool",
    labels: ["pool"],
  },
  quotaPoolOverLimit: {
    kind: "gauge",
    name: "gangway_quota_pool_over_limit",
    help: "Held tokens beyond a pool's quota: above 0 after the quota was lowered, until tokens are released",
    labels: ["pool"],
  },
  clockSteps: {
    kind: "counter",
    name: "gangway_clock_steps_total",
    help: "Steps of more than a second of the database's clock, or of this machine's, against a monotonic clock",
    labels: ["clock"],
  },
  decisionTimeAhead: {
    kind: "gauge",
    name: "gangway_decision_time_ahead_seconds",
    help: "Decision time minus the time of the database's clock: far from 0 while decisions follow a step",
    labels: [],
  },
  loopFailures: {
    kind: "counter",
    name: "gangway_loop_failures_total",
    help: "Failed rounds of a stage's loop, which are repeated",
    labels: ["loop"],
  },
  databaseShortages: {
    kind: "counter",
    name: "gangway_database_shortages_total",
    help: "Queries and transactions that the database refused for lack of something, by what it lacked",
    labels: ["shortage"],
  },
  redisState: {
    kind: "gauge",
    name: "gangway_redis_state",
    help: "1 for the state in which this process last saw Redis, 0 for the others",
    labels: ["state"],
  },
  logLinesDropped: {
    kind: "counter",
    name: "gangway_log_lines_dropped_total",
    help: "Log lines that could not be written, by reason: slow_reader, or the code of the error",
    labels: ["reason"],
  },
  callsRefused: {
    kind: "counter",
    name: "gangway_calls_unauthenticated_total",
    help: "Calls of the API that were answered with UNAUTHENTICATED before anything of them was read, by method",
    labels: ["method"],
  },
  consoleRefused: {
    kind: "counter",
    name: "gangway_console_refused_total",
    help: "Requests over HTTP that were refused before their caller was known: host, origin, path, method or stopping",
    labels: ["reason"],
  },
  consoleConnections: {
    kind: "gauge",
    name: "gangway_console_connections",
    help: "Open connections of browsers and other programs that call the API over HTTP",
    labels: [],
  },
  callsDenied: {
    kind: "counter",
    name: "gangway_calls_denied_total",
    help: "Calls of the API, and items of batches, that were refused for lack of a permission, by method",
    labels: ["method"],
  },
  callsLimited: {
    kind: "counter",
    name: "gangway_calls_limited_total",
    help: "Calls of the API that were refused because their caller has reached a limit, by limit",
    labels: ["limit"],
  },
  requestsBeyondLimits: {
    kind: "counter",
    name: "gangway_requests_beyond_limits_total",
    help: "Requests, and items of batches, that were refused for a limit of their fields, by method",
    labels: ["method"],
  },
  internalErrors: {
    kind: "counter",
    name: "gangway_internal_errors_total",
    help: "Calls of the API that were answered with INTERNAL",
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricDefinition = {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
};

export type MetricKey = keyof typeof METRICS;
export type MetricLabels = Readonly<Record<string, string>>;
export type GaugeReading = { readonly value: number; readonly labels: MetricLabels };

/** Takes measurements: adds to a counter, sets a gauge, observes a value of a histogram. Durations are in seconds. */
export type Meter = {
  readonly record: (metric: MetricKey, value: number, labels?: MetricLabels) => void;
  /** Reads the values of a gauge at every scrape. A set of labels that is missing then has no value any more. */
  readonly read: (metric: MetricKey, readings: () => readonly GaugeReading[]) => void;
};

/** Upper bounds in seconds: from a fast decision to a gang that waits for a day. */
export const HISTOGRAM_BOUNDS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400,
];

/** One meter that passes measurements on to all of these; null if there are none. */
export function allMeters(meters: readonly Meter[]): Meter | null {
  const [first] = meters;
  if (meters.length < 2) return first ?? null;
  return {
    record: (metric, value, labels) => {
      for (const meter of meters) meter.record(metric, value, labels);
    },
    read: (metric, readings) => {
      for (const meter of meters) meter.read(metric, readings);
    },
  };
}
