import { createKeyAdmin } from "../../src/api/cluster/key-admin.ts";
import type { Admin, ClusterAdmin, JobReads, JobWatch, PriorityClasses } from "../../src/api/ports.ts";
import type { ChangeOutcome } from "../../src/core/admin/change-outcome.ts";
import { type ClusterCheck, type ClusterRecord, clusterState, type SentCluster } from "../../src/core/admin/cluster.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import type { NamespaceRecord } from "../../src/core/admin/namespace.ts";
import { changeRefusal, type PriorityClassRecord } from "../../src/core/admin/priority-class.ts";
import type { QueueRecord } from "../../src/core/admin/queue.ts";
import type { QuotaGrant } from "../../src/core/admin/quota-grant.ts";
import type { ShownEvent } from "../../src/core/job/event.ts";
import type { KeptLogs } from "../../src/core/job/failure-logs/kept-logs.ts";
import { type Job, liveAdmission } from "../../src/core/job/job.ts";
import type { PlannedNodes } from "../../src/core/job/placement/pod-places.ts";
import type { Silence } from "../../src/core/job/request/concerns.ts";
import { type JobFilter, matchesFilter } from "../../src/core/job/request/filter.ts";
import { waitsSinceMs } from "../../src/core/job/request/list.ts";
import type { CreateOutcome, EndOutcome, NewJob } from "../../src/core/job/request/requests.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import type { TenantRecord } from "../../src/core/job/tenant-limits.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { PlanGang } from "../../src/core/plan/model/plan-gang.ts";
import type { Refusal } from "../../src/core/plan/model/plan-types.ts";
import { DEFAULT_POLICY } from "../../src/core/plan/model/queue-policy.ts";
import { stopOf } from "../../src/core/plan/model/queue-stop.ts";
import type { PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import { treeProblem } from "../../src/core/quota/check-tree.ts";
import type { IntakeStore } from "../../src/intake/ports.ts";
import { canonicalJson } from "../../src/runtime/json.ts";
import { planGang } from "../core/plan/plan-world.ts";
import { countByHand } from "../support/count-by-hand.ts";
import { listMemoryNodes } from "../support/memory-nodes.ts";
import { memoryRuntimes } from "./memory-runtimes.ts";

type Entry = { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly job: Job; readonly cursor: string };
const BUFFER_MAX = 100;

const CHECK: ClusterCheck = {
  kubernetesVersion: "v1.36.3",
  clockSkewMs: -1_000,
  uid: null,
  findings: [{ severity: "ERROR", code: "MissingPermission", message: "may not watch pods" }],
};

function clusterRecord(cluster: SentCluster): ClusterRecord {
  const flags = { cordoned: false, simulated: false, reachable: false, uid: null };
  return { gangScheduler: "none", ...cluster, ...flags, observedMs: null, version: 1, createTimeMs: 0, capacity: null };
}

/** Jobs, queues, namespaces and clusters in memory, with the contracts of the ports of `api` and `intake`. */
export class MemoryStore {
  readonly jobs = new Map<string, { job: Job; sent: SentJob }>();
  readonly requestIds = new Map<string, { sent: SentJob; uid: string }>();
  readonly queues = new Map<string, QueueRecord>();
  readonly classes = new Map<string, PriorityClassRecord>();
  readonly namespaces = new Map<string, NamespaceRecord>();
  readonly tenants = new Map<string, TenantRecord>();
  readonly clusters = new Map<string, ClusterRecord>();
  /** The nodes of a cluster with the members on them. Omitted: those of its record, without members. */
  readonly nodeEntries = new Map<string, readonly CapacityEntry[]>();
  readonly refusals = new Map<string, { refusal: Refusal; atMs: number }>();
  readonly events: ShownEvent[] = [];
  readonly #watchers = new Set<(gang: Entry) => void>();
  readonly #log: Entry[] = [];
  /** The uids of all jobs that ever had a name. */
  readonly #uids = new Map<string, ReadonlySet<string>>();
  open = true;
  /** True: records of deleted jobs go away at once, as without pods. */
  removesDeleted = false;
  /** The resources of the clusters' nodes. Null: not known. */
  nodeResources: ReadonlySet<string> | null = null;

  constructor() {
    this.queues.set("default", queueRecord("default"));
    this.namespaces.set("default", namespaceRecord("default"));
  }

  readonly clusterAdmin: ClusterAdmin = {
    // No credentials are kept here.
    ...createKeyAdmin({
      keys: () => onlyDefault(Buffer.alloc(32)),
      table: {
        listKeyUses: async () => [],
        readKeyUses: async () => [],
        resealCredentials: async () => ({ changed: 0, kept: [], last: null }),
      },
      loadReseal: async () => (stored) => stored,
    }),
    register: async (cluster, { kubeconfig }) => {
      if (kubeconfig.kind === "path") return { kind: "refusedCredentials", problems: ["names a file"] };
      if (kubeconfig.kind === "secret") return { kind: "unknownSource", source: kubeconfig.cluster };
      if (kubeconfig.text === "no key") return { kind: "noKey" };
      if (this.clusters.has(cluster.name)) return { kind: "exists" };
      const record = clusterRecord(cluster);
      this.clusters.set(cluster.name, record);
      return { kind: "done", record, check: CHECK };
    },
    tryOut: async () => CHECK,
    update: async ({ version, ...cluster }) => {
      const before = this.clusters.get(cluster.name);
      if (before === undefined) return { kind: "notFound" };
      if (version !== 0 && version !== before.version) return { kind: "stale" };
      const record = { ...before, ...cluster, version: before.version + 1 };
      this.clusters.set(cluster.name, record);
      return { kind: "done", record };
    },
    check: async (name) => (this.clusters.has(name) ? CHECK : "notFound"),
    remove: async (name, forget) => {
      if (!this.clusters.has(name)) return { kind: "notFound" };
      if (name === "busy" && !forget) return { kind: "inUse", by: "1 gang" };
      this.clusters.delete(name);
      return { kind: "done", record: null };
    },
  };

  readonly firstWaiting = async ({ queue }: { readonly queue: string }): Promise<readonly PlanGang[]> => {
    const waits = ({ status, spec }: Job) =>
      status.phase === "WAITING" && spec.runPolicy.schedulingPolicy.queue === queue;
    return [...this.jobs.values()].filter(({ job }) => waits(job)).map(({ job }) => planGang(job));
  };

  /** A snapshot in which no gang waits or runs, and no pool has a limit. */
  readonly snapshot = async (): Promise<PlanSnapshot> => {
    const queues = [...this.queues.values()];
    const pools = new Set(queues.flatMap(({ quotas }) => quotas.map(({ flavor }) => flavor)));
    return {
      quotaEpoch: 1,
      waiting: [],
      admitted: [],
      queues,
      pools: [...pools].map((pool) => ({ pool, quota: null, projectDefault: null, namespaceDefault: null })),
      sums: [],
      callers: [],
      clusters: [...this.clusters.values()].map((cluster) => ({ ...cluster, admissionCounter: 0 })),
    };
  };

  readonly intakeStore: IntakeStore = {
    facts: async ({ namespace: name }) => ({
      namespace: this.namespaces.get(name) ?? (this.open ? "open" : null),
      queueExists: async (queue) => this.queues.has(queue),
      priorityClasses: {
        default: [...this.classes.values()].find(({ globalDefault }) => globalDefault) ?? null,
        find: async (name) => this.classes.get(name) ?? null,
        names: async () => [...this.classes.keys()],
      },
      nodeResources: async () => this.nodeResources,
      clusterLevels: async () => {
        return [...this.clusters.values()].map(({ name, labels, topology = [] }) => ({
          name,
          labels,
          levels: topology,
        }));
      },
    }),
    earlierRequest: async (request) => this.#earlier(request),
    createJob: async (created) => this.#create(created),
    createJobs: async (jobs) => jobs.map((created) => this.#createFree(created)),
    changeJob: async (which, decide) => {
      const found = this.jobs.get(`${which.namespace}/${which.name}`);
      if (found === undefined) return { kind: "notFound" as const };
      const decided = decide(found.job, found.sent);
      if ("event" in decided) {
        const { job, sent = found.sent } = decided;
        this.put(job);
        this.jobs.set(`${which.namespace}/${which.name}`, { job, sent });
      }
      return decided;
    },
    requestCancel: async (which, reason, atMs) => this.#cancel(which, (job) => ({ ...job, cancel: { reason, atMs } })),
    requestDelete: async (which, atMs) => this.#delete(which, atMs),
  };

  #create({ job, sent, requestId, dryRun }: NewJob): CreateOutcome {
    const idKey = `${job.namespace}/${requestId}`;
    const earlier = this.#earlier({ namespace: job.namespace, requestId, sent });
    if (earlier !== null) return earlier;
    const there = this.jobs.get(`${job.namespace}/${job.name}`);
    if (there?.job.deleteTimeMs) return { kind: "beingDeleted" };
    if (there !== undefined) {
      const same = sent.name !== "" && canonicalJson(there.sent) === canonicalJson(sent);
      return same ? { kind: "unchanged", job: there.job } : { kind: "nameTaken", sent: there.sent };
    }
    if (dryRun) return { kind: "created", job };
    if (requestId !== "") this.requestIds.set(idKey, { sent, uid: job.uid });
    if (!this.namespaces.has(job.namespace)) this.namespaces.set(job.namespace, namespaceRecord(job.namespace));
    this.put(job, sent);
    return { kind: "created", job };
  }

  #createFree(created: NewJob): { kind: "created"; job: Job } | null {
    const { job, requestId } = created;
    const taken = this.requestIds.has(`${job.namespace}/${requestId}`) || this.jobs.has(`${job.namespace}/${job.name}`);
    const outcome = taken ? null : this.#create(created);
    return outcome?.kind === "created" ? { kind: "created", job: outcome.job } : null;
  }

  #earlier(request: { namespace: string; requestId: string; sent: SentJob }): CreateOutcome | null {
    const earlier = this.requestIds.get(`${request.namespace}/${request.requestId}`);
    if (request.requestId === "" || earlier === undefined) return null;
    if (canonicalJson(earlier.sent) !== canonicalJson(request.sent))
      return { kind: "requestIdReused", sent: earlier.sent };
    const made = [...this.jobs.values()].find((entry) => entry.job.uid === earlier.uid);
    return made ? { kind: "replayed", job: made.job } : { kind: "madeAndDeleted", uid: earlier.uid };
  }

  /** Records a job, and sends the change to watches. */
  put(job: Job, sent?: SentJob): void {
    const key = `${job.namespace}/${job.name}`;
    const before = this.jobs.get(key);
    this.#uids.set(key, new Set([...(this.#uids.get(key) ?? []), job.uid]));
    this.jobs.set(key, { job, sent: sent ?? before!.sent });
    this.#append(before === undefined ? "ADDED" : "MODIFIED", job);
  }

  forget(job: Job): void {
    this.jobs.delete(`${job.namespace}/${job.name}`);
    this.#append("DELETED", job);
  }

  #append(type: Entry["type"], job: Job): void {
    const gang: Entry = { type, job, cursor: String(this.#log.length + 1) };
    this.#log.push(gang);
    for (const watcher of this.#watchers) watcher(gang);
  }

  #cancel(which: { namespace: string; name: string }, change: (job: Job) => Job): EndOutcome {
    const found = this.jobs.get(`${which.namespace}/${which.name}`)?.job;
    if (found === undefined) return { kind: "notFound" };
    if (isTerminal(found.status)) return { kind: "terminal", job: found };
    if (found.cancel !== null) return { kind: "already", job: found };
    const job = { ...change(found), version: found.version + 1 };
    this.put(job);
    return { kind: "cancelled", job };
  }

  #delete(which: { namespace: string; name: string }, deleteTimeMs: number): EndOutcome {
    const found = this.jobs.get(`${which.namespace}/${which.name}`)?.job;
    if (found === undefined) return { kind: "notFound" };
    if (found.deleteTimeMs !== null) return { kind: "already", job: found };
    const job = { ...found, deleteTimeMs, version: found.version + 1 };
    this.put(job);
    if (this.removesDeleted) setImmediate(() => this.forget(job));
    return { kind: "deleting", job };
  }

  /** The clusters that do not answer, or cannot be used. */
  readonly silent = new Map<string, Silence>();

  /** What is kept of failed containers, by the uid of their job. */
  readonly failureLogs = new Map<string, KeptLogs>();
  /** The planned nodes of jobs by their uids. */
  readonly planned = new Map<string, PlannedNodes>();

  readonly reads: JobReads = {
    silentClusters: async () => this.silent,
    plannedNodes: async (uid) => this.planned.get(uid) ?? null,
    getJob: async (which) => {
      const all = [...this.jobs.values()].map((entry) => entry.job);
      const job = all.find((one) =>
        "uid" in which ? one.uid === which.uid : one.namespace === which.namespace && one.name === which.name,
      );
      return job === undefined ? null : this.#shown(job);
    },
    listJobs: async ({ filter, order, pageSize, after }) => {
      if (after !== null && !/^\d+$/.test(after)) return "badCursor";
      const jobs = this.#matching(filter).sort((a, b) => {
        if (order === "name") return a.name < b.name ? -1 : 1;
        if (order === "priority desc") return b.spec.priority - a.spec.priority;
        if (order === "complete_time desc") return (b.status.completionTimeMs ?? 0) - (a.status.completionTimeMs ?? 0);
        if (order === "wait_since") return waitsSinceMs(a) - waitsSinceMs(b);
        return order === "create_time" ? a.createTimeMs - b.createTimeMs : b.createTimeMs - a.createTimeMs;
      });
      const from = Number(after ?? 0);
      const page = jobs.slice(from, from + pageSize);
      const next = from + page.length < jobs.length ? String(from + page.length) : null;
      const listed = page.map((job, at) => ({ ...this.#shown(job), cursor: String(from + at + 1) }));
      return { jobs: listed, next, total: jobs.length };
    },
    countJobs: async (query) =>
      countByHand(
        [...this.jobs.values()].map(({ job }) => ({ job, tokens: [] })),
        query,
        Date.now(),
      ),
    queuesBelow: async (queue) =>
      [...this.queues.values()].map(({ name }) => name).filter((name) => isBelow(this.queues, { name, above: queue })),
    jobsOnNode: async ({ node, cluster }) =>
      [...this.nodeEntries].flatMap(([name, entries]) => {
        const isAsked = cluster === "" || cluster === name;
        const found = entries.find((entry) => isAsked && entry.kind === "node" && entry.name === node);
        return found?.kind === "node" ? found.members.map(({ jobUid }) => jobUid) : [];
      }),
    listEvents: async ({ namespace, name, pageSize, after }) => {
      if (after !== null && !/^\d+$/.test(after)) return "badCursor";
      const uids = this.#uids.get(`${namespace}/${name}`);
      if (uids === undefined) return "notFound";
      const from = Number(after ?? 0);
      const events = this.events.filter((event) => uids.has(event.jobUid));
      const next = from + pageSize < events.length ? String(from + pageSize) : null;
      return { events: events.slice(from, from + pageSize), next };
    },
    refusalOf: async (uid) => this.refusals.get(uid) ?? null,
    failureLogs: async (uid) => this.failureLogs.get(uid) ?? { keeps: true, logs: [] },
  };

  #shown(job: Job) {
    const waiting = this.#matching({ ...ANY, phases: ["WAITING"] });
    const at = waiting.findIndex((one) => one.uid === job.uid);
    return { job, position: at < 0 ? null : at + 1, tokens: [] };
  }

  #matching(filter: JobFilter): Job[] {
    return [...this.jobs.values()].map((entry) => entry.job).filter((job) => matchesFilter(filter, job));
  }

  readonly watch: JobWatch = {
    checkCursor: (cursor) => /^\d+$/.test(cursor),
    watch: (request, signal) => this.#watch(request, signal),
  };

  get watching(): number {
    return this.#watchers.size;
  }

  async *#watch({ filter, cursor }: { filter: JobFilter; cursor: string }, signal: AbortSignal) {
    const buffer: Entry[] = [];
    let overflow = false;
    let wake = () => {};
    const hear = (gang: Entry) => {
      if (!matchesFilter(filter, gang.job)) return;
      if (buffer.length < BUFFER_MAX) buffer.push(gang);
      else overflow = true;
      wake();
    };
    const stop = () => wake();
    this.#watchers.add(hear);
    signal.addEventListener("abort", stop);
    try {
      let last = cursor || String(this.#log.length);
      if (cursor === "") for (const job of this.#matching(filter)) yield { type: "ADDED" as const, job, cursor: last };
      else for (const gang of this.#log.slice(Number(cursor))) if (matchesFilter(filter, gang.job)) yield gang;
      yield { type: "BOOKMARK" as const, cursor: last };
      while (!signal.aborted) {
        const gang = buffer.shift();
        if (gang !== undefined) {
          last = gang.cursor;
          yield gang;
        } else if (overflow) {
          yield { type: "TOO_SLOW" as const, cursor: last };
          return;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      this.#watchers.delete(hear);
      signal.removeEventListener("abort", stop);
    }
  }

  #withStop(outcome: ChangeOutcome<QueueRecord>): ChangeOutcome<QueueRecord> {
    if (outcome.kind !== "done") return outcome;
    const { record } = outcome;
    return { kind: "done", record: { ...record, stoppedBy: stopOf(record.name, this.queues)?.queue ?? null } };
  }

  readonly priorityClasses: PriorityClasses = {
    create: async (settings) => {
      if (this.classes.has(settings.name)) return { kind: "exists" };
      const other = this.#otherDefault(settings);
      if (other !== null) return { kind: "otherDefault", name: other };
      return keep(this.classes, { ...settings, version: 1, createTimeMs: 1000, updateTimeMs: 1000 });
    },
    update: async (change) => {
      const before = this.classes.get(change.name);
      if (before === undefined) return { kind: "notFound" };
      const { description, globalDefault } = change;
      const refused = changeRefusal(before, change);
      if (refused !== null) return refused;
      const other = this.#otherDefault(change);
      if (other !== null) return { kind: "otherDefault", name: other };
      return keep(this.classes, { ...before, description, globalDefault, version: before.version + 1 });
    },
    remove: async (name) => drop(this.classes, name),
    get: async (name) => this.classes.get(name) ?? null,
    list: async () => [...this.classes.values()].sort((a, b) => b.value - a.value),
  };

  #otherDefault(of: { readonly name: string; readonly globalDefault: boolean }): string | null {
    if (!of.globalDefault) return null;
    return [...this.classes.values()].find((one) => one.globalDefault && one.name !== of.name)?.name ?? null;
  }

  readonly runtimes = memoryRuntimes((name) => this.namespaces.has(name));

  readonly grants = new Map<string, QuotaGrant>();
  readonly admin: Admin = {
    createQueue: async ({ parent = null, ...settings }) => {
      const queue = { ...settings, parent };
      if (this.queues.has(queue.name)) return { kind: "exists" };
      const problem = treeProblem(queue, [...this.queues.values()]);
      return problem ? { kind: "misplaced", problem } : keep(this.queues, { ...queueRecord(queue.name), ...queue });
    },
    updateQueue: async ({ parent = null, ...settings }) => {
      const queue = { ...settings, parent };
      const there = this.queues.get(queue.name);
      if (there === undefined) return { kind: "notFound" };
      if (queue.version !== 0 && queue.version !== there.version) return { kind: "stale" };
      const problem = treeProblem(queue, [...this.queues.values()]);
      if (problem !== null) return { kind: "misplaced", problem };
      return this.#withStop(keep(this.queues, { ...there, ...queue, version: there.version + 1 }));
    },
    freezeQueue: async ({ name, reason, actor }) => {
      const there = this.queues.get(name);
      if (there === undefined) return { kind: "notFound" };
      const freeze = reason === null ? null : { by: actor, atMs: 1000, reason };
      const frozen = { ...there, freeze, frozenBy: freeze && name, version: there.version + 1 };
      return this.#withStop(keep(this.queues, frozen));
    },
    grantQuota: async (grant) => {
      const queue = this.queues.get(grant.queue);
      if (queue === undefined) return { kind: "unknownQueue" };
      if (!queue.quotas.some(({ flavor }) => flavor === grant.flavor)) return { kind: "noQuota" };
      const made = { ...grant, atMs: 1000 };
      this.grants.set(`${grant.queue} ${grant.flavor}`, made);
      return { kind: "done", grant: made };
    },
    revokeGrant: async ({ queue, flavor }) => {
      const grant = this.grants.get(`${queue} ${flavor}`);
      this.grants.delete(`${queue} ${flavor}`);
      return grant === undefined ? { kind: "noGrant" } : { kind: "done", grant };
    },
    listGrants: async (queue) => [...this.grants.values()].filter((grant) => grant.queue === (queue ?? grant.queue)),
    deleteQueue: async (name) => {
      const user = [...this.jobs.values()].find(({ job }) => job.spec.runPolicy.schedulingPolicy.queue === name);
      if (user !== undefined) return { kind: "inUse", by: `job ${user.job.namespace}/${user.job.name}` };
      const child = [...this.queues.values()].find(({ parent }) => parent === name);
      if (child !== undefined) return { kind: "inUse", by: `queue ${child.name}, which is below it` };
      return drop(this.queues, name);
    },
    getQueue: async (name) => {
      const record = this.queues.get(name);
      return record === undefined ? null : { ...record, stoppedBy: stopOf(name, this.queues)?.queue ?? null };
    },
    listQueues: async () => [...this.queues.values()],
    createNamespace: async ({ namesQueue = false, ...namespace }) => {
      const { name, defaultQueue } = namespace;
      if (namesQueue && !this.queues.has(defaultQueue)) return { kind: "unknownQueue", name: defaultQueue };
      if (this.namespaces.has(name)) return { kind: "exists" };
      return keep(this.namespaces, { ...namespaceRecord(name), ...namespace });
    },
    updateNamespace: async ({ namesQueue = false, ...namespace }) => {
      const { defaultQueue } = namespace;
      if (namesQueue && !this.queues.has(defaultQueue)) return { kind: "unknownQueue", name: defaultQueue };
      const there = this.namespaces.get(namespace.name);
      if (there === undefined) return { kind: "notFound" };
      if (namespace.version !== 0 && namespace.version !== there.version) return { kind: "stale" };
      return keep(this.namespaces, { ...there, ...namespace, version: there.version + 1 });
    },
    deleteNamespace: async (name) => {
      const user = [...this.jobs.values()].find(({ job }) => job.namespace === name);
      if (user !== undefined) return { kind: "inUse", by: `job ${name}/${user.job.name}` };
      return drop(this.namespaces, name);
    },
    getNamespace: async (name) => this.namespaces.get(name) ?? null,
    listNamespaces: async () => [...this.namespaces.values()],
    setTenantLimits: async ({ tenant, limits }) => {
      if (tenant.kind === "namespace" && !this.namespaces.has(tenant.name)) return null;
      const record = {
        tenant,
        limits,
        use: { waitingJobs: 0, runningJobs: 0, pods: 0, templateBytes: 0, robotTokens: 0 },
      };
      this.tenants.set(`${tenant.kind} ${tenant.name}`, record);
      return record;
    },
    listTenants: async () => [...this.tenants.values()],
    getCluster: async (name) => this.clusters.get(name) ?? null,
    listNodes: async (query) =>
      listMemoryNodes(query, {
        clusters: this.clusters,
        entries: this.nodeEntries,
        jobs: [...this.jobs.values()].map(({ job }) => job),
      }),
    listClusters: async () => [...this.clusters.values()],
    setCordoned: async (name, cordoned) => {
      const there = this.clusters.get(name);
      return there === undefined ? { kind: "notFound" } : keep(this.clusters, { ...there, cordoned });
    },
    adoptCluster: async (name) => {
      const there = this.clusters.get(name);
      return there === undefined ? { kind: "notFound" } : keep(this.clusters, { ...there, unadoptedMs: null });
    },
    placedGangs: async (cluster) =>
      [...this.jobs.values()].flatMap(({ job }) => (liveAdmission(job)?.cluster === cluster ? [job] : [])),
    declareLost: async (name) => {
      const there = this.clusters.get(name);
      if (there === undefined) return { kind: "notFound" };
      const state = clusterState(there);
      if (state !== "UNREACHABLE" && state !== "LOST") return { kind: "answers", state };
      const silence = { sinceMs: null, unusable: null, ...there.silence, lostMs: 1 };
      return keep(this.clusters, { ...there, silence });
    },
  };
}

const ANY: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };

