import { compareText } from "../../../runtime/compare-text.ts";
import { liveAdmission } from "../../job/job.ts";
import type { LimitedTenant } from "../model/limited-tenant.ts";
import { type PlanGang, repairOf } from "../model/plan-gang.ts";
import { haltOf, isSameStop } from "../model/queue-stop.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import { ageingOf } from "./ageing.ts";
import { AskShapes } from "./ask-shape.ts";
import { endClass, requeue } from "./class-state.ts";
import { classKey, growthList, hasLeaving, isHeld, isWaiting, newClass, newQueue, staysInClass } from "./gang-class.ts";
import { changeClass, forgetOrder, insertGang, removeGang, waitingIn } from "./order.ts";
import { OvertakingClasses } from "./overtaking-classes.ts";
import { forgetWaitedLong, noteAdmissions, noteUnflavored, setHead } from "./queue-state.ts";
import { type GangClass, type GangQueue, type GangRecord, type Holding, written } from "./records.ts";
import { RunningJobs, TenantCounts } from "./running-jobs.ts";
import { TreeDigests } from "./tree-digests.ts";

/** Every gang by uid, sorted into queues. */
export class GangQueues {
  readonly gangs = new Map<string, GangRecord>();
  /** The tokens of gangs, for those whose tokens somebody asked for. */
  readonly holdings = new WeakMap<PlanGang, readonly Holding[]>();
  readonly all = new Map<string, GangQueue>();
  /** Those of `all` by name. Null: not known since one came. */
  #byName: readonly GangQueue[] | null = null;
  /** Gangs whose reason was not reported yet, or may have changed. */
  readonly fresh = new Set<GangRecord>();
  /** Gangs with something in a cluster that leaves. */
  readonly leaving = new Set<GangRecord>();
  /** Running gangs with members that wait for other nodes. */
  readonly offPlan = new Set<GangRecord>();
  /** Running gangs whose clusters are lost, and that run elsewhere once they fit there. */
  readonly moving = new Set<GangRecord>();
  /** Gangs that wait for a time. */
  readonly timed = new Set<GangRecord>();
  readonly reevaluated = new Set<GangClass>();
  /** The re-evaluated gang classes that every round looks at. */
  readonly alwaysReevaluated = new Set<GangClass>();
  readonly overtaking = new OvertakingClasses();
  /** Gangs for which others are preempted. */
  readonly nominees = new Set<GangRecord>();
  readonly tenants = new TenantCounts();
  readonly digests = new TreeDigests(this.gangs);
  readonly #quota: QuotaState;
  /** The gang that the last round gave the planner's place in waiting lines. */
  #inLine: string | null = null;
  readonly #shapes = new AskShapes();

  constructor(quota: QuotaState) {
    this.#quota = quota;
  }

  set(uid: string, gang: PlanGang | null): void {
    const before = this.gangs.get(uid);
    if (before !== undefined && gang !== null && staysInClass(before, gang)) {
      const isChanged = before.facts.generation !== gang.generation;
      written(before).facts = gang;
      if (isChanged) this.reportAgain(uid);
      return;
    }
    if (before !== undefined) this.#remove(before);
    if (gang !== null) this.#add(gang, before);
  }

