import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { admitted } from "../../../src/core/job/admission/admitted.ts";
import { holdsForFewer } from "../../../src/core/job/admission-changes.ts";
import { isConditionTrue } from "../../../src/core/job/conditions.ts";
import { type Job, liveAdmission } from "../../../src/core/job/job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { keptMembers, memberCount } from "../../../src/core/job/roles.ts";
import type { CleanPodPolicy, RestartPolicy, RestartScope } from "../../../src/core/job/spec.ts";
import { type Admission, isTerminal } from "../../../src/core/job/status.ts";
import { changeJob, type WantedChange } from "../../../src/core/kinds/change-job.ts";
import { applyEviction } from "../../../src/core/plan/apply/apply-plan.ts";
import { applyPreemption } from "../../../src/core/plan/apply/apply-preemption.ts";
import type { PlannedVictim } from "../../../src/core/plan/model/preemption.ts";
import { type PodView, podView } from "../../../src/core/pods/read/pod-view.ts";
import type { Action, Decision } from "../../../src/core/reconcile/decision.ts";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import { returnedKeys } from "../../../src/core/reconcile/member-ends.ts";
import type { Observed } from "../../../src/core/reconcile/observed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { canonicalJson, type JsonObject, objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, FLAVORS, jobOf, podStatus, recorded, START_MS, TinyCluster, template } from "./world.ts";

/** The longest lag of a cache or call: shorter than the time after which a decision relies on not seeing an object. */
const LAG_MS_MAX = 4_000;

type Shape = {
  readonly kind: string;
  readonly container: string;
  readonly roles: Readonly<Record<string, number>>;
  readonly kindSpec?: JsonObject;
};

const shapes: Readonly<Record<string, Shape>> = {
  pytorch: { kind: "PyTorchJob", container: "pytorch", roles: { Master: 1, Worker: 2 } },
  workers: { kind: "PyTorchJob", container: "pytorch", roles: { Worker: 2 } },
  tensorflow: { kind: "TFJob", container: "tensorflow", roles: { PS: 1, Worker: 2 } },
  dynamic: { kind: "TFJob", container: "tensorflow", roles: { Worker: 2 }, kindSpec: { enableDynamicWorker: true } },
  mpi: { kind: "MPIJob", container: "mpi", roles: { Launcher: 1, Worker: 2 } },
  plain: { kind: "Job", container: "main", roles: { Driver: 1, Worker: 1 } },
};

const spec = fc.record({
  shape: fc.constantFrom(...Object.values(shapes)),
  restartPolicy: fc.constantFrom<RestartPolicy>("Always", "OnFailure", "Never", "ExitCode"),
  cleanPodPolicy: fc.constantFrom<CleanPodPolicy>("All", "Running", "None"),
  restartScope: fc.constantFrom<RestartScope>("REPLICA", "GANG"),
  backoffLimit: fc.constantFrom(0, 1, 3, 50),
  minAvailable: fc.constantFrom(1, 2),
  ttl: fc.constantFrom(undefined, 0, 30),
  /** The flavors of its admissions. */
  flavors: fc.constantFrom(FLAVORS, FLAVORS, {}),
});

type Spec = typeof spec extends fc.Arbitrary<infer T> ? T : never;

const STUCK = [
  "ImagePullBackOff",
  "CreateContainerError",
  "CreateContainerConfigError",
  "InvalidImageName",
  "Whatever",
];

