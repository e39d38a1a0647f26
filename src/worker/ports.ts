import type { StepNote } from "../core/blame/step-note.ts";
import type { Section } from "../core/blame/watch-sections.ts";
import type { BucketLease, BucketView } from "../core/job/bucket.ts";
import type { JobEvent } from "../core/job/event.ts";
import type { Job } from "../core/job/job.ts";
import type { Placement } from "../core/job/placement/placement.ts";
import type { Plugin, ResourceManager, SecretManager } from "../core/kinds/plugin.ts";
import type { DataStore, PlatformFacts } from "../core/kinds/plugin-services.ts";
import type { TaskHolder } from "../core/quota/calls.ts";
import type { Action, ActOutcome, AnchorEvents, Decision, RecordOutcome } from "../core/reconcile/decision.ts";
import type { ClaimAction } from "../core/reconcile/objects/claim.ts";
import type { JobToObserve, Observed } from "../core/reconcile/observed.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Term } from "../runtime/member.ts";
import type { FailureLogPorts } from "./failure-logs.ts";

/** This worker's membership among the workers that share the jobs. */
export type WorkerMember = {
  /** The present term: the same object until it ends. Null: this worker is not sure that others still see it alive. */
  readonly term: () => Term | null;
  /** Renews the membership and the time now. Omitted: the time is always right. */
  readonly look?: () => Promise<void>;
};

export type WorkerStore = {
  /** All live workers, the buckets that this worker holds, and the buckets that no live worker holds. */
  readonly bucketsOf: (worker: string) => Promise<BucketView>;
  /** Takes those of the buckets that no live worker holds. Their previous holders can no longer record. */
  readonly takeBuckets: (worker: string, buckets: readonly number[]) => Promise<readonly BucketLease[]>;
  /** Gives up buckets of this worker, so that others can take them. */
  readonly giveBuckets: (worker: string, buckets: readonly number[]) => Promise<void>;
  /**
   * Uids of jobs of these buckets that may have objects in a cluster, in order, after the given uid. Null: from the
   * first.
   */
  readonly openJobs: (
    buckets: readonly number[],
    page: { readonly after: string | null; readonly limit: number },
  ) => Promise<readonly string[]>;
  /** Jobs of these buckets that are due to be looked at again, most overdue first. */
  readonly dueJobs: (buckets: readonly number[], nowMs: number, limit: number) => Promise<readonly string[]>;
  /** The job with the planned nodes of its live admission, if it has some. */
  readonly loadJob: (
    jobUid: string,
  ) => Promise<{ readonly job: Job; readonly bucket: number; readonly placement: Placement | null } | null>;
  /** The same without templates. */
  readonly loadBareJob: (jobUid: string) => Promise<{ readonly job: Job; readonly bucket: number } | null>;
  /** Jobs that have or may produce the result that this job needs. */
  readonly findAlike: (job: Job) => Promise<readonly Job[]>;
  /**
   * Writes a decision in one transaction, guarded by the job's version and the bucket's epoch: status, admissions,
   * released tokens (ledger rows and sums), events, and when to look again. Removes the record if the decision forgets
   * the job.
   */
  readonly record: (job: Job, decision: Decision, lease: BucketLease, nowMs: number) => Promise<RecordOutcome>;
  /**
   * Writes only when to look again, guarded by the bucket's epoch and the job's version. Any change of the job has
   * written that time itself.
   */
  readonly recheckAt: (jobUid: string, atMs: number | null, lease: BucketLease, version: number) => Promise<void>;
  /** Appends events that do not change the job, such as SuccessfulCreatePod. */
  readonly note: (job: Job, events: readonly JobEvent[], nowMs: number) => Promise<void>;
};

/** What workers and their watchdogs note about jobs that stop workers: see `core/blame`. */
export type BlameStore = {
  /** The notes about jobs of these buckets that may count. */
  readonly notesIn: (buckets: readonly number[]) => Promise<readonly StepNote[]>;
  /** The jobs of these buckets that workers step, in order, after the given uid. Null: from the first. */
  readonly steppedJobs: (
    buckets: readonly number[],
    page: { readonly after: string | null; readonly limit: number },
  ) => Promise<readonly string[]>;
  /** Notes that a worker is about to step this job, alone among those that may have ended workers. */
  readonly noteAlone: (worker: string, jobUid: string) => Promise<void>;
  /** The jobs of these buckets need not be stepped one at a time any more. */
  readonly endAlone: (worker: string, buckets: readonly number[]) => Promise<void>;
  /** Forgets which job this worker has stepped alone. */
  readonly forgetAlone: (worker: string) => Promise<void>;
};

/** Runs code that cannot pause, and shows to the watchdog what it is meanwhile. */
export type RunSection = <T>(section: Section, code: () => T) => T;

export type WorkerClusters = {
  /** The job's objects as the watches show them. Null until every cluster that its admissions name has been listed. */
  readonly observe: (job: JobToObserve) => Observed | null;
  /** The job's objects, listed anew from the clusters' API servers. Null: one of them does not answer. */
  readonly listJob: (job: JobToObserve, signal: AbortSignal) => Promise<Observed | null>;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  /** Adopts or releases an object. Fails with `NotFound` or `Invalid` if it is gone or another object has its name. */
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  /** Asks the API server whether an anchor exists and is not being deleted. False also if it does not answer. */
  readonly anchorLives: (
    of: Pick<ClaimAction, "cluster" | "namespace" | "anchor">,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Uids of all jobs of this installation that have an object in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace of a job's objects. Null: none is seen. */
  readonly namespaceOf: (jobUid: string) => string | null;
};

/** The host of the plugins that run jobs without pods. */
export type PluginHost = {
  /**
   * The plugin that runs jobs of that kind, loaded by the first call. Fails if it cannot be loaded. The next call tries
   * again, also after a call that was aborted while it waited.
   */
  readonly pluginOf: (kind: string, signal: AbortSignal) => Promise<Plugin>;
  readonly resources: (holder: TaskHolder) => ResourceManager;
  readonly secrets: SecretManager;
  /** Omitted: plugins reach no objects, and the platform gives nothing. */
  readonly storeOf?: (namespace: string, signal: AbortSignal) => DataStore;
  readonly platformOf?: (namespace: string) => PlatformFacts;
};

export type WorkerPorts = {
  readonly clock: Clock;
  readonly store: WorkerStore;
  readonly clusters: WorkerClusters;
  /** Runs a step that changes a job or its clusters in a trace span that is linked to the job. Omitted: not traced. */
  readonly traceStep?: <T>(job: Job, run: () => Promise<T>) => Promise<T>;
  /**
   * Writes a job's events to the cluster of its last admission too. No step waits for it, and events may be lost.
   * Omitted: events are not written to clusters.
   */
  readonly writeClusterEvents?: (events: AnchorEvents) => void;
  /** Called with the outcomes of a job's actions. Omitted: outcomes are not reported. */
  readonly onActed?: (job: Job, acted: readonly { readonly action: Action; readonly outcome: ActOutcome }[]) => void;
  /** Omitted: jobs without pods fail, since their plugins are missing. */
  readonly plugins?: PluginHost;
  readonly member: WorkerMember;
  /** Omitted: no lines of failed containers are kept. */
  readonly failureLogs?: FailureLogPorts;
  /** Omitted: no job is suspected to have ended workers. */
  readonly blame?: BlameStore;
  /** Omitted: no watchdog runs. */
  readonly runSection?: RunSection;
  /** A hint for the planner that tokens or room may have become free. */
  readonly wakePlanner: () => void;
};