  /** Records which gang has the planner's place in waiting lines. If it is another one, the reasons of both are new. */
  noteInLine(uid: string | null): void {
    if (uid === this.#inLine) return;
    for (const one of [uid, this.#inLine]) {
      const gang = this.gangs.get(one ?? "");
      if (gang !== undefined && isWaiting(gang.facts)) this.fresh.add(gang);
    }
    this.#inLine = uid;
  }

  /** Lets the next round report a gang's reason again. */
  reportAgain(uid: string): void {
    const gang = this.gangs.get(uid);
    if (gang === undefined || !isWaiting(gang.facts)) return;
    written(gang).reported = 0;
    this.fresh.add(gang);
  }

  /** Lets gangs whose time has come enter their gang classes. */
  passTime(nowMs: number): void {
    for (const gang of [...this.timed]) {
      if ((gang.facts.backoff?.notBeforeMs ?? 0) > nowMs) continue;
      this.timed.delete(gang);
      if (isHeld(gang.facts, nowMs)) continue;
      written(gang.gangQueue).held.delete(gang);
      this.#enterClass(gang);
    }
  }

  /**
   * Finds out which queues are stopped, whose gangs' reasons are new, and where gangs age, after a queue has changed.
   */
  readQueues(): void {
    for (const gangQueue of this.all.values()) {
      this.#readAgeing(gangQueue);
      const stop = haltOf(gangQueue.name, this.#quota.queues);
      if (isSameStop(stop, gangQueue.stop)) continue;
      written(gangQueue).stop = stop;
      for (const gang of waitingIn(gangQueue)) this.fresh.add(gang);
    }
  }

  #readAgeing(gangQueue: GangQueue): void {
    const before = gangQueue.ageing;
    written(gangQueue).ageing = ageingOf(this.#quota.queues.get(gangQueue.name));
    forgetOrder(gangQueue);
    if ((before === null) === (gangQueue.ageing === null)) return;
    for (const gang of [...gangQueue.classes.values()].flatMap(({ gangs }) => [...gangs])) {
      this.#leaveClass(gang);
      this.#enterClass(gang);
    }
  }

  /** Counts the jobs that are admitted now. */
  countRunning(): RunningJobs {
    const running = new RunningJobs(this.#quota.queues, this.tenants.limited);
    for (const { name, running: gangs } of this.all.values()) if (gangs.size > 0) running.addIn(name, gangs.size);
    this.tenants.addTo(running);
    return running;
  }

  /**
   * Records which gang classes wait because of the number of jobs of their tenants. `begins`: the round is about to
   * decide.
   */
  noteFullTenants(running: RunningJobs, { begins }: { readonly begins: boolean }): void {
    const areLimited = this.tenants.areLimited();
    this.tenants.noteLimited();
    if (!areLimited) return;
    for (const { classes } of this.all.values()) {
      for (const gangClass of classes.values()) this.#noteFullTenant(gangClass, running.fullTenant(gangClass), begins);
    }
  }

  /**
   * If it is another tenant, the reasons of the class's gangs are new. Before a round, a strict queue forgets a head
   * that waits for that, since others may overtake it, and a gang class that waits for it no more is looked at as if it
   * were new.
   */
  #noteFullTenant(gangClass: GangClass, full: LimitedTenant | null, begins: boolean): void {
    if (begins && full !== null && gangClass.gangQueue.head === gangClass) setHead(gangClass.gangQueue, null);
    if (full === gangClass.full) return;
    written(gangClass).full = full;
    forgetWaitedLong(gangClass.gangQueue);
    for (const gang of gangClass.gangs) this.fresh.add(gang);
    if (begins && full === null) requeue(gangClass, "changed");
  }

  /**
   * Records which queue keeps a queue's gangs waiting because of its number of jobs. If it is another, reasons are new.
   */
  noteFull(gangQueue: GangQueue, full: string | null): void {
    if (full === gangQueue.full) return;
    written(gangQueue).full = full;
    for (const gang of waitingIn(gangQueue)) this.fresh.add(gang);
  }

  #add(gang: PlanGang, before: GangRecord | undefined): void {
    const { project, namespace, queue } = gang;
    const gangQueue = this.#lineOf(queue);
    const account = this.#quota.account(queue, project, namespace);
    // A change may have recorded another reason, also one that is over already, such as a suspension.
    const reported = before?.facts.generation === gang.generation ? before.reported : 0;
    const queued: GangRecord = {
      facts: gang,
      gangQueue,
      account,
      shape: this.#shapes.add(gang),
      gangClass: null,
      reported,
      shortfall: null,
    };
    this.gangs.set(gang.uid, queued);
    this.digests.note(gang, 1);
    if (hasLeaving(gang)) this.leaving.add(queued);
    if (gang.admissions.some((admission) => repairOf(admission) !== null)) this.offPlan.add(queued);
    if (gang.moves === true) this.moving.add(queued);
    if (liveAdmission(gang) !== null) {
      written(gangQueue).running.add(queued);
      noteAdmissions(gangQueue, null);
      this.tenants.count(gang, 1);
    }
    if (isWaiting(gang)) this.#enter(queued);
    else {
      const list = growthList(queued);
      if (list !== null) insertGang(list, queued);
    }
  }

  #enter(gang: GangRecord): void {
    const gangQueue = written(gang.gangQueue);
    this.fresh.add(gang);
    gangQueue.head = null;
    gangQueue.waiting += 1;
    if (!isHeld(gang.facts, Number.NEGATIVE_INFINITY)) {
      this.#enterClass(gang);
      return;
    }
    gangQueue.held.add(gang);
    if (gang.facts.nomination !== undefined) this.nominees.add(gang);
    if (gang.facts.backoff !== null) this.timed.add(gang);
  }

  #enterClass(gang: GangRecord): void {
    const gangQueue = written(gang.gangQueue);
    const key = classKey(gang.facts, gangQueue);
    const gangClass = gangQueue.classes.get(key) ?? newClass(key, gang);
    gangQueue.classes.set(key, gangClass);
    written(gang).gangClass = gangClass;
    changeClass(gangClass, () => insertGang(written(gangClass).gangs, gang));
    if (gangClass.gangs.length === 1 || gangClass.reevaluated !== null) requeue(gangClass, "changed");
    if (gangClass.gangs.length === 1) {
      this.overtaking.add(gangClass);
      noteUnflavored(gang.gangQueue, null);
    }
    gangQueue.head = null;
    this.fresh.add(gang);
  }