const pick = fc.nat({ max: 7 });
const fate = fc.constantFrom("done", "done", "done", "lost", "doubled", "late");
const op = fc.oneof(
  {
    weight: 32,
    arbitrary: fc.record({
      do: fc.constant("step" as const),
      lagMs: fc.constantFrom(0, 0, 1_000, LAG_MS_MAX),
      crash: fc.constantFrom("no", "no", "no", "no", "beforeRecord", "beforeActs"),
      fates: fc.array(fate, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.constantFrom(500, 3_000, 20_000, 200_000) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("collect" as const) }) },
  { weight: 24, arbitrary: fc.record({ do: fc.constant("run" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("succeed" as const), pick }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("fail" as const), pick, exitCode: fc.constantFrom(1, 137, 143) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("evict" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("stick" as const), pick, reason: fc.constantFrom(...STUCK) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("restart" as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("deletePod" as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("loseNode" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("disrupt" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("suspend" as const), suspend: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: "undo" as const }) },
  { weight: 2, arbitrary: fc.constantFrom({ do: "preempt" as const }, { do: "nominate" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("scale" as const), workers: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: "cancel" as const }, { do: "delete" as const }) },
);
type Op = typeof op extends fc.Arbitrary<infer T> ? T : never;

function sizeOf({ members }: { readonly members: Readonly<Record<string, number>> }): number {
  return Object.values(members).reduce((sum, count) => sum + count, 0);
}

/** The members that gave their tokens back, as pods name them. */
function keysOf(admission: Admission): ReadonlySet<string> {
  return new Set([...returnedKeys(admission)].map((key) => key.toLowerCase()));
}

function isStuck({ phase, containers }: PodView): boolean {
  return phase === "Pending" && containers.some(({ waiting }) => waiting !== null);
}

const ANY: Spec = {
  shape: shapes["workers"]!,
  restartPolicy: "Never",
  cleanPodPolicy: "None",
  restartScope: "REPLICA",
  backoffLimit: 1,
  minAvailable: 1,
  ttl: undefined,
  flavors: {},
};

/** One job, two clusters, and all faults that may occur between them. */

/** The labels of a pod that say which member it is. */
function placeOf(manifest: JsonObject) {
  const labels = stringMapAt(objectAt(manifest, "metadata"), "labels");
  return {
    admission: labels[LABEL.admission],
    attempt: labels[LABEL.attempt],
    role: labels[LABEL.replicaType],
    index: labels[LABEL.replicaIndex],
  };
}

class World {
  readonly clusters = [new TinyCluster("c1"), new TinyCluster("c2")];
  readonly container: string;
  readonly flavors: Admission["flavors"];
  job: Job;
  nowMs = START_MS;
  forgotten = false;
  #admitted = 0;
  #preempted = 0;
  #counted = 0;
  #late: { action: Action; untilMs: number }[] = [];
  #released = new Map<number, number>();
  /** How members have ended, by admission, attempt and replica. */
  #ends = new Map<string, string>();

  constructor(of: Spec) {
    const { shape, restartPolicy, cleanPodPolicy, restartScope, backoffLimit, minAvailable, ttl, flavors } = of;
    this.container = shape.container;
    this.flavors = flavors;
    const replicaSpecs = Object.fromEntries(
      Object.entries(shape.roles).map(([role, replicas]) => [
        role,
        { replicas, restartPolicy, template: template(shape.container, 1) },
      ]),
    );
    const sent: SentSpec = {
      kind: shape.kind,
      replicaSpecs,
      kindSpec: shape.kindSpec ?? {},
      runPolicy: {
        cleanPodPolicy,
        restartScope,
        backoffLimit,
        systemBackoffLimit: 3,
        activeDeadlineSeconds: 900,
        ...(ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl }),
        schedulingPolicy: { minAvailable, scheduleTimeoutSeconds: 120 },
      },
    };
    this.job = jobOf(sent);
  }

  get objects() {
    return this.clusters.flatMap((cluster) =>
      cluster.things.map((thing) => ({ cluster, thing, view: podView(thing.json) })),
    );
  }

  apply(one: Op): void {
    this.advance(100);
    if (one.do === "step") this.step(one);
    else if (one.do === "advance") this.advance(one.ms);
    else if (one.do === "suspend") this.change({ suspend: one.suspend });
    else if (one.do === "undo") this.undo();
    else if (one.do === "preempt") this.preempt();
    else if (one.do === "nominate") this.nominate(this.job, []);
    else if (one.do === "scale") {
      this.change({ replicas: { Worker: one.workers } });
      this.#ends.clear();
    } else if (one.do === "collect") for (const cluster of this.clusters) cluster.collect();
    else if (one.do === "cancel")
      this.job = { ...this.job, cancel: this.job.cancel ?? { reason: "r", atMs: this.nowMs } };
    else if (one.do === "delete") this.job = { ...this.job, deleteTimeMs: this.job.deleteTimeMs ?? this.nowMs };
    else this.touchPod(one);
    this.check();
  }

  /** The planner requests that the live admission is undone. */
  undo(): void {
    const admission = liveAdmission(this.job)?.number ?? 0;
    const of = { jobUid: this.job.uid, queue: "q", admission, reason: "QueueStopped", message: "queue q is stopped" };
    const evicted = applyEviction(this.job, of);
    if (evicted !== null) this.job = evicted;
  }

  /** The planner preempts the job for another. */
  preempt(): void {
    const live = liveAdmission(this.job);
    if (live === null) return;
    const { uid: jobUid } = this.job;
    const victim = { jobUid, queue: "q", admission: live.number, members: live.members };
    const nominee = { ...this.job, uid: "nominee", name: "nominee", status: new World(ANY).job.status, admissions: [] };
    if (this.nominate(nominee, [{ ...victim, reason: "InCohortReclamation" }])) this.#preempted += 1;
  }

  /** The planner nominates a job if it waits. True: the world's job is a victim from now on. */
  nominate(nominee: Job, victims: readonly PlannedVictim[]): boolean {
    const planned = {
      kind: "admit",
      jobUid: nominee.uid,
      askHash: "",
      generation: 1,
      admission: 9,
      cluster: "c1",
      admissionCounter: 0,
      members: {},
      flavors: {},
      flavorLabels: {},
      allocations: [],
    } as const;
    const jobs = new Map([this.job, nominee].map((job) => [job.uid, job]));
    const applied = applyPreemption(jobs, { planned, victims }, this.nowMs);
    for (const { after } of applied?.changes ?? []) if (after.uid === this.job.uid) this.job = after;
    return (applied?.evicted.length ?? 0) > 0;
  }

  /** Changes a job as the service does, including its refusals. */
  change(wanted: Omit<WantedChange, "version">): void {
    const kind = OWN_KINDS.kindOf(this.job.spec.kind)!;
    const decided = changeJob(this.job, kind, { version: null, ...wanted }, this.nowMs);
    if (decided.kind === "changed") this.job = decided.job;
  }

  advance(ms: number): void {
    for (const cluster of this.clusters) cluster.remember(this.nowMs);
    const due = this.#late.filter(({ untilMs }) => untilMs <= this.nowMs + ms);
    this.#late = this.#late.filter((late) => !due.includes(late));
    for (const { action } of due) this.act(action);
    this.nowMs += ms;
    for (const cluster of this.clusters) cluster.remember(this.nowMs);
  }

  act(action: Action): void {
    this.clusters.find(({ name }) => name === action.cluster)?.act(action, this.nowMs);
  }

  touchPod(one: Extract<Op, { pick: number }>): void {
    const pods = this.objects.filter(
      ({ thing, view }) => thing.kind === "pod" && !["Succeeded", "Failed"].includes(view.phase),
    );
    const chosen = pods[one.pick % Math.max(pods.length, 1)];
    if (chosen === undefined) return;
    const { cluster, thing, view } = chosen;
    const restarts = view.containers[0]?.restarts ?? 0;
    const known = cluster.failures.get(thing.uid) ?? 0;
    if (one.do === "stick") this.stick(one.reason, chosen);
    else if (one.do === "run") cluster.setPod(thing, podStatus("Running", this.container, { restarts }));
    else if (one.do === "succeed")
      cluster.setPod(thing, podStatus("Succeeded", this.container, { restarts, exitCode: 0 }));
    else if (one.do === "deletePod") cluster.change(thing, { deleting: true, deletedMs: this.nowMs });
    else if (one.do === "loseNode") cluster.change(thing, { deleting: true, deletedMs: this.nowMs, lost: true });
    else if (one.do === "disrupt") this.disrupt(chosen);
    else if (one.do === "restart") {
      cluster.setPod(thing, podStatus("Running", this.container, { restarts: restarts + 1 }));
      cluster.failures.set(thing.uid, known + 1);
    } else {
      const end = one.do === "fail" ? { exitCode: one.exitCode } : { reason: "Evicted" };
      cluster.setPod(thing, podStatus("Failed", this.container, { restarts, ...end }));
      cluster.failures.set(thing.uid, known + 1);
    }
  }

  /** The pod is stuck before its start, which counts as one failure. */
  stick(reason: string, { cluster, thing, view }: World["objects"][number]): void {
    if (view.phase !== "Pending") return;
    const lastTransitionTime = new Date(this.nowMs).toISOString();
    cluster.setPod(thing, {
      phase: "Pending",
      conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady", lastTransitionTime }],
      containerStatuses: [{ name: this.container, ready: false, state: { waiting: { reason } } }],
    });
    cluster.failures.set(thing.uid, 1);
  }

  /**
   * The pod is evicted, preempted or removed for a taint: the cluster marks it, and deletes it unless it is being
   * deleted.
   */
  disrupt({ cluster, thing, view }: World["objects"][number]): void {
    if (thing.deleting && view.disrupted) return;
    cluster.disrupt(thing, this.nowMs);
    cluster.failures.set(thing.uid, (cluster.failures.get(thing.uid) ?? 0) + 1);
  }

  step({ lagMs, crash, fates }: { lagMs: number; crash: string; fates: readonly string[] }): Decision | null {
    if (this.forgotten) return null;
    this.planner();
    const [decision, observed] = this.decide(lagMs);
    this.checkRepeats(decision, observed);
    this.checkDecision(decision, observed);
    if (crash === "beforeRecord") return decision;
    this.forgotten = decision.forget;
    const before = this.job;
    this.job = recorded(this.job, decision);
    this.checkTokens(before, decision);
    if (crash === "beforeActs") return decision;
    decision.actions.forEach((action, index) => {
      const how = fates[index % fates.length];
      if (how === "late") this.#late.push({ action, untilMs: this.nowMs + LAG_MS_MAX });
      if (how === "done" || how === "doubled") this.act(action);
      if (how === "doubled") this.act(action);
    });
    return decision;
  }

  /**
   * Makes a decision that releases tokens, or says that nothing is left, again from a fresh list of the clusters, as a
   * worker does.
   */
  decide(lagMs: number): [Decision, Observed] {
    const heard = this.clusters.map((cluster) => cluster.observe({ nowMs: this.nowMs, lagMs }));
    const first = reconcile(this.job, heard, this.nowMs, CONFIG);
    const gives = this.job.admissions.some((was) =>
      first.record?.admissions.some(
        (one) =>
          one.number === was.number &&
          (holdsForFewer(one, was) ||
            (one.tokensReleasedMs !== null && was.tokensReleasedMs === null) ||
            (one.goneMs !== null && was.goneMs === null)),
      ),
    );
    if (!gives) return [first, heard];
    const seen = this.clusters.map((cluster) => cluster.observe({ nowMs: this.nowMs, lagMs: 0 }));
    return [reconcile(this.job, seen, this.nowMs, CONFIG), seen];
  }

  /** Admits a waiting gang once its backoff is over and no token of an older admission is held. */
  planner(): void {
    const { status, admissions, cancel, deleteTimeMs, spec: wanted } = this.job;
    this.grow();
    if (wanted.runPolicy.suspend) return;
    if (status.phase !== "WAITING" || cancel !== null || deleteTimeMs !== null) return;
    if ((status.backoff?.notBeforeMs ?? 0) > this.nowMs) return;
    const cluster = this.clusters[this.#admitted % 2]!.name;
    if (admissions.some((one) => one.tokensReleasedMs === null || (one.cluster === cluster && one.goneMs === null)))
      return;
    const { nowMs, flavors } = this;
    const next = admit(this.job, { cluster, nowMs, number: ++this.#admitted, flavors });
    this.job = { ...next, status: admitted(this.job, liveAdmission(next)!, this.nowMs).status };
  }

  /** Lets a live gang that is smaller than its job grow, as a planner with room does. */
  grow(): void {
    const live = this.job.admissions.find(({ state }) => state === "live");
    if (live === undefined || this.job.spec.runPolicy.suspend) return;
    const all = Object.entries(this.job.spec.replicaSpecs).map(([role, { replicas }]) => [
      role,
      Math.max(live.members[role] ?? 0, replicas),
    ]);
    const grown = { ...live, members: Object.fromEntries(all) };
    const admissions = this.job.admissions.map((one) => (one === live ? grown : one));
    if (sizeOf(grown) > sizeOf(live)) this.job = { ...this.job, admissions };
  }

  /**
   * Repeating a step after its record, before anything new is seen, changes nothing and counts nothing twice.
   */
  checkRepeats(first: Decision, observed: Observed): void {
    let job = recorded(this.job, first);
    const { user, system, preemptions } = job.status.attempts;
    for (let round = 0; ; round++) {
      const again = reconcile(job, observed, this.nowMs, CONFIG);
      job = recorded(job, again);
      const { attempts } = job.status;
      const counts = [attempts.user, attempts.system, attempts.preemptions];
      assert.deepEqual(counts, [user, system, preemptions], "counted twice");
      if (again.record === null) return;
      assert.ok(round < 3, "the record does not come to rest");
    }
  }

  /**
   * The record says whether a gang is below its minimum. A member that has failed for good is not required, and
   * does not count as one that runs.
   */
  checkMinimum(decision: Decision, observed: Observed): void {
    const { status, admissions } = decision.record ?? this.job;
    const live = admissions.find(({ state }) => state === "live");
    if (live === undefined) return;
    const pods = observed
      .flatMap((seen) => (seen.cluster === live.cluster ? seen.pods : []))
      .filter(({ admission }) => admission === live.number);
    const up = pods.filter(({ phase, deleting }) => (phase === "Running" && !deleting) || phase === "Succeeded");
    // Members that the record says have ended count so, also where a watch that lags still shows them as they were.
    const ended = Object.entries(live.ended ?? {});
    const goneUp = ended.filter(([key, end]) => {
      return end === "SUCCEEDED" && !up.some(({ role, index }) => `${role}/${index}` === key.toLowerCase());
    }).length;
    const failed = ended.flatMap(([key, end]) => (end === "FAILED" ? [key] : []));
    const members = keptMembers(this.job, live);
    const seenOver = Object.entries(members).flatMap(([role, count]) =>
      Array.from({ length: count }, (_, index) => `${role}/${index}`).filter((key, index) => {
        const attempt = status.attempts.byReplica[key] ?? 1;
        return pods.some(
          (pod) =>
            (pod.phase === "Failed" || isStuck(pod)) &&
            pod.role === role.toLowerCase() &&
            pod.index === index &&
            pod.attempt === attempt,
        );
      }),
    );
    const over = new Set([...failed, ...seenOver]).size;
    const { minAvailable } = this.job.spec.runPolicy.schedulingPolicy;
    if (up.length + goneUp >= Math.min(minAvailable, memberCount(members) - over)) return;
    assert.notEqual(live.belowMinSinceMs, null, `${up.length} run of ${minAvailable}, but belowMinSinceMs is null`);
  }

  /** A member that has ended is not made again within its admission and attempt, unless the job was scaled. */
  checkEnds(decision: Decision): void {
    for (const action of decision.actions) {
      if (action.kind !== "createPod") continue;
      const { admission = "", attempt = "", role = "", index = "" } = placeOf(action.manifest);
      const end = this.#ends.get(`${admission} ${attempt} ${role}/${index}`);
      assert.equal(end, undefined, `${role}/${index} has ${end}, and is made again`);
    }
    const { status, admissions } = decision.record ?? this.job;
    const live = admissions.find(({ state }) => state === "live");
    for (const [key, end] of Object.entries(live?.ended ?? {})) {
      const attempt = status.attempts.byReplica[key] ?? 1;
      this.#ends.set(`${live?.number} ${attempt} ${key.toLowerCase()}`, end);
    }
  }

  checkDecision(decision: Decision, observed: Observed): void {
    this.checkMinimum(decision, observed);
    this.checkEnds(decision);
    const status = decision.record?.status ?? this.job.status;
    const live = this.job.admissions.find(({ state }) => state === "live");
    const own = observed.flatMap(({ cluster, pods }) => (cluster === live?.cluster ? pods : []));
    const active = Object.values(status.replicaStatuses).reduce((sum, counts) => sum + counts.active, 0);
    const running = own.filter(
      ({ phase, admission, deleting }) => phase === "Running" && admission === live?.number && !deleting,
    );
    if (live !== undefined && this.job.cancel === null && this.job.deleteTimeMs === null) {
      assert.ok(active <= running.length, "a pod of another admission was counted");
    }
    for (const action of decision.actions) {
      if (action.kind !== "deletePod" || !action.force) continue;
      const pod = observed.flatMap(({ pods }) => pods).find(({ uid }) => uid === action.uid);
      const over = pod?.phase === "Succeeded" || pod?.phase === "Failed";
      assert.ok(pod?.deleting && (pod.nodeGone || over), "forced although its kubelet may still end it");
    }
    const policy = this.job.spec.runPolicy.cleanPodPolicy;
    const ended = this.job.admissions.find(({ state }) => state === "ended");
    if (policy === "All" || this.job.deleteTimeMs !== null || status.phase === "CANCELLED" || ended === undefined)
      return;
    for (const action of decision.actions) {
      if (!("uid" in action) || action.cluster !== ended.cluster) continue;
      const pod = observed.flatMap(({ pods }) => pods).find(({ uid }) => uid === action.uid);
      if (pod?.admission !== ended.number || pod.deleting) continue;
      const leftToDo = policy === "Running" || ended.tokensReleasedMs !== null || isStuck(pod);
      assert.ok(
        leftToDo && ["Running", "Pending"].includes(pod.phase),
        `policy ${policy} keeps a pod that is ${pod.phase}`,
      );
    }
  }

  /** Members are given up once none of their pods uses their tokens. */
  checkMembers(before: Job, decision: Decision): void {
    for (const admission of decision.record?.admissions ?? []) {
      const was = before.admissions.find(({ number }) => number === admission.number);
      if (was === undefined || sizeOf(admission) >= sizeOf(was)) continue;
      const counts = new Map(Object.entries(admission.members).map(([role, count]) => [role.toLowerCase(), count]));
      const holding = this.holders().filter(({ view }) => {
        return view.admission === admission.number && (view.index ?? 0) >= (counts.get(view.role ?? "") ?? 0);
      });
      assert.deepEqual(
        holding.map(({ thing }) => thing.name),
        [],
        "members were given up while a pod of theirs was there",
      );
    }
  }

  /** The pods that have not ended, but for those that only wait for the garbage collector. */
  holders() {
    return this.objects.filter(
      ({ cluster, thing, view }) =>
        thing.kind === "pod" && !["Succeeded", "Failed"].includes(view.phase) && !cluster.isOrphan(thing),
    );
  }

  /** Members that gave their tokens back have no pod that runs, and hold none again under their admission. */
  checkReturned(before: Job): void {
    for (const admission of this.job.admissions) {
      const back = keysOf(admission);
      const held = this.holders().filter(({ view }) => {
        return view.admission === admission.number && back.has(`${view.role}/${view.index}`);
      });
      assert.deepEqual(
        held.map(({ thing }) => thing.name),
        [],
        "a pod runs whose member gave its tokens back",
      );
      const was = before.admissions.find(({ number }) => number === admission.number);
      if (was === undefined || admission.state !== "live") continue;
      const again = [...keysOf(was)].filter((key) => !back.has(key));
      if (sizeOf(admission) === sizeOf(was)) assert.deepEqual(again, [], "tokens were taken back");
    }
  }

  /** Members that have ended, and whose pods have, hold no tokens for longer than calls may be under way. */
  checkHeld(): void {
    const live = liveAdmission(this.job);
    if (live === null || Object.keys(live.flavors).length === 0) return;
    if (this.nowMs < (live.lastEndMs ?? 0) + OUTSTANDING_MS) return;
    const running = new Set(this.holders().map(({ view }) => `${view.role}/${view.index}`));
    const ended = Object.keys(live.ended ?? {}).map((key) => key.toLowerCase());
    const back = keysOf(live);
    assert.deepEqual(
      ended.filter((key) => !running.has(key) && !back.has(key)),
      [],
      "a member has ended and holds tokens",
    );
  }

  checkTokens(before: Job, decision: Decision): void {
    this.checkMembers(before, decision);
    this.checkReturned(before);
    for (const admission of decision.record?.admissions ?? []) {
      const known = this.#released.get(admission.number);
      if (admission.tokensReleasedMs === null) {
        assert.equal(known, undefined, "tokens were taken back");
        continue;
      }
      assert.equal(admission.tokensReleasedMs, known ?? admission.tokensReleasedMs, "tokens were released twice");
      if (known !== undefined) continue;
      this.#released.set(admission.number, admission.tokensReleasedMs);
      const was = before.admissions.find(({ number }) => number === admission.number);
      assert.notEqual(was?.state, "live", "released in the record that stops the admission");
      const holding = this.holders().filter(({ view }) => view.admission === admission.number);
      assert.deepEqual(
        holding.map(({ thing }) => thing.name),
        [],
        "tokens were released while a pod held them",
      );
    }
  }

  check(): void {
    const { status } = this.job;
    const ends = (["Succeeded", "Failed", "Cancelled"] as const).filter((type) =>
      isConditionTrue(status.conditions, type),
    );
    assert.equal(ends.length, isTerminal(status) ? 1 : 0, "terminal conditions");
    const others = status.conditions.filter(
      (one) => one.status === "True" && one.type !== "Created" && one.type !== ends[0],
    );
    if (isTerminal(status)) assert.deepEqual(others, [], "conditions beside the terminal one");
    if (status.phase !== "WAITING") assert.equal(status.nomination, undefined, "a nominee that does not wait");
    const isPreempted = isConditionTrue(status.conditions, "Preempted");
    assert.ok(!isPreempted || liveAdmission(this.job) === null, "it is admitted again, and shown as preempted");
    const { preemptions = 0 } = status.attempts;
    assert.ok(preemptions <= this.#preempted, `${preemptions} preemptions counted of ${this.#preempted}`);
    assert.ok(preemptions >= this.#counted, "a counted preemption is forgotten");
    this.#counted = preemptions;
    const counted = status.attempts.user + status.attempts.system;
    const truth = this.clusters
      .flatMap(({ failures }) => [...failures.values()])
      .reduce((sum, count) => sum + count, 0);
    assert.ok(counted <= truth, `${counted} failures counted of ${truth}`);
    const { backoffLimit, systemBackoffLimit } = this.job.spec.runPolicy;
    if (!isTerminal(status)) {
      assert.ok(status.attempts.user < Math.max(backoffLimit ?? 0, 1), "more failures than the limit");
      assert.ok(status.attempts.system < Math.max(systemBackoffLimit, 1), "more failures than the system's limit");
    }
    const replicas = this.holders().map(({ view }) => `${view.role}/${view.index}`);
    assert.equal(new Set(replicas).size, replicas.length, "two live pods for one replica");
  }

  /**
   * From here on only pods fail, so the job must end and be cleaned up. A step is made
   * only when something new is seen, or when the last step asked for it, so that a forgotten timer is noticed.
   */
  settle(): void {
    if (this.job.spec.runPolicy.suspend && !isTerminal(this.job.status) && this.job.deleteTimeMs === null) {
      this.restSuspended();
      this.change({ suspend: false });
    }
    let recheckAtMs: number | null = this.nowMs;
    let seen = "";
    for (let round = 0; round < 800 && !this.forgotten; round++) {
      this.planner();
      const view = canonicalJson([this.job, this.clusters.map(({ things }) => things)]);
      if (view !== seen || (recheckAtMs !== null && recheckAtMs <= this.nowMs)) {
        const before = canonicalJson(this.job);
        recheckAtMs = this.step({ lagMs: 0, crash: "no", fates: ["done"] })?.recheckAtMs ?? null;
        this.checkHeld();
        seen = view.replace(before, () => canonicalJson(this.job));
      } else if (isTerminal(this.job.status) && recheckAtMs === null) break;
      this.advance(5_000);
      for (const cluster of this.clusters) cluster.collect();
      for (const { cluster, thing, view: pod } of this.objects) {
        if (thing.kind === "pod" && pod.phase === "Pending" && !isStuck(pod))
          cluster.setPod(thing, podStatus("Running", this.container));
      }
      this.check();
    }
    if (this.forgotten) return;
    assert.ok(isTerminal(this.job.status), `a job with limits ends, not ${this.job.status.phase}`);
    assert.equal(this.job.deleteTimeMs, null, "a deleted job is forgotten");
    this.checkLeftovers();
  }

  /** A suspended job ends up without pods and tokens, and stays so. */
  restSuspended(): void {
    for (let round = 0; round < 40; round++) {
      this.step({ lagMs: 0, crash: "no", fates: ["done"] });
      this.advance(5_000);
      for (const cluster of this.clusters) cluster.collect();
      this.check();
    }
    if (this.job.cancel !== null) return;
    assert.equal(this.job.status.phase, "SUSPENDED");
    assert.ok(isConditionTrue(this.job.status.conditions, "Suspended"));
    assert.deepEqual(
      this.objects.map(({ thing }) => thing.name),
      [],
    );
    assert.deepEqual(this.job.admissions, [], "something of an admission is held on to");
  }

  checkLeftovers(): void {
    const { status, admissions } = this.job;
    const left = this.objects.filter(({ thing }) => thing.kind === "pod");
    assert.ok(
      left.every(({ view }) => admissions.some(({ number, state }) => number === view.admission && state === "ended")),
    );
    assert.ok(!left.some(({ view }) => isStuck(view)), "a pod is kept that can never start");
    const policy = this.job.spec.runPolicy.cleanPodPolicy;
    const running = left.filter(({ view }) => view.phase === "Running" || view.phase === "Pending");
    if (policy !== "None" || status.phase === "CANCELLED") {
      assert.deepEqual(
        running.map(({ thing }) => thing.name),
        [],
        "pods run on",
      );
      assert.ok(
        admissions.every(({ tokensReleasedMs }) => tokensReleasedMs !== null),
        "tokens are still held",
      );
    }
    if (policy === "All")
      assert.deepEqual(
        this.objects.map(({ thing }) => thing.name),
        [],
        "objects are left",
      );
  }
}

test("under any faults a job ends once, counts failures once, and keeps tokens no longer than pods", () => {
  fc.assert(
    fc.property(spec, fc.array(op, { minLength: 5, maxLength: 60, size: "max" }), (chosen, ops) => {
      const world = new World(chosen);
      for (const one of ops) world.apply(one);
      world.settle();
    }),
    { numRuns: Number(process.env["GANGWAY_RUNS"] ?? 400) },
  );
});
