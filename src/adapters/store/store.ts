/**
 * The store: one object with the functions that each stage needs of the database. The stages' ports decide the names
 * and shapes; the functions themselves have a file each.
 */

import type { ClaimedSession, SessionRecord } from "../../core/access/console-session.ts";
import type { RobotBounds } from "../../core/access/robot.ts";
import type { AuditEntry, AuditNote } from "../../core/admin/audit.ts";
import { NAMESPACES_MAX } from "../../core/admin/bounds.ts";
import type { Reseal } from "../../core/admin/credential-keys.ts";
import type { LossRule } from "../../core/admin/lost-clusters.ts";
import type { PriorityClassChange, PriorityClassSettings } from "../../core/admin/priority-class.ts";
import type { QuotaGrant } from "../../core/admin/quota-grant.ts";
import type { RuntimeChange, RuntimeQuery } from "../../core/admin/training-runtime.ts";
import type { BucketLease } from "../../core/job/bucket.ts";
import type { JobEvent } from "../../core/job/event.ts";
import type { Job } from "../../core/job/job.ts";
import type { LogPlace, PrunedKind, PrunePage } from "../../core/job/request/event-log.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { RuntimeName, RuntimeSettings } from "../../core/kinds/trainjob/training-runtime.ts";
import type { FleetPlace, KnownFleet } from "../../core/plan/facts/fleet-read.ts";
import type { Ask, AskedJob } from "../../core/plan/model/ask.ts";
import { POOLS_MAX, TOKENS_MAX, WAITERS_MAX } from "../../core/quota/limits.ts";
import type { Decision } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import { sharedFor } from "../../runtime/shared-for.ts";
import * as access from "./admin/access.ts";
import { adoptCluster } from "./admin/adopt-cluster.ts";
import { appendAudit, SERVICE, withAuditLog } from "./admin/audit.ts";
import * as partitions from "./admin/audit-partitions.ts";
import * as capacity from "./admin/cluster-capacity.ts";
import { clusterLevels } from "./admin/cluster-levels.ts";
import * as silence from "./admin/cluster-silence.ts";
import { claimUid, setUid, type TellsUid, uidRefusal } from "./admin/cluster-uids.ts";
import * as clusters from "./admin/clusters.ts";
import * as sessions from "./admin/console-sessions.ts";
import * as credentialKeys from "./admin/credential-keys.ts";
import { recheckPlaced } from "./admin/forget-clusters.ts";
import { type FreezeChange, freezeQueue } from "./admin/freezes.ts";
import { intakeRow } from "./admin/intake-facts.ts";
import { endReturn, jobsLeftIn, type SeenOwner } from "./admin/left-objects.ts";
import * as namespaces from "./admin/namespaces.ts";
import { rememberedResources } from "./admin/node-resources.ts";
import { placedGangs } from "./admin/placed-gangs.ts";
import type { PoolBounds } from "./admin/pools.ts";
import * as classes from "./admin/priority-classes.ts";
import * as queues from "./admin/queues.ts";
import * as grants from "./admin/quota-grants.ts";
import * as registered from "./admin/registered-clusters.ts";
import * as robots from "./admin/robot-tokens.ts";
import { sourceRefusal } from "./admin/secret-sources.ts";
import { noteSettings, type ReadSettings } from "./admin/settings-notes.ts";
import * as simulated from "./admin/simulated-clusters.ts";
import * as tenants from "./admin/tenant-limits.ts";
import * as runtimes from "./admin/training-runtimes.ts";
import type { Db } from "./db/db.ts";
import { bucketsOf, giveBuckets, takeBuckets } from "./fleet/buckets.ts";
import { noteCorrection } from "./fleet/decision-clock.ts";
import { takeLease } from "./fleet/leases.ts";
import * as members from "./fleet/members.ts";
import * as notes from "./fleet/step-notes.ts";
import { changeJob, type DecideChange } from "./jobs/change-job.ts";
import { countGroups } from "./jobs/count-groups.ts";
import { countJobs } from "./jobs/count-jobs.ts";
import { createJob, earlierRequest } from "./jobs/create-job.ts";
import { createJobs } from "./jobs/create-jobs.ts";
import { dueJobs } from "./jobs/due-jobs.ts";
import { requestCancel, requestDelete } from "./jobs/end-job.ts";
import * as failureLogs from "./jobs/failure-logs.ts";
import { jobsOnNode, queuesBelow } from "./jobs/filter-facts.ts";
import { findAlike } from "./jobs/find-alike.ts";
import { jobGetter } from "./jobs/get-jobs.ts";
import { listEvents } from "./jobs/list-events.ts";
import { listJobs } from "./jobs/list-jobs.ts";
import { loadBareJob, wholeSpecs } from "./jobs/load-job.ts";
import { openJobs } from "./jobs/open-jobs.ts";
import { plannedNodes } from "./jobs/planned-nodes.ts";
import { pruneAsks } from "./jobs/prune-asks.ts";
import { pruneChanges, pruneEvents } from "./jobs/prune-log.ts";
import { logHead, sequence } from "./jobs/sequence.ts";
import { stepGroups } from "./jobs/step-groups.ts";
import { entriesAfter, watchSnapshot } from "./jobs/watch-log.ts";
import type { QuotaBounds } from "./ledger/quota-limits.ts";
import { type FirstOfQueue, firstWaiting } from "./planning/first-waiting.ts";
import { gangUpdates } from "./planning/gang-updates.ts";
import { nodeLister } from "./planning/list-nodes.ts";
import { readFleet } from "./planning/read-fleet.ts";
import { gangInLine, gangsNow, refusalOf } from "./planning/read-refusal.ts";
import { recordAdmissions } from "./planning/record-admissions.ts";
import { recordEvictions } from "./planning/record-evictions.ts";
import { recordPreemptions, recordWithdrawals } from "./planning/record-preemptions.ts";
import { recordedCauses, recordRefusals } from "./planning/record-refusals.ts";
import { ledgerOf, quotaAdmin } from "./quota.ts";

