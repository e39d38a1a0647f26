/** Every kind of transaction of the store, on so few rows that many of them at once want the same ones. */
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { holdCounters } from "../../src/adapters/store/fleet/counters-holder.ts";
import { stepGroups } from "../../src/adapters/store/jobs/step-groups.ts";
import { changeHeirs } from "../../src/adapters/store/ledger/give-back.ts";
import type { BucketLease } from "../../src/core/job/bucket.ts";
import type { Job } from "../../src/core/job/job.ts";
import { NO_TENANT_LIMITS } from "../../src/core/job/tenant-limits.ts";
import { refuse as refuseGang } from "../../src/core/plan/explain/refuse.ts";
import type { FleetPlace, FleetRead } from "../../src/core/plan/facts/fleet-read.ts";
import type { AdmissionRecord } from "../../src/core/plan/model/plan-types.ts";
import type { PlannedVictim, PreemptionRecord } from "../../src/core/plan/model/preemption.ts";
import type { HeldToken } from "../../src/core/quota/counters.ts";
import type { LedgerGrant } from "../../src/core/quota/ledger.ts";
import type { Decision } from "../../src/core/reconcile/decision.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { keyed } from "../support/keyed.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { gangOfPlanned } from "../support/planned-gang.ts";
import { FLAVOR, NO_LIMIT, NOW, newJob, plannedFor, sentOf } from "./jobs.ts";
import { allocation, caller, freshLedger, POOL, poolChange, releaseOf } from "./ledger-fixture.ts";
import { entriesAfter } from "./log.ts";
import { pruneAll } from "./prune.ts";

const ALL = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const POOLS = [POOL, "ex:b", "apart"];
const QUEUES = ["research", "left", "right"];
const CLUSTERS = ["a-real", "east", "west", "z-real"];
const NAMESPACES = ["n1", "n2", "team"];
const MEMBERS = ["m1", "m2"];
const UIDS = ["uid-1", "uid-2"];
const FLAVORS = [{ name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: {} }];

const DAY = 86_400_000;
const NOTHING_KNOWN = { versionOf: () => null, usedOf: () => 0, cursorOf: () => null };

/** Runs one transaction. `random` decides which rows it wants. */
export type Act = () => Promise<unknown>;

