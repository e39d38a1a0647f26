import type { MetricKey } from "./metrics.ts";

/** Which processes serve a metric, and how the values of several processes are joined. */
type MetricSource = {
  readonly servedBy:
    | "api"
    | "api, worker"
    | "leading planner"
    | "worker"
    | "every process"
    | "one process"
    | "reaper"
    | "sequencer";
  readonly joinedBy: "sum" | "max" | "min";
};

const from = (servedBy: MetricSource["servedBy"], joinedBy: MetricSource["joinedBy"] = "sum") => ({
  servedBy,
  joinedBy,
});

/** A test compares the page of metrics with this. */
export const METRIC_SOURCES: Readonly<Record<MetricKey, MetricSource>> = {
  apiCallDuration: from("api"),
  queueUsed: from("one process", "max"),
  queueNominal: from("one process", "max"),
  queueBorrowed: from("one process", "max"),
  flavorAllocatable: from("one process", "max"),
  clusterState: from("one process", "max"),
  flavorFree: from("one process", "max"),
  jobs: from("one process", "max"),
  jobsEnded: from("worker"),
  queueDepth: from("leading planner", "max"),
  reservations: from("leading planner", "max"),
  admissionWait: from("leading planner"),
  preemptions: from("leading planner"),
  planDuration: from("leading planner"),
  plannerStateChecks: from("leading planner"),
  ledgerCommits: from("every process"),
  ledgerCommitDuration: from("every process"),
  reconcileDuration: from("worker"),
  reconcileLag: from("worker"),
  codeDuration: from("worker"),
  codeBlocked: from("api, worker"),
  podsPlaced: from("worker"),
  podsOffPlan: from("worker"),
  suspects: from("worker"),
  jobsSetAside: from("worker"),
  bucketsHeld: from("worker"),
  bucketMoves: from("worker"),
  kubernetesCalls: from("api, worker"),
  kubernetesCallDuration: from("api, worker"),
  clusterSilence: from("worker", "max"),
  clusterWritesLimit: from("worker", "min"),
  clusterWritesInFlight: from("worker"),
  clusterWritesWaiting: from("worker"),
  clusterWritesThrottled: from("api, worker"),
  clusterFailures: from("api, worker"),
  jobChanges: from("api, worker"),
  objectChanges: from("worker"),
  failureLogBytes: from("worker"),
  failureLogProblems: from("worker"),
  pluginCallDuration: from("worker"),
  pluginPhases: from("worker"),
  pluginAllocations: from("worker"),
  pluginOwnCounts: from("worker"),
  pluginOwnDurations: from("worker"),
  pluginTokensWaiting: from("worker"),
  watchLag: from("sequencer"),
  rowsPruned: from("sequencer"),
  quotaGrants: from("api, worker"),
  quotaGrantDuration: from("api, worker"),
  quotaWait: from("api, worker"),
  quotaExpired: from("reaper"),
  quotaDoubted: from("reaper"),
  quotaDifferences: from("api"),
  quotaDomainOpen: from("every process", "min"),
  quotaDomainClosings: from("every process"),
  quotaTicks: from("reaper"),
  quotaScriptDuration: from("every process"),
  quotaPoolUsed: from("reaper", "max"),
  quotaPoolLimit: from("reaper", "max"),
  quotaPoolWaiters: from("reaper", "max"),
  quotaPoolOverLimit: from("reaper", "max"),
  clockSteps: from("every process", "max"),
  decisionTimeAhead: from("every process", "max"),
  loopFailures: from("every process"),
  databaseShortages: from("every process"),
  redisState: from("every process", "max"),
  logLinesDropped: from("every process"),
  callsRefused: from("api"),
  consoleRefused: from("api"),
  consoleConnections: from("api"),
  callsDenied: from("api"),
  callsLimited: from("api"),
  requestsBeyondLimits: from("api"),
  internalErrors: from("api"),
};