export type StoreOptions = {
  readonly clock: Pick<Clock, "nowMs">;
  /** The kinds of jobs that the process serves: the ask of a job depends on its kind. */
  readonly kinds: Registry;
  /** True: any valid namespace is created on first use, in project `default`. */
  readonly openNamespaces: boolean;
  /** The default queue of namespaces that are created on first use. */
  readonly defaultQueue: string;
  /** Called after every transaction that may have appended to the log, as a hint for the sequencer. */
  readonly onAppended: () => void;
  /**
   * The bounds of a quota domain. Omitted: ten thousand pools, a million tokens, ten thousand waiters for each pool.
   */
  readonly quotaBounds?: QuotaBounds;
  /** The most namespaces. Omitted: ten thousand. */
  readonly namespacesMax?: number;
  /** The most bytes of lines that a namespace keeps of failed containers. Omitted: 64 MiB. */
  readonly failureLogBytesMax?: number;
  /** Called with each entry of the audit log once it is committed. Omitted: nobody is told. */
  readonly onAudited?: (entry: AuditEntry) => void;
};

const QUOTA_BOUNDS: QuotaBounds = { poolsMax: POOLS_MAX, tokensMax: TOKENS_MAX, waitersMax: WAITERS_MAX };

const OPEN_PROJECT = "default";

/** Makes the store over a database, with one group of functions for each stage. */
export function createStore(database: Db, options: StoreOptions) {
  const db = options.onAudited === undefined ? database : withAuditLog(database, options.onAudited);
  return {
    intake: intakeStore(db, options),
    planner: plannerStore(db, options),
    explain: explainStore(db, options),
    ledgerOf: ledgerOf(db, options.quotaBounds ?? QUOTA_BOUNDS),
    pools: quotaAdmin(db, options.clock, options.quotaBounds ?? QUOTA_BOUNDS),
    worker: workerStore(db, options),
    blame: blameStore(db, options),
    failureLogs: failureLogStore(db, options),
    watch: watchStore(db),
    reads: jobReads(db, options),
    admin: admin(db, options),
    priorityClasses: priorityClasses(db, options),
    runtimes: trainingRuntimes(db, options),
    clusters: clusterStore(db, options),
    members: memberStore(db),
    survey: surveyStore(db),
    robots: robotStore(db, options),
    sessions: sessionStore(db),
    access: accessStore(db, options),
  };
}

