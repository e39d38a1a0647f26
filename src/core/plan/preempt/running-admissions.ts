import { liveAdmission } from "../../job/job.ts";
import { type ClusterState, membersUnder } from "../capacity/cluster-state.ts";
import type { PlacedPod } from "../capacity/unseen-pods.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { MemberCounts } from "../model/gang.ts";
import type { PlannedFrom } from "../model/plan-gang.ts";
import { leaves } from "../queues/gang-class.ts";
import { noteAdmissions } from "../queues/queue-state.ts";
import type { GangAdmissions, GangQueue, GangRecord, QueueAdmissions, RunningAdmission } from "../queues/records.ts";
import type { Branch } from "../usage/branches.ts";
import { usesOne } from "../victims/candidates.ts";
import { leastKept, splitAdmission } from "./growth.ts";

/** The gangs that use tokens and capacity, as they are when a round begins. They are the same until a fact changes. */
export class RunningAdmissions {
  readonly #fleet: Fleet;
  /** The leaves of trees with gangs in each cluster, or in any, that use pools, by the names of both. */
  readonly #leaves = new Map<Branch, Map<string, readonly Branch[]>>();
  readonly #pods = new WeakMap<RunningAdmission, readonly PlacedPod[]>();
  #leaving: readonly RunningAdmission[] | null = null;
  #whole: readonly RunningAdmission[] | null = null;
  #ending: readonly RunningAdmission[] | null = null;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** The running gangs of a queue that do not leave. The growth of an elastic gang is one of its own. */
  readonly staying = (queue: string): readonly RunningAdmission[] => {
    const gangQueue = this.#fleet.queues.all.get(queue);
    return gangQueue === undefined ? [] : this.#inLine(gangQueue).parts;
  };

  /** The running gangs of all queues that do not leave, elastic ones together with their growth. */
  wholeStaying(): readonly RunningAdmission[] {
    this.#whole ??= this.#ofAllQueues(({ wholes }) => wholes);
    return this.#whole;
  }

  /** Those among them whose end is known, or that may be taken back at any time. */
  ending(): readonly RunningAdmission[] {
    this.#ending ??= this.#ofAllQueues(({ ending }) => ending);
    return this.#ending;
  }

  /** One of them. Null: the gang does not run, or it leaves. */
  wholeStayingOf(gang: GangRecord): RunningAdmission | null {
    return leaves(gang.facts) ? null : this.#ofGang(gang).whole;
  }