function isBelow(
  queues: ReadonlyMap<string, QueueRecord>,
  { name, above }: { readonly name: string; readonly above: string },
): boolean {
  const parent = queues.get(name)?.parent ?? null;
  return parent !== null && (parent === above || isBelow(queues, { name: parent, above }));
}

function keep<T extends { readonly name: string }>(map: Map<string, T>, record: T): ChangeOutcome<T> {
  map.set(record.name, record);
  return { kind: "done", record };
}

function drop<T>(map: Map<string, T>, name: string): ChangeOutcome<T> {
  const record = map.get(name);
  if (record === undefined) return { kind: "notFound" };
  map.delete(name);
  return { kind: "done", record };
}

export function queueRecord(name: string): QueueRecord {
  const times = { createTimeMs: 1000, updateTimeMs: 1000 };
  const use = { used: {}, borrowed: {}, lent: {}, share: 0, waiting: 0, admitted: 0, lost: {} };
  const limits = { maxRunningJobs: null, maxWaitingJobs: null };
  const stop = { onClusterLost: null, stopPolicy: "NONE" as const, stoppedBy: null, freeze: null, frozenBy: null };
  return {
    name,
    parent: null,
    strategy: "BEST_EFFORT_FIFO",
    quotas: [],
    version: 1,
    ...stop,
    ...limits,
    ...use,
    ...times,
    policy: DEFAULT_POLICY,
  };
}

function namespaceRecord(name: string): NamespaceRecord {
  return {
    name,
    project: "default",
    defaultQueue: "default",
    podPolicy: null,
    keepFailureLogs: true,
    onClusterLost: "MOVE",
    version: 1,
    createTimeMs: 1000,
  };
}