/** Returns the result of the work, after the hint that the log may have grown. */
async function hinted<T>(options: StoreOptions, work: Promise<T>): Promise<T> {
  const result = await work;
  options.onAppended();
  return result;
}

function intakeStore(db: Db, options: StoreOptions) {
  const { kinds, defaultQueue, namespacesMax = NAMESPACES_MAX } = options;
  const nodeResources = rememberedResources(db, options.clock);
  const opening = options.openNamespaces
    ? { project: OPEN_PROJECT, defaultQueue, podPolicy: null, namespacesMax }
    : null;
  return {
    facts: async ({ namespace, queue = "" }: { readonly namespace: string; readonly queue?: string }) => {
      const row = await intakeRow(db, { namespace, queue });
      const { namespace: known, defaultClass } = row;
      const looked = [queue, known?.defaultQueue];
      let levels: ReturnType<typeof clusterLevels> | undefined;
      return {
        namespace: known ?? (options.openNamespaces ? ("open" as const) : null),
        queueExists: async (name: string) =>
          looked.includes(name) ? row.queues.includes(name) : queues.queueExists(db, name),
        priorityClasses: {
          default: defaultClass,
          find: (name: string) => classes.getPriorityClass(db, name),
          names: async () => (await classes.listPriorityClasses(db)).map(({ name }) => name),
        },
        nodeResources,
        // Jobs of a batch share the facts.
        clusterLevels: () => (levels ??= clusterLevels(db)),
        clusters: row.clusters,
      };
    },
    earlierRequest: (request: Parameters<typeof earlierRequest>[1]) => earlierRequest(db, request),
    createJob: (job: AskedJob) => hinted(options, createJob(db, job, opening, kinds)),
    createJobs: (jobs: readonly AskedJob[]) => hinted(options, createJobs(db, jobs, opening, kinds)),
    changeJob: <Other extends { readonly kind: string }>(
      which: { namespace: string; name: string },
      decide: DecideChange<Other>,
      nowMs: number,
    ) => hinted(options, changeJob(db, which, decide, { nowMs, kinds })),
    requestCancel: (which: { namespace: string; name: string }, reason: string, nowMs: number) =>
      hinted(options, requestCancel(db, which, reason, { nowMs, kinds })),
    requestDelete: (which: { namespace: string; name: string }, nowMs: number) =>
      hinted(options, requestDelete(db, which, { nowMs, kinds })),
  };
}

/** The functions that a state of the fleet follows. `takersOnly`: only gangs that run, hold tokens or are nominated. */
export function fleetStore(db: Db, kinds: Registry, { takersOnly = false } = {}) {
  const reading = { kinds, asks: new Map<string, Ask>(), takersOnly };
  return {
    readFleet: (place: FleetPlace | null, known: KnownFleet) => readFleet(db, place, known, reading),
    gangsOf: (jobUids: readonly string[]) => gangUpdates(db, jobUids, reading),
    recordedCauses: (after: string) => recordedCauses(db, after),
  };
}

function plannerStore(db: Db, options: StoreOptions) {
  const { kinds, quotaBounds: bounds = QUOTA_BOUNDS } = options;
  return {
    ...fleetStore(db, kinds),
    recordAdmissions: (batch: Parameters<typeof recordAdmissions>[1]) =>
      hinted(options, recordAdmissions(db, batch, { bounds, kinds })),
    recordEvictions: (evictions: Parameters<typeof recordEvictions>[1], plannerEpoch: number, nowMs: number) =>
      hinted(options, recordEvictions(db, evictions, plannerEpoch, { nowMs, kinds })),
    recordPreemptions: (records: Parameters<typeof recordPreemptions>[1], plannerEpoch: number, nowMs: number) =>
      hinted(options, recordPreemptions(db, records, plannerEpoch, { nowMs, kinds })),
    recordWithdrawals: (jobUids: readonly string[], plannerEpoch: number, nowMs: number) =>
      hinted(options, recordWithdrawals(db, jobUids, plannerEpoch, { nowMs, kinds })),
    recordRefusals: (refusals: Parameters<typeof recordRefusals>[1], plannerEpoch: number, nowMs: number) =>
      hinted(options, recordRefusals(db, refusals, plannerEpoch, { nowMs, kinds })),
  };
}

