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
  watchLag: {
    kind: "histogram",
    name: "gangway_watch_lag_seconds",
    help: "How long the oldest change of each batch waited for its place in the event log that watches follow",
    labels: [],
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