  #remove(gang: GangRecord): void {
    const { facts } = gang;
    const gangQueue = written(gang.gangQueue);
    this.gangs.delete(facts.uid);
    this.digests.note(facts, -1);
    this.leaving.delete(gang);
    this.offPlan.delete(gang);
    this.moving.delete(gang);
    this.#shapes.drop(gang.shape);
    this.fresh.delete(gang);
    this.timed.delete(gang);
    this.nominees.delete(gang);
    gangQueue.held.delete(gang);
    if (gangQueue.running.delete(gang)) {
      this.tenants.count(facts, -1);
      noteAdmissions(gang.gangQueue, null);
    }
    if (isWaiting(facts)) gangQueue.waiting -= 1;
    const list = growthList(gang);
    if (list !== null) removeGang(list, gang);
    this.#leaveClass(gang);
  }

  #leaveClass(gang: GangRecord): void {
    const { gangClass } = gang;
    if (gangClass === null) return;
    const gangQueue = written(gang.gangQueue);
    written(gang).gangClass = null;
    gangQueue.head = null;
    changeClass(gangClass, () => removeGang(written(gangClass).gangs, gang));
    // Whom it may preempt depends on its first gang, too.
    if (gangClass.reevaluated !== null) requeue(gangClass, "changed");
    if (gangClass.gangs.length > 0) return;
    gangQueue.classes.delete(gangClass.key);
    endClass(gangClass, this);
    this.overtaking.delete(gangClass);
  }

  #lineOf(name: string): GangQueue {
    const known = this.all.get(name);
    if (known !== undefined) return known;
    const { queues } = this.#quota;
    const gangQueue = newQueue(name, { stop: haltOf(name, queues), ageing: ageingOf(queues.get(name)) });
    this.all.set(name, gangQueue);
    this.#byName = null;
    return gangQueue;
  }

  /** The queues by name. */
  get byName(): readonly GangQueue[] {
    this.#byName ??= [...this.all.values()].sort((a, b) => compareText(a.name, b.name));
    return this.#byName;
  }
}