/** The functions that explain why jobs wait, and judge jobs before they are submitted. */
function explainStore(db: Db, { kinds, clock }: StoreOptions) {
  return {
    /** Each has an own memory of asks, which goes with it. */
    followTakers: () => fleetStore(db, kinds, { takersOnly: true }),
    refusalOf: (jobUid: string) => refusalOf(db, jobUid),
    gangInLine: () => gangInLine(db),
    gangsNow: (jobUids: readonly string[]) => gangsNow(db, jobUids, { kinds, asks: new Map() }),
    firstWaiting: (of: FirstOfQueue) => firstWaiting(db, { ...of, nowMs: clock.nowMs() }, { kinds, asks: new Map() }),
  };
}

function workerStore(db: Db, options: StoreOptions) {
  const groups = stepGroups(db, options.kinds);
  return {
    bucketsOf: (worker: string) => bucketsOf(db, worker),
    takeBuckets: (worker: string, buckets?: readonly number[]) =>
      takeBuckets(db, worker, buckets, options.clock.nowMs()),
    giveBuckets: (worker: string, buckets: readonly number[]) => giveBuckets(db, worker, buckets),
    openJobs: (buckets: readonly number[], page: Parameters<typeof openJobs>[2]) => openJobs(db, buckets, page),
    dueJobs: (buckets: readonly number[], nowMs: number, limit: number) => dueJobs(db, buckets, nowMs, limit),
    loadJob: (jobUid: string) => groups.loads.ask(jobUid),
    loadBareJob: (jobUid: string) => loadBareJob(db, jobUid),
    findAlike: (job: Job) => findAlike(db, job),
    record: (job: Job, decision: Decision, lease: BucketLease, nowMs: number) =>
      hinted(options, groups.records.ask({ job, decision, lease, nowMs })),
    recheckAt: (jobUid: string, atMs: number | null, lease: BucketLease, version: number) =>
      groups.rechecks.ask({ jobUid, atMs, lease, version }),
    note: (job: Job, events: readonly JobEvent[], nowMs: number) => groups.notes.ask({ job, events, nowMs }),
  };
}

/** The functions by which workers find the jobs that stop them. */
function blameStore(db: Db, { clock }: StoreOptions) {
  return {
    notesIn: (buckets: readonly number[]) => notes.stepNotesIn(db, buckets, clock.nowMs()),
    steppedJobs: (buckets: readonly number[], page: { readonly after: string | null; readonly limit: number }) =>
      notes.steppedJobs(db, buckets, { ...page, nowMs: clock.nowMs() }),
    noteAlone: (worker: string, jobUid: string) => notes.noteAlone(db, { worker, jobUid, nowMs: clock.nowMs() }),
    endAlone: (worker: string, buckets: readonly number[]) => notes.endAlone(db, worker, buckets),
    forgetAlone: (worker: string) => notes.forgetAlone(db, worker, clock.nowMs()),
    writeNote: (note: notes.NewStepNote) => notes.writeStepNote(db, note),
    withdrawNote: (id: string) => notes.withdrawStepNote(db, id),
  };
}

/** The functions by which workers keep the last lines of containers that failed. */
function failureLogStore(db: Db, { clock, failureLogBytesMax = failureLogs.NAMESPACE_BYTES_MAX }: StoreOptions) {
  return {
    keptRuns: (jobUid: string) => failureLogs.keptRuns(db, jobUid),
    keep: (logs: failureLogs.NewLogs) =>
      failureLogs.keepLogs(db, logs, { nowMs: clock.nowMs(), namespaceBytesMax: failureLogBytesMax }),
  };
}

const PRUNINGS = { changes: pruneChanges, events: pruneEvents, asks: pruneAsks };

function watchStore(db: Db) {
  return {
    sequence: (known: LogPlace | null = null) => sequence(db, known),
    head: () => logHead(db),
    snapshot: (page: Parameters<typeof watchSnapshot>[1]) => watchSnapshot(db, page),
    entriesAfter: (place: LogPlace, limit: number) => entriesAfter(db, place, limit),
    wholeSpecs: (uids: readonly string[]) => wholeSpecs(db, uids),
    prune: (kind: PrunedKind, page: PrunePage) => PRUNINGS[kind](db, page),
  };
}