/** Makes an empty store with a few rows of every kind, and returns its transactions by name. */
export async function everyTransaction(db: Db, random: () => number): Promise<Readonly<Record<string, Act>>> {
  const { store, epoch, grant } = await freshLedger(db);
  await store.pools.register(poolChange({ name: "ex:b", quota: 10 }), { version: 0, actor: "admin" });
  await store.pools.register(poolChange({ name: "apart", quota: 10, domain: "far" }), { version: 0, actor: "admin" });
  let quotaEpoch = epoch;
  let plannerEpoch = (await store.members.takeLease("planner", "p1")) ?? 0;
  const leases = new Map<number, BucketLease>();
  const groups = stepGroups(db, OWN_KINDS);
  let jobs: readonly Job[] = [];
  let requests = 0;

  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const some = <T>(of: readonly T[]): readonly T[] => {
    const chosen = of.filter(() => random() < 0.6).sort(() => random() - 0.5);
    return chosen.length > 0 ? chosen : of.slice(0, 1);
  };
  const token = () => `t${Math.floor(random() * 6)}`;
  const freshJob = () => newJob({ namespace: pick(NAMESPACES), name: `job-${Math.floor(random() * 40)}` });
  const jobName = () => ({ namespace: pick(NAMESPACES), name: `job-${Math.floor(random() * 40)}` });
  const byAdmin = { version: 0, actor: "admin" };
  const quotas = () =>
    some([FLAVOR, POOL, "ex:b"]).map((flavor) => ({ flavor, resource: flavor, nominal: Math.floor(random() * 90) }));
  const queueOf = (name: string) => ({
    name,
    strategy: "BEST_EFFORT_FIFO" as const,
    quotas: quotas(),
    stopPolicy: pick(["NONE", "NONE", "HOLD_AND_DRAIN"] as const),
    parent: name === "research" ? null : pick([null, "research"]),
    maxWaitingJobs: pick([null, 5, 1000]),
    onClusterLost: pick([null, "WAIT", "MOVE"] as const),
  });

  async function take(buckets: readonly number[] | undefined, worker: string): Promise<void> {
    for (const lease of await store.worker.takeBuckets(worker, buckets)) leases.set(lease.bucket, lease);
  }

  async function look(): Promise<void> {
    const waiting = await store.explain.firstWaiting({ queue: "research", max: 20 });
    const { changes } = await store.explain.followTakers().readFleet(null, NOTHING_KNOWN);
    const holders = changes.flatMap((change) => (change.kind === "gang" ? [change.uid] : []));
    await store.explain.gangsNow(holders);
    const uids = some([...new Set([...waiting.map(({ uid }) => uid), ...holders])]).slice(0, 8);
    const loaded = await Promise.all(uids.map((uid) => store.worker.loadJob(uid)));
    jobs = loaded.flatMap((one) => (one === null ? [] : [one.job]));
  }

  function grantOf(pools: readonly string[], holder = caller("flyte")): LedgerGrant {
    const allocations = pools.map((pool) => allocation({ pool, token: token(), leaseMs: null }));
    const made = grant(allocations, holder);
    return { ...made, fence: (BigInt(quotaEpoch) << 32n) + (made.fence & 0xffff_ffffn) };
  }

  async function admit(): Promise<void> {
    await look();
    const counted = await db.query<{ name: string; counter: number }>(
      "select name, admission_counter as counter from clusters where forgotten_ms is null",
    );
    const counters = new Map(counted.map(({ name, counter }) => [name, counter]));
    const records = jobs
      .filter((job) => job.admissions.length === 0)
      .map((job): AdmissionRecord => {
        const cluster = pick(CLUSTERS);
        const planned = plannedFor(job, { cluster, admissionCounter: counters.get(cluster) ?? 0 });
        const allocations = planned.allocations.map((one) => ({
          ...one,
          ...NO_LIMIT,
          token: `job/${job.uid}/admission/1/step/1/1`,
        }));
        return { planned, gang: gangOfPlanned(planned), allocations, fence: grantOf([POOL]).fence, chain: null };
      });
    await store.planner.recordAdmissions({ records, counters, quotaEpoch, plannerEpoch, nowMs: NOW });
  }

  /** What a worker decides about a job: it ends, loses a member, changes its words, or goes. */
  function decide(job: Job): Decision {
    const kind = pick(["ends", "shrinks", "speaks", "goes", "waits"] as const);
    const ended = { state: "ended" as const, tokensReleasedMs: NOW, goneMs: NOW };
    const admissions = job.admissions.map((admission) => {
      if (kind === "ends") return { ...admission, ...ended };
      return kind === "shrinks" ? { ...admission, members: { Worker: 1 } } : admission;
    });
    const status = kind === "ends" ? { ...job.status, phase: "SUCCEEDED" as const, completionTimeMs: NOW } : job.status;
    const record = { status, admissions, events: [], deleteTimeMs: null };
    return {
      record: kind === "waits" || kind === "goes" ? null : record,
      forget: kind === "goes",
      actions: [],
      recheckAtMs: NOW + Math.floor(random() * 9),
    };
  }

  async function step(): Promise<void> {
    await look();
    await Promise.all(
      jobs.map(async (job) => {
        const loaded = await store.worker.loadJob(job.uid);
        const lease = leases.get(loaded?.bucket ?? -1);
        if (loaded === null || lease === undefined) return;
        await store.worker.record(loaded.job, decide(loaded.job), lease, NOW);
      }),
    );
  }

  const refuse = async () => {
    await look();
    const refusals = jobs.map(({ uid }) => {
      const why = { reason: pick(["NoCapacity", "NoQuota"]), message: pick(["one", "two"]) };
      return keyed(refuseGang({ uid, generation: 1 }, why), Math.floor(random() * 3));
    });
    await store.planner.recordRefusals(refusals, plannerEpoch, NOW);
  };

  const evict = async () => {
    await look();
    const evictions = jobs.map(({ uid, spec, admissions }) => ({
      jobUid: uid,
      queue: spec.runPolicy.schedulingPolicy.queue,
      admission: admissions[0]?.number ?? 1,
      reason: "QueueStopped",
      message: "the queue is stopped",
    }));
    await store.planner.recordEvictions(evictions, plannerEpoch, NOW);
  };

  /** Nominates waiting jobs, and preempts some that run for them; or gives their nominations up. */
  const preempt = async () => {
    await look();
    const gangs = new Map((await store.explain.gangsNow(jobs.map(({ uid }) => uid))).map((gang) => [gang.uid, gang]));
    const victims = jobs.flatMap(({ uid: jobUid, admissions }): PlannedVictim[] => {
      const live = admissions.find(({ state }) => state === "live");
      const facts = { jobUid, queue: "research", reason: pick(["InClusterQueue", "InCohortFairSharing"] as const) };
      return live === undefined ? [] : [{ ...facts, admission: live.number, members: live.members }];
    });
    const records = jobs
      .filter(({ admissions }) => admissions.length === 0)
      .map((job): PreemptionRecord => {
        const generation = gangs.get(job.uid)?.generation ?? 1;
        return { planned: plannedFor(job, { generation }), victims: some(victims), queue: "research" };
      });
    await store.planner.recordPreemptions(records, plannerEpoch, NOW);
    const nominees = some(jobs.map(({ uid }) => uid));
    await store.planner.recordWithdrawals(nominees, plannerEpoch, NOW);
  };

  const nominate = async () => {
    await look();
    const named = jobs.slice(0, 2).map(({ uid, project, namespace }) => ({
      jobUid: uid,
      admission: 1 + Math.floor(random() * 2),
      queue: "research",
      project,
      namespace,
      needs: some([FLAVOR, POOL]).map((pool) => ({ pool, amount: 1 + Math.floor(random() * 6) })),
      victims: jobs.slice(1).map((job) => ({ jobUid: job.uid, admission: 1 })),
    }));
    const withdrawn = jobs.slice(2).map(({ uid }) => uid);
    await db.tx(async (tx) => {
      const uids = jobs.map(({ uid }) => uid);
      await tx.query("select 1 from jobs where uid = any($1::uuid[]) order by uid for no key update", [uids]);
      await changeHeirs(tx, { named, withdrawn }, NOW);
    });
  };

  await take(undefined, "w1");
  return {
    createJob: () => {
      const job = freshJob();
      return store.intake.createJob({ job, sent: sentOf(job), requestId: pick(["", `r${requests++ % 9}`]) });
    },
    createJobs: () => {
      const made = Array.from({ length: 5 }, freshJob);
      return store.intake.createJobs(
        made.map((job) => ({ job, sent: sentOf(job), requestId: pick(["", `r${requests++ % 9}`]) })),
      );
    },
    changeJob: () =>
      store.intake.changeJob(
        jobName(),
        (job) => ({
          kind: "changed",
          job: { ...job, labels: { at: `${random()}` }, version: job.version + 1 },
          event: { type: "Normal", reason: "Changed", message: "its labels" },
        }),
        NOW,
      ),
    cancel: () => store.intake.requestCancel(jobName(), "enough", NOW),
    delete: () => store.intake.requestDelete(jobName(), NOW),
    admit,
    refuse,
    evict,
    preempt,
    nominate,
    withdrawEnded: () => ledgerAt(store, NOW).withdrawEnded(),
    readFleet: async () => {
      let place: FleetPlace | null = null;
      for (let reads = 0; reads < 9; reads += 1) {
        const read: FleetRead = await store.planner.readFleet(place, NOTHING_KNOWN);
        if (!read.more) break;
        place = read.place;
      }
      await store.planner.gangsOf(jobs.map(({ uid }) => uid));
    },
    outdate: () =>
      db.query("update jobs set gang_version = null where namespace = $1 and name = $2", [
        jobName().namespace,
        jobName().name,
      ]),
    step,
    note: async () => {
      await look();
      const event = { type: "Normal" as const, reason: "Seen", message: "" };
      await Promise.all(jobs.map((job) => groups.notes.ask({ job, events: [event], nowMs: NOW })));
    },
    takeBuckets: () => take(undefined, "w1"),
    giveBuckets: async () => {
      await store.worker.giveBuckets("w1", some([...leases.keys()]));
      await take(undefined, "w1");
    },
    commit: () => ledgerAt(store, NOW).commit(quotaEpoch, [grantOf(some([POOL, "ex:b"])), grantOf([POOL])]),
    commitForTask: async () => {
      await look();
      const [job] = jobs;
      const loaded = job === undefined ? null : await store.worker.loadJob(job.uid);
      const lease = leases.get(loaded?.bucket ?? -1);
      if (loaded === null || lease === undefined) return;
      const holder = { kind: "admission", jobUid: loaded.job.uid, admission: 1 } as const;
      const made = grantOf([POOL], holder);
      await ledgerAt(store, NOW).commit(quotaEpoch, [{ ...made, lease }]);
      const given = made.allocations.map((one) => releaseOf({ token: one.token, holder, lease }));
      await ledgerAt(store, NOW).release(given);
    },
    release: () => ledgerAt(store, NOW).release(some(POOLS).map((pool) => releaseOf({ pool, token: token() }))),
    bury: () => ledgerAt(store, NOW).bury([releaseOf({ token: token() }), releaseOf({ token: token() })]),
    forgetTombstones: async () => ledgerAt(store).forgetTombstones(await ledgerAt(store).tombstones(9)),
    void: () => {
      const { allocations, holder, fence } = grantOf(["apart", POOL]);
      const held = allocations.map(({ caps: _, ...rest }): HeldToken => ({ ...rest, holder, fence, confirmed: false }));
      return ledgerAt(store, NOW).voidGrants(held);
    },
    settle: async () => {
      const turns = await ledgerAt(store).untoldTurnOvers(50);
      await ledgerAt(store).confirmTurnOvers(turns.map(({ to }) => to));
      await ledgerAt(store).confirmReleases(await ledgerAt(store).unconfirmedReleases(50));
      await ledgerAt(store).confirmShrinks(await ledgerAt(store).unconfirmedShrinks(50));
      await ledgerAt(store, NOW + 90_000_000).pruneReleases();
    },
    raiseEpoch: async () => {
      quotaEpoch = (await ledgerAt(store).raiseEpoch(null)).epoch;
      await ledgerAt(store, 0, "far~redis").raiseEpoch(null);
    },
    compare: async () => {
      await ledgerAt(store).readUsed();
      return ledgerAt(store).readBoth(async () => ({ used: [], limitsVersion: 0, tokens: [] }));
    },
    repair: async () => {
      await store.pools.check(null);
      await store.pools.repair(pick([null, POOL]));
    },
    forceRelease: () => store.pools.forceRelease({ pool: pick(POOLS), token: token(), reason: "r", actor: "admin" }),
    audit: () => store.pools.appendAudit({ actor: "a", action: "ForceRelease", subject: "s", reason: "", details: {} }),
    keepAudit: async () => {
      await store.access.makeAuditPartitions(pick([1, 365]) * DAY).catch(unlessTimeout);
      await store.access.dropAuditPartition(NOW + pick([0, 5_000]) * DAY).catch(unlessTimeout);
      await store.access.pruneAudit(NOW).catch(unlessTimeout);
    },
    registerPool: () => {
      const name = pick([...POOLS, "new-1", "new-2"]);
      const domain = name === "apart" ? "far" : undefined;
      const change = { name, quota: 5 + Math.floor(random() * 9), ...(domain === undefined ? {} : { domain }) };
      const queue = domain === undefined ? { queue: pick([null, ...QUEUES]) } : {};
      return store.pools.register(poolChange({ ...change, ...queue }), byAdmin);
    },
    deletePool: () => store.pools.remove(pick(["new-1", "new-2", "ex:b"]), byAdmin),
    createQueue: () => store.admin.createQueue(queueOf(pick(QUEUES))),
    updateQueue: () => store.admin.updateQueue({ ...queueOf(pick(QUEUES)), version: 0 }),
    freezeQueue: () => store.admin.freezeQueue({ name: pick(QUEUES), reason: pick([null, "audit"]), actor: "admin" }),
    freezePool: () => store.pools.freeze({ name: pick(["new-1", "ex:b"]), reason: pick([null, ""]), actor: "admin" }),
    grantQuota: () => {
      const until = { untilMs: systemClock().nowMs() + pick([1, 60_000]), reason: "" };
      const [flavor = ""] = quotas().map((quota) => quota.flavor);
      return store.admin.grantQuota({ queue: pick(QUEUES), flavor, amount: pick([1, 4]), actor: "admin", ...until });
    },
    revokeGrant: async () => {
      const [grant] = await store.admin.listGrants(null);
      if (grant !== undefined) await store.admin.revokeGrant({ ...grant, actor: "admin" });
    },
    endGrants: () => ledgerAt(store, systemClock().nowMs()).endGrants(),
    deleteQueue: () => store.admin.deleteQueue(pick(["left", "right"])),
    priorityClasses: async () => {
      const name = pick(["high", "low"]);
      const more = { description: "", globalDefault: random() < 0.5 };
      await store.priorityClasses.create({ name, value: 1, preemptionPolicy: "NEVER", ...more }, "admin");
      const kept = { value: null, preemptionPolicy: null, version: 0 };
      await store.priorityClasses.update({ name, ...more, ...kept, globalDefault: random() < 0.5 }, "admin");
      await store.priorityClasses.remove(pick(["high", "low"]), "admin");
    },
    runtimes: async () => {
      const names = { namespace: pick(["", ...NAMESPACES]), name: pick(["torch", "jax"]) };
      const settings = { ...names, labels: {}, spec: { at: random() } };
      await store.runtimes.create(settings);
      await store.runtimes.update({ ...settings, version: 0 }, { isTried: random() < 0.3 });
      await store.runtimes.remove({ ...names, name: pick(["torch", "jax"]) });
    },
    namespaces: async () => {
      const settings = { name: pick(NAMESPACES), project: "default", defaultQueue: "research" };
      await store.admin.createNamespace(settings);
      await store.admin.updateNamespace({ ...settings, version: 0, keepFailureLogs: random() < 0.7 });
      await store.admin.deleteNamespace(pick(NAMESPACES));
    },
    keepLogs: async () => {
      await look();
      await Promise.all(jobs.map(({ uid, namespace }) => store.failureLogs.keep(failed({ uid, namespace }, random()))));
    },
    tenants: async () => {
      const tenant = pick([
        { kind: "namespace", name: pick(NAMESPACES) } as const,
        { kind: "project", name: "default" } as const,
      ]);
      const limits = { maxWaitingJobs: pick([null, 50]), maxPods: pick([null, 500]), maxRobotTokens: pick([null, 1]) };
      await store.admin.setTenantLimits({ tenant, limits: { ...NO_TENANT_LIMITS, ...limits } }, "ann");
      await store.admin.listTenants();
    },
    sessions: async () => {
      const idHash = createHash("sha256").update(randomUUID()).digest("hex");
      const others = await db.query<{ readonly id_hash: string }>("select id_hash from console_sessions");
      const session = { idHash, subject: pick(["ann", "bob"]), tokens: {}, expiresAtMs: NOW + 500, renewAtMs: NOW };
      if (others.length > 3) await store.sessions.delete(pick(others).id_hash);
      await store.sessions.make(session, NOW);
      for (const { idHash: due, claimMs } of await store.sessions.claimDue({ nowMs: NOW, claimMs: 100, max: 3 }))
        if (pick([true, false])) await store.sessions.renew({ ...session, idHash: due, renewAtMs: NOW }, claimMs);
        else await store.sessions.deleteClaimed({ idHash: due, claimMs });
      await store.sessions.deleteExpired(NOW + pick([0, 500]));
    },
    robots: async () => {
      const name = pick(["r1", "r2"]);
      const scope = pick([
        { kind: "namespace", name: pick(NAMESPACES) } as const,
        { kind: "project", name: "default" } as const,
      ]);
      const robot = { name, owner: "ann", scope, expiresAtMs: NOW + 1 };
      const hash = createHash("sha256").update(name).digest();
      await store.robots.makeRobot({ ...robot, hash }, { nowMs: NOW, max: 2, ownedMax: null });
      await store.robots.noteUse(name, NOW);
      await store.robots.revokeRobot(pick(["r1", "r2"]), NOW);
    },
    access: async () => {
      const by = { actor: "ann", nowMs: NOW };
      const to = { kind: "group", name: "ml" } as const;
      const role = pick(["role-a", "role-b"]);
      const made = await store.access.createRole({ name: role, permissions: ["jobs.get"] }, by);
      const version = made.kind === "done" ? made.record.version : null;
      const scope = { kind: "queue", name: "nlp" } as const;
      await store.access.createBinding({ name: pick(["bind-a", "bind-b"]), to, role, scope, roleVersion: version }, by);
      await store.access.readAccess(null);
      await store.access.noteSettings({ variable: "X", file: "x.yaml", sha256: pick(["a", "b"]), settings: {} });
      await store.access.deleteBinding({ name: pick(["bind-a", "bind-b"]), version: 0 }, by);
      await store.access.deleteRole({ name: pick(["role-a", "role-b"]), version: 0 }, by);
      await store.access.appendAudit({
        timeMs: NOW,
        actor: "ann",
        action: "PermissionDenied",
        subject: "X/Y",
        reason: "",
        details: {},
      });
    },
    cordon: () => store.admin.setCordoned(pick(CLUSTERS), random() < 0.3),
    simulate: () => store.clusters.simulate({ name: pick(["east", "west"]), labels: {}, flavors: FLAVORS }),
    register: () =>
      store.clusters.register({
        name: pick(["a-real", "z-real"]),
        labels: {},
        flavors: FLAVORS,
        credentials: {},
        uid: pick(UIDS),
      }),
    updateCluster: () =>
      store.clusters.update({
        name: pick(["a-real", "z-real"]),
        labels: { at: `${random()}` },
        flavors: FLAVORS,
        version: 0,
        credentials: null,
        uid: pick(UIDS),
      }),
    refer: () => {
      const [name, cluster] = pick([
        ["a-real", "z-real"],
        ["z-real", "a-real"],
      ] as const);
      const credentials = { kind: "secret", cluster, namespace: "default", name: "k", key: "value", context: "" };
      return store.clusters.update({ name, labels: {}, flavors: FLAVORS, version: 0, credentials });
    },
    rotateKeys: async () => {
      const credentials = { kind: "sealed", key: pick(["old", "new"]) };
      await store.clusters.update({ name: "a-real", labels: {}, flavors: FLAVORS, version: 0, credentials });
      await store.clusters.listKeyUses();
      await store.clusters.resealCredentials({ key: "new", after: "" }, (stored) => ({
        kind: "sealed",
        credentials: { ...stored, key: "new" },
      }));
    },
    removeCluster: () => store.clusters.remove(pick(CLUSTERS), random() < 0.7),
    forgetRetired: () => store.clusters.forgetRetired(["east"]),
    claimUid: () => store.clusters.claimUid({ cluster: pick(["a-real", "z-real"]), uid: pick(UIDS) }),
    setUid: async () => {
      await store.clusters.simulate({ name: "east", labels: {}, flavors: FLAVORS });
      const known = (await store.admin.listClusters()).filter(({ simulated }) => simulated);
      if (known.length > 0) await store.clusters.setUid({ cluster: "east", uid: "uid-of-east" });
    },
    observe: async () => {
      const cluster = pick(CLUSTERS);
      const leaseEpoch = await store.members.takeLease(`observer/${cluster}`, "m1");
      if (leaseEpoch === null) return;
      const change = (name: string) => ({ key: { kind: "node" as const, name }, entry: null });
      const changes = some(["n1", "n2", "n3"]).map(change);
      await store.clusters.recordCapacity({ cluster, reachable: true, since: null, changes }, leaseEpoch);
    },
    lose: () => store.clusters.markUnreachable(pick(CLUSTERS), pick([null, "refuses"])),
    countSilence: async () => {
      const cluster = pick(CLUSTERS);
      const leaseEpoch = await store.members.takeLease(`observer/${cluster}`, "m1");
      if (leaseEpoch === null) return;
      const rule = { lostAfterMs: 60_000, shareMax: 1 };
      await store.clusters.countSilence({ cluster, ms: 60_000, leaseEpoch }, rule);
      await store.clusters.noteAnswer(pick(CLUSTERS));
      await store.clusters.recheckPlaced(pick([[cluster], CLUSTERS]));
    },
    declareLost: () => store.admin.declareLost(pick(CLUSTERS)),
    adoptCluster: async () => {
      const name = pick(CLUSTERS);
      await db.query("update clusters set unadopted_ms = 1, returning_ms = 1 where name = $1", [name]);
      await store.admin.adoptCluster(name);
      await store.clusters.endReturn(name, []);
    },
    members: async () => {
      const name = `${pick(MEMBERS)}/${requests++}`;
      await store.members.join({ name, takesBuckets: true, leaseMs: 1_000 });
      const { others } = await store.members.renew(name);
      for (const other of others) await store.members.declareDead(other);
      await store.members.leave(name);
      await store.members.forgetAll();
    },
    noteTime: async () => {
      const clockEpoch = await store.members.takeLease("clock", pick(MEMBERS));
      if (clockEpoch === null) return;
      await store.members.noteCorrection({ epoch: clockEpoch, correctionMs: requests, notedMs: NOW });
    },
    blame: async () => {
      const { uid: jobUid } = pick(jobs) ?? {};
      if (jobUid === undefined) return;
      const id = randomUUID();
      await store.blame.noteAlone("w1", jobUid);
      await store.blame.writeNote({ id, jobUid, worker: "w", what: "filled", plugin: null, atMs: null });
      await store.blame.withdrawNote(id);
      await store.blame.endAlone("w1", [...leases.keys()]);
      await store.blame.forgetAlone("w1");
    },
    lead: async () => {
      plannerEpoch = (await store.members.takeLease("planner", "p1")) ?? plannerEpoch;
    },
    countInMemory: async () => {
      const hold = {
        holder: `h${requests++}`,
        clock: systemClock(),
        leaseMs: 0,
        onLost: () => undefined,
        onError: () => undefined,
      };
      await (await holdCounters(db, { ...hold, renewMs: 3_600_000 }).catch(() => null))?.release();
    },
    sequence: () => store.watch.sequence(),
    follow: async () => {
      await store.watch.snapshot({ filter: ALL, after: null, limit: 10 });
      await entriesAfter(store, 0, 9);
      await store.reads.listJobs({ filter: ALL, order: "name", pageSize: 9, after: null });
    },
    prune: () => pruneAll(store, NOW + 1),
  };
}

/** Partitions wait for locks only briefly. The next act tries again. */
function unlessTimeout(error: unknown): void {
  assert.match(String(error), /lock timeout/);
}

/** The last line of a container that failed. */
function failed({ uid, namespace }: { readonly uid: string; readonly namespace: string }, run: number) {
  const podUid = `pod-${Math.floor(run * 5)}`;
  const at = { podUid, container: "main", restarts: 0, replica: "Worker/0", attempt: 1, admission: 1 } as const;
  const end = { cluster: "east", pod: "p", exitCode: 1, reason: "Error", problem: null };
  return { jobUid: uid, namespace, gang: false, logs: [{ ...at, ...end, lines: { text: "boom", cut: false } }] };
}
