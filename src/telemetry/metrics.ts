/** Every metric of the service. `deploy/METRICS.md` documents them for operators; a test holds the two together. */
export const METRICS = {
  apiCallDuration: {
    kind: "histogram",
    name: "gangway_api_call_duration_seconds",
    help: "How long unary calls took, by method and gRPC code",
    labels: ["method", "code"],
  },
  queueDepth: {
    kind: "gauge",
    name: "gangway_queue_depth",
    help: "Jobs that wait in each queue, as of the planner's last snapshot",
    labels: ["queue"],
  },
  admissionWait: {
    kind: "histogram",
    name: "gangway_admission_wait_seconds",
    help: "How long gangs waited until they were admitted, from creation or from being sent back to the line",
    labels: ["queue"],
  },
  planDuration: {
    kind: "histogram",
    name: "gangway_plan_duration_seconds",
    help: "How long it took to decide one plan, without reading and recording",
    labels: [],
  },
  ledgerCommits: {
    kind: "counter",
    name: "gangway_ledger_commits_total",
    help: "Transactions that add to the ledger of tokens or take from it, by what they do and how they ended",
    labels: ["kind", "outcome"],
  },
  ledgerCommitDuration: {
    kind: "histogram",
    name: "gangway_ledger_commit_duration_seconds",
    help: "How long the ledger's transactions took",
    labels: ["kind"],
  },
  reconcileDuration: {
    kind: "histogram",
    name: "gangway_reconcile_duration_seconds",
    help: "How long steps of jobs took: read, decide, record, act",
    labels: ["result"],
  },
  reconcileLag: {
    kind: "histogram",
    name: "gangway_reconcile_lag_seconds",
    help: "How long a job that was woken or due waited for its step to begin",
    labels: [],
  },
  bucketsHeld: {
    kind: "gauge",
    name: "gangway_buckets_held",
    help: "Buckets of jobs, of 1024, that this worker holds",
    labels: [],
  },
  kubernetesCalls: {
    kind: "counter",
    name: "gangway_kubernetes_calls_total",
    help: "Calls to API servers by cluster, verb, resource and answer",
    labels: ["cluster", "verb", "resource", "code"],
  },
  kubernetesCallDuration: {
    kind: "histogram",
    name: "gangway_kubernetes_call_duration_seconds",
    help: "How long calls to API servers took; for a watch, until it was open",
    labels: ["cluster", "verb"],
  },
  clusterSilence: {
    kind: "gauge",
    name: "gangway_cluster_silence_seconds",
    help: "How long ago the quietest reflector of a cluster heard anything; absent before the first word",
    labels: ["cluster"],
  },
  clusterFailures: {
    kind: "counter",
    name: "gangway_cluster_failures_total",
    help: "Lists, watches and reports of a cluster that failed",
    labels: ["cluster"],
  },
  jobChanges: {
    kind: "counter",
    name: "gangway_job_changes_total",
    help: "Jobs created, restarted, succeeded, failed, cancelled and deleted, by kind and cluster; a job that is in none has no cluster",
    labels: ["kind", "cluster", "change"],
  },
  objectChanges: {
    kind: "counter",
    name: "gangway_object_changes_total",
    help: "Pods, services and PodGroups of jobs that were created and deleted, or could not be, and pods that failed, by kind and cluster",
    labels: ["kind", "cluster", "object", "change"],
  },
  pluginCallDuration: {
    kind: "histogram",
    name: "gangway_plugin_call_duration_seconds",
    help: "How long calls of plugins took, by kind, call and how they ended",
    labels: ["kind", "call", "outcome"],
  },
  pluginPhases: {
    kind: "counter",
    name: "gangway_plugin_phases_total",
    help: "Phases that jobs without pods came to, by kind",
    labels: ["kind", "phase"],
  },
  pluginAllocations: {
    kind: "counter",
    name: "gangway_plugin_allocations_total",
    help: "Answers to plugins that ask for tokens, by kind, pool and outcome",
    labels: ["kind", "pool", "outcome"],
  },
  pluginTokensWaiting: {
    kind: "gauge",
    name: "gangway_plugin_tokens_waiting",
    help: "Jobs of this worker whose plugin was refused a token when it asked last, by kind and pool",
    labels: ["kind", "pool"],
  },
  watchLag: {
    kind: "histogram",
    name: "gangway_watch_lag_seconds",
    help: "How long the oldest change of each batch waited for its place in the event log that watches follow",
    labels: [],
  },
  quotaGrants: {
    kind: "counter",
    name: "gangway_quota_grants_total",
    help: "Answers to calls for tokens, by pool, outcome and the kind of scope that was in the way",
    labels: ["pool", "outcome", "scope"],
  },
  quotaGrantDuration: {
    kind: "histogram",
    name: "gangway_quota_grant_duration_seconds",
    help: "How long calls for tokens took, counters and ledger together",
    labels: ["outcome"],
  },
  quotaWait: {
    kind: "histogram",
    name: "gangway_quota_wait_seconds",
    help: "How long calls stood in a pool's line, by how that ended",
    labels: ["pool", "outcome"],
  },
  quotaExpired: {
    kind: "counter",
    name: "gangway_quota_expired_tokens_total",
    help: "Tokens that were taken back because their lease lapsed",
    labels: ["pool"],
  },
  quotaDoubted: {
    kind: "counter",
    name: "gangway_quota_doubted_tokens_total",
    help: "Tokens whose grant was not acknowledged in time: taken back, or found in the ledger",
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
    help: "How often a quota domain closed to be rebuilt from the ledger",
    labels: ["domain"],
  },
  quotaTicks: {
    kind: "counter",
    name: "gangway_quota_ticks_total",
    help: "Rounds of a quota domain's reaper, by whether they advanced the lease clock",
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
    help: "Tokens of each pool that are held, as its reaper sees them",
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
    help: "Who stands in each pool's line",
    labels: ["pool"],
  },
  quotaPoolOverLimit: {
    kind: "gauge",
    name: "gangway_quota_pool_over_limit",
    help: "Tokens that are held beyond a pool's quota: above 0 only after the quota was lowered, until use drains",
    labels: ["pool"],
  },
  loopFailures: {
    kind: "counter",
    name: "gangway_loop_failures_total",
    help: "Rounds of a stage's loop that failed and were tried again",
    labels: ["loop"],
  },
  internalErrors: {
    kind: "counter",
    name: "gangway_internal_errors_total",
    help: "Calls that were answered INTERNAL",
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
export type Labels = Readonly<Record<string, string>>;
export type Reading = { readonly value: number; readonly labels: Labels };

/** Where measurements go. A counter is added to, a gauge is set, a histogram observes; durations are in seconds. */
export type Meter = {
  readonly record: (metric: MetricKey, value: number, labels?: Labels) => void;
  /** Asks for a gauge whenever somebody looks; a label set that is not read again is gone. */
  readonly read: (metric: MetricKey, readings: () => readonly Reading[]) => void;
};

/** Upper bounds in seconds, from a fast decision to a gang that waits for a day. */
export const HISTOGRAM_BOUNDS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400,
];

/** One meter that passes everything on to several; null for none. */
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