/** All calls of this time share one look at the clusters. */
const SILENCE_KNOWN_MS = 1_000;

function jobReads(db: Db, { clock }: StoreOptions) {
  const getJob = jobGetter(db);
  const silentClusters = sharedFor(SILENCE_KNOWN_MS, () => capacity.silentClusters(db));
  return {
    getJob: (which: Parameters<typeof getJob>[0]) => getJob(which, clock.nowMs()),
    listJobs: (query: Parameters<typeof listJobs>[1]) => listJobs(db, query, clock.nowMs()),
    countJobs: (query: Parameters<typeof countGroups>[1]) => countGroups(db, query, clock.nowMs()),
    queuesBelow: (queue: string) => queuesBelow(db, queue),
    jobsOnNode: (of: Parameters<typeof jobsOnNode>[1]) => jobsOnNode(db, of),
    silentClusters,
    listEvents: (query: Parameters<typeof listEvents>[1]) => listEvents(db, query),
    plannedNodes: (jobUid: string) => plannedNodes(db, jobUid),
    failureLogs: (jobUid: string) => failureLogs.readLogs(db, jobUid),
  };
}

function admin(db: Db, options: StoreOptions) {
  const { clock, namespacesMax = NAMESPACES_MAX } = options;
  const bounds = poolBounds(options);
  const ofNamespaces = () => ({ max: namespacesMax, nowMs: clock.nowMs() });
  type Queue = Parameters<typeof queues.createQueue>[1];
  type Namespace = Parameters<typeof namespaces.createNamespace>[1];
  return {
    createQueue: (queue: Queue, actor = SERVICE) => queues.createQueue(db, queue, { actor, ...bounds() }),
    updateQueue: (queue: Queue & { readonly version: number }, actor = SERVICE) =>
      queues.updateQueue(db, queue, { actor, ...bounds() }),
    freezeQueue: (change: Omit<FreezeChange, "nowMs">) => freezeQueue(db, { ...change, nowMs: clock.nowMs() }),
    grantQuota: (grant: Omit<QuotaGrant, "atMs">) => grants.grantQuota(db, { ...grant, atMs: clock.nowMs() }),
    revokeGrant: (of: { readonly queue: string; readonly flavor: string; readonly actor: string }) =>
      grants.revokeGrant(db, { ...of, nowMs: clock.nowMs() }),
    listGrants: (queue: string | null) => grants.listGrants(db, queue),
    deleteQueue: (name: string, actor = SERVICE) => queues.deleteQueue(db, name, { actor, nowMs: clock.nowMs() }),
    getQueue: (name: string) => queues.getQueue(db, name),
    listQueues: () => queues.listQueues(db),
    createNamespace: (namespace: Namespace) => namespaces.createNamespace(db, namespace, ofNamespaces()),
    updateNamespace: (namespace: Namespace & { readonly version: number }) =>
      namespaces.updateNamespace(db, namespace, clock.nowMs()),
    deleteNamespace: (name: string) => namespaces.deleteNamespace(db, name, clock.nowMs()),
    getNamespace: (name: string) => namespaces.getNamespace(db, name),
    listNamespaces: () => namespaces.listNamespaces(db),
    setTenantLimits: (of: Parameters<typeof tenants.setTenantLimits>[1], actor: string) =>
      tenants.setTenantLimits(db, of, { actor, nowMs: clock.nowMs() }),
    listTenants: () => tenants.listTenants(db, clock.nowMs()),
    getCluster: (name: string) => clusters.getCluster(db, name),
    listClusters: () => clusters.listClusters(db),
    listNodes: nodeLister(db, clock),
    declareLost: (name: string) => silence.declareLost(db, name, clock.nowMs()),
    placedGangs: (cluster: string) => placedGangs(db, cluster),
    adoptCluster: (name: string) => adoptCluster(db, name, clock.nowMs()),
    setCordoned: (name: string, cordoned: boolean) =>
      clusters.setCordoned(db, name, { cordoned, nowMs: clock.nowMs() }),
    /** Creates a queue. If the name is taken, that queue stays as it is. */
    ensureQueue: (queue: Queue) => queues.createQueue(db, queue, { actor: SERVICE, ...bounds() }).then(() => undefined),
    /** Creates a namespace. If the name is taken, that namespace stays as it is. */
    ensureNamespace: (namespace: Namespace) =>
      namespaces.ensureNamespace(db, namespace, ofNamespaces()).then(() => undefined),
  };
}