  /** The gangs that leave anyway, and the members that others are giving up. */
  leaving(): readonly RunningAdmission[] {
    this.#leaving ??= [...this.#fleet.queues.leaving].flatMap((gang) =>
      gang.facts.admissions.flatMap((admission) => {
        if (admission.cluster === null || admission.goneMs !== null) return [];
        if (admission.state !== "live" || leaves(gang.facts)) return [this.make(gang, admission)];
        const { shrinksTo } = gang.facts;
        return shrinksTo === undefined ? [] : [this.growth(gang, admission, shrinksTo)];
      }),
    );
    return this.#leaving;
  }

  /** The gangs of a queue that stay in one cluster. */
  inCluster(cluster: string, queue: string): readonly RunningAdmission[] {
    const gangQueue = this.#fleet.queues.all.get(queue);
    if (gangQueue === undefined) return [];
    const runningAdmissions = this.#inLine(gangQueue);
    runningAdmissions.byCluster ??= byCluster(runningAdmissions.parts);
    return runningAdmissions.byCluster.get(cluster) ?? [];
  }

  /** The leaves of a tree whose queues have gangs in a cluster, or anywhere, that use one of some pools. */
  leavesWith(root: Branch, pools: ReadonlySet<string>, cluster: string | null): readonly Branch[] {
    const known = this.#leaves.get(root) ?? new Map<string, readonly Branch[]>();
    this.#leaves.set(root, known);
    let key = cluster ?? "";
    for (const pool of pools) key += `\n${pool}`;
    let leaves = known.get(key);
    if (leaves === undefined) {
      leaves = root.leaves.filter(({ name }) => this.#mayUse(name, pools, cluster));
      known.set(key, leaves);
    }
    return leaves;
  }

  /** True if gangs of a queue in a cluster, or anywhere, use one of some pools. */
  #mayUse(queue: string, pools: ReadonlySet<string>, cluster: string | null): boolean {
    const gangQueue = this.#fleet.queues.all.get(queue);
    if (gangQueue === undefined || !hasOne(this.#inLine(gangQueue).pools, pools)) return false;
    return cluster === null || this.inCluster(cluster, queue).some((gang) => usesOne(gang, pools));
  }

  /** The pods that a gang has in a cluster: none but in that of its admission. */
  podsOf(cluster: ClusterState, running: RunningAdmission): readonly PlacedPod[] {
    if (running.admission.cluster !== cluster.name) return [];
    const known = this.#pods.get(running);
    if (known !== undefined) return known;
    const { members, keeps, isGrowth = false } = running;
    const part = keeps === null ? null : { keeps, isGrowth };
    const pods = cluster.podsOf(members, part);
    this.#pods.set(running, pods);
    return pods;
  }

  /** Records where the pods of a gang are that the round has admitted. */
  notePods(running: RunningAdmission, pods: readonly PlacedPod[]): void {
    this.#pods.set(running, pods);
  }

  make(gang: GangRecord, admission: PlannedFrom): RunningAdmission {
    const { uid, priority, createTimeMs } = gang.facts;
    const uses = this.#fleet.usesOf(gang, admission);
    const times = { createTimeMs, admitTimeMs: admission.admitTimeMs };
    const of = { gang, admission, members: membersUnder(gang.facts, admission), keeps: null };
    return { uid, account: gang.account, priority, ...times, evicted: false, uses, ...of };
  }

  /** The members of a gang beyond those that it keeps. */
  growth(gang: GangRecord, live: PlannedFrom, keeps: MemberCounts): RunningAdmission {
    return { ...this.make(gang, splitAdmission(live, keeps).growth), keeps, isGrowth: true };
  }

  #ofAllQueues(of: (line: QueueAdmissions) => readonly RunningAdmission[]): readonly RunningAdmission[] {
    return [...this.#fleet.queues.all.values()].flatMap((gangQueue) => of(this.#inLine(gangQueue)));
  }

  #inLine(gangQueue: GangQueue): QueueAdmissions {
    if (gangQueue.runningAdmissions !== null) return gangQueue.runningAdmissions;
    const made = this.#makeInQueue(gangQueue);
    noteAdmissions(gangQueue, made);
    return made;
  }

  #makeInQueue({ running }: GangQueue): QueueAdmissions {
    const all = [...running].filter(({ facts }) => !leaves(facts)).map((queued) => this.#ofGang(queued));
    const wholes = all.flatMap(({ whole }) => whole ?? []);
    const pools = new Set(wholes.flatMap(({ uses }) => [...uses].flatMap(([pool, used]) => (used > 0 ? [pool] : []))));
    const parts = all.flatMap((gang) => gang.parts);
    return { parts, wholes, ending: wholes.filter(mayEnd), pools, byCluster: null };
  }

  #ofGang(gang: GangRecord): GangAdmissions {
    const known = this.#fleet.runningAdmissions.get(gang);
    if (known?.facts === gang.facts) return known;
    const made = { facts: gang.facts, ...this.#makeParts(gang) };
    this.#fleet.runningAdmissions.set(gang, made);
    return made;
  }

  /** A running gang: whole, or its growth and the rest, of which the growth may leave already. */
  #makeParts(gang: GangRecord): Omit<GangAdmissions, "facts"> {
    const live = liveAdmission(gang.facts);
    if (live === null) return { parts: [], whole: null };
    const { shrinksTo } = gang.facts;
    const keeps = shrinksTo ?? leastKept(gang, live);
    if (keeps === null) {
      const whole = this.make(gang, live);
      return { parts: [whole], whole };
    }
    const rest = { ...this.make(gang, splitAdmission(live, keeps).rest), keeps };
    if (shrinksTo !== undefined) return { parts: [rest], whole: rest };
    return { parts: [this.growth(gang, live, keeps), rest], whole: this.make(gang, live) };
  }
}

/** Gangs by the cluster of their admission. */
export function byCluster(gangs: Iterable<RunningAdmission>): ReadonlyMap<string | null, readonly RunningAdmission[]> {
  return Map.groupBy(gangs, ({ admission }) => admission.cluster);
}

function hasOne(all: ReadonlySet<string>, pools: ReadonlySet<string>): boolean {
  for (const pool of pools) if (all.has(pool)) return true;
  return false;
}

/** True if the end of a gang is known, or it may be taken back at any time. */
export function mayEnd({ gang: { facts } }: RunningAdmission): boolean {
  return facts.backfill === true || facts.maxRuntimeMs !== undefined;
}