function priorityClasses(db: Db, { clock }: StoreOptions) {
  const by = (actor: string) => ({ actor, nowMs: clock.nowMs() });
  return {
    create: (settings: PriorityClassSettings, actor: string) => classes.createPriorityClass(db, settings, by(actor)),
    update: (change: PriorityClassChange, actor: string) => classes.updatePriorityClass(db, change, by(actor)),
    remove: (name: string, actor: string) => classes.deletePriorityClass(db, name, by(actor)),
    get: (name: string) => classes.getPriorityClass(db, name),
    list: () => classes.listPriorityClasses(db),
  };
}

function trainingRuntimes(db: Db, { clock }: StoreOptions) {
  const by = (isTried: boolean) => ({ isTried, nowMs: clock.nowMs() });
  return {
    create: (settings: RuntimeSettings, { isTried = false } = {}) => runtimes.createRuntime(db, settings, by(isTried)),
    update: (change: RuntimeChange, { isTried = false } = {}) => runtimes.updateRuntime(db, change, by(isTried)),
    remove: (of: RuntimeName) => runtimes.deleteRuntime(db, of, clock.nowMs()),
    find: (of: RuntimeName) => runtimes.findRuntime(db, of),
    list: (query: RuntimeQuery) => runtimes.listRuntimes(db, query),
  };
}

function poolBounds({ clock, quotaBounds = QUOTA_BOUNDS }: StoreOptions): () => PoolBounds {
  return () => ({ nowMs: clock.nowMs(), poolsMax: quotaBounds.poolsMax });
}

function clusterStore(db: Db, options: StoreOptions) {
  const { clock } = options;
  const bounds = poolBounds(options);
  return {
    simulate: (cluster: simulated.NewSimulation) => simulated.simulateCluster(db, cluster, bounds()),
    forgetRetired: (simulatedHere: readonly string[]) =>
      simulated.forgetRetired(db, { simulatedHere, nowMs: clock.nowMs() }),
    /** `leaseEpoch`: that of the observer's lease. Omitted: only one observes. */
    recordCapacity: (seen: capacity.SeenCapacity, leaseEpoch?: number) =>
      capacity.recordCapacity(db, seen, { nowMs: clock.nowMs(), ...(leaseEpoch === undefined ? {} : { leaseEpoch }) }),
    register: (cluster: registered.NewCluster) => registered.registerCluster(db, cluster, bounds()),
    update: (cluster: Parameters<typeof registered.updateCluster>[1]) =>
      registered.updateCluster(db, cluster, bounds()),
    remove: (name: string, forget: boolean) => registered.deleteCluster(db, name, { forget, nowMs: clock.nowMs() }),
    countSilence: (counted: silence.CountedSilence, rule: LossRule) =>
      silence.countSilence(db, counted, { rule, nowMs: clock.nowMs() }),
    jobsLeftIn: (cluster: string, seen: readonly SeenOwner[]) => jobsLeftIn(db, cluster, seen),
    endReturn: (cluster: string, seen: readonly SeenOwner[]) => endReturn(db, cluster, seen),
    noteAnswer: (cluster: string) => silence.noteAnswer(db, cluster),
    /** Makes the jobs due that were placed in these clusters. */
    recheckPlaced: (names: readonly string[]) => recheckPlaced(db, names, clock.nowMs()),
    listCredentials: () => registered.listCredentials(db),
    claimUid: (told: TellsUid) => db.tx((tx) => claimUid(tx, told)),
    setUid: (told: TellsUid) => db.tx((tx) => setUid(tx, told)),
    uidRefusal: (told: TellsUid) => uidRefusal(db, told),
    sourceRefusal: (of: Parameters<typeof sourceRefusal>[1]) => sourceRefusal(db, of),
    credentialsOf: (name: string) => registered.credentialsOf(db, name),
    listKeyUses: () => credentialKeys.listKeyUses(db),
    readKeyUses: () => credentialKeys.readKeyUses(db, options.clock.nowMs()),
    resealCredentials: (page: { readonly key: string; readonly after: string }, reseal: Reseal) =>
      credentialKeys.resealCredentials(db, { ...page, nowMs: clock.nowMs() }, reseal),
    markUnreachable: (cluster: string, unusable: string | null) =>
      capacity.markUnreachable(db, cluster, { sinceMs: clock.nowMs(), unusable }),
  };
}

function memberStore(db: Db) {
  return {
    join: (member: members.NewMember) => members.joinMembers(db, member),
    renew: (name: string) => members.renewMember(db, name),
    declareDead: (seen: members.MemberCounter) => members.declareDead(db, seen),
    leave: (name: string) => members.leaveMembers(db, name),
    forgetAll: () => members.forgetMembers(db),
    takeLease: (name: string, holder: string) => takeLease(db, name, holder),
    noteCorrection: (noted: Parameters<typeof noteCorrection>[1]) => noteCorrection(db, noted),
  };
}

/** The facts from which the gauges of the whole fleet are made. */
function surveyStore(db: Db) {
  return {
    queues: () => queues.listQueues(db),
    clusters: () => clusters.listClusters(db),
    jobs: () => countJobs(db),
  };
}

function robotStore(db: Db, { clock }: StoreOptions) {
  return {
    makeRobot: (robot: Parameters<typeof robots.makeRobot>[1], bounds: RobotBounds & { readonly nowMs: number }) =>
      robots.makeRobot(db, robot, { ...bounds, auditMs: clock.nowMs() }),
    findRobot: (hash: Buffer) => robots.findRobot(db, hash),
    noteUse: (name: string, nowMs: number) => robots.noteUse(db, name, nowMs),
    getRobot: (name: string) => robots.getRobot(db, name),
    revokeRobot: (name: string, nowMs: number) => robots.revokeRobot(db, name, { nowMs, auditMs: clock.nowMs() }),
    listRobots: (page: Parameters<typeof robots.listRobots>[1]) => robots.listRobots(db, page, clock.nowMs()),
  };
}

function sessionStore(db: Db) {
  type Renewed = Parameters<typeof sessions.renewSession>[1];
  return {
    make: (session: SessionRecord, nowMs: number) => sessions.makeSession(db, session, nowMs),
    find: (idHash: string, nowMs: number) => sessions.findSession(db, idHash, nowMs),
    delete: (idHash: string) => sessions.deleteSession(db, idHash),
    deleteClaimed: async ({ idHash, claimMs }: Pick<ClaimedSession, "idHash" | "claimMs">) =>
      (await sessions.deleteSession(db, idHash, claimMs)) !== null,
    deleteExpired: (nowMs: number) => sessions.deleteExpiredSessions(db, nowMs),
    claimDue: (due: Parameters<typeof sessions.claimDueSessions>[1]) => sessions.claimDueSessions(db, due),
    renew: (renewed: Renewed, claimMs: number) => sessions.renewSession(db, renewed, claimMs),
  };
}

function accessStore(db: Db, { clock }: StoreOptions) {
  type Change = Parameters<typeof access.createRole>[2];
  type Deleted = Parameters<typeof access.deleteRole>[1];
  return {
    readAccess: (known: string | null) => access.readAccess(db, known),
    createRole: (role: Parameters<typeof access.createRole>[1], change: Change) => access.createRole(db, role, change),
    deleteRole: (role: Deleted, change: Change) => access.deleteRole(db, role, change),
    createBinding: (binding: Parameters<typeof access.createBinding>[1], change: Change) =>
      access.createBinding(db, binding, change),
    deleteBinding: (binding: Deleted, change: Change) => access.deleteBinding(db, binding, change),
    appendAudit: (...notes: readonly AuditNote[]) => db.tx((tx) => appendAudit(tx, ...notes)),
    noteSettings: (read: ReadSettings) => noteSettings(db, { ...read, nowMs: clock.nowMs() }),
    makeAuditPartitions: (keptMs: number) => partitions.makeAuditPartitions(db, { nowMs: clock.nowMs(), keptMs }),
    dropAuditPartition: (beforeMs: number) => partitions.dropAuditPartition(db, beforeMs),
    pruneAudit: (beforeMs: number) => partitions.pruneAudit(db, beforeMs),
  };
}
