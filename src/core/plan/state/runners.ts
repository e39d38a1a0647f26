import { liveAdmission } from "../../job/job.ts";
import type { MemberCounts } from "../gang.ts";
import type { PlannedFrom } from "../plan-gang.ts";
import { usesOne } from "../preempt/candidates.ts";
import type { RunningGang, Victim } from "../preempt/running-gang.ts";
import type { Branch } from "./branches.ts";
import { type ClusterState, type LiveMembers, membersUnder, type PlacedPod } from "./cluster-state.ts";
import type { Entry } from "./gang-lines.ts";
import { leastKept, splitAdmission } from "./growth.ts";
import type { Parts } from "./state-parts.ts";

/** An admission of a gang that uses tokens and room. */
export type Runner = RunningGang & {
  readonly entry: Entry;
  /** With the members that count here. */
  readonly admission: PlannedFrom;
  readonly members: LiveMembers;
  /** The members that an elastic gang keeps without its growth, if this is one of both. Null: it is the whole gang. */
  readonly keeps: MemberCounts | null;
};

export type RunningVictim = Victim & { readonly gang: Runner };

/** The gangs that use tokens and room, as they are when a round begins. They are the same until a fact changes. */
export class Runners {
  readonly #parts: Parts;
  readonly #staying = new Map<string, readonly Runner[]>();
  /** The gangs that stay in each cluster, by queue. Null: not known yet. */
  #byCluster: ReadonlyMap<string | null, ReadonlyMap<string, readonly Runner[]>> | null = null;
  /** The leaves of trees with gangs in each cluster, or in any, that use pools, by the names of both. */
  readonly #leaves = new Map<Branch, Map<string, readonly Branch[]>>();
  readonly #pods = new WeakMap<Runner, readonly PlacedPod[]>();
  /** The whole gangs of elastic ones. */
  readonly #wholes = new Map<Entry, Runner>();
  #leaving: readonly Runner[] | null = null;
  #whole: readonly Runner[] | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The running gangs of a queue that do not leave. The growth of an elastic gang is one of its own. */
  readonly staying = (queue: string): readonly Runner[] => {
    const known = this.#staying.get(queue);
    if (known !== undefined) return known;
    const entries = [...(this.#parts.lines.lines.get(queue)?.running ?? [])].filter((entry) => !leaves(entry));
    const runners = entries.flatMap((entry) => this.#partsOf(entry));
    this.#staying.set(queue, runners);
    return runners;
  };

  /** Those of all queues. */
  allStaying(): readonly Runner[] {
    return [...this.#parts.lines.lines.keys()].flatMap(this.staying);
  }

  /** The same, but elastic gangs together with their growth. */
  wholeStaying(): readonly Runner[] {
    this.#whole ??= this.allStaying().flatMap((gang) => (gang.isGrowth === true ? [] : [this.wholeOf(gang)]));
    return this.#whole;
  }

  /** The gangs that leave anyway, and the members that others are giving up. */
  leaving(): readonly Runner[] {
    this.#leaving ??= [...this.#parts.lines.placed].flatMap((entry) =>
      entry.gang.admissions.flatMap((admission) => {
        if (admission.cluster === null || admission.goneMs !== null) return [];
        if (admission.state !== "live" || leaves(entry)) return [this.make(entry, admission)];
        const { shrinksTo } = entry.gang;
        return shrinksTo === undefined ? [] : [this.growth(entry, admission, shrinksTo)];
      }),
    );
    return this.#leaving;
  }

  /** The gangs of a queue that stay in one cluster. */
  inCluster(cluster: string, queue: string): readonly Runner[] {
    this.#byCluster ??= new Map(
      [...byCluster(this.allStaying())].map(([name, gangs]) => [name, Map.groupBy(gangs, queueOf)]),
    );
    return this.#byCluster.get(cluster)?.get(queue) ?? [];
  }

  /** The leaves of a tree whose queues have gangs in a cluster, or anywhere, that use one of some pools. */
  leavesWith(root: Branch, pools: ReadonlySet<string>, cluster: string | null): readonly Branch[] {
    const known = this.#leaves.get(root) ?? new Map<string, readonly Branch[]>();
    this.#leaves.set(root, known);
    let key = cluster ?? "";
    for (const pool of pools) key += `\n${pool}`;
    let leaves = known.get(key);
    if (leaves === undefined) {
      const gangsOf = (queue: string) => (cluster === null ? this.staying(queue) : this.inCluster(cluster, queue));
      leaves = root.leaves.filter(({ name }) => gangsOf(name).some((gang) => usesOne(gang, pools)));
      known.set(key, leaves);
    }
    return leaves;
  }

  /** An elastic gang together with its growth, unless that leaves. */
  wholeOf(gang: Runner): Runner {
    const { entry, keeps } = gang;
    const live = liveAdmission(entry.gang);
    if (keeps === null || live === null || entry.gang.shrinksTo !== undefined) return gang;
    const whole = this.#wholes.get(entry) ?? this.make(entry, live);
    this.#wholes.set(entry, whole);
    return whole;
  }

  /** The pods that a gang has in a cluster: none but in that of its admission. */
  podsOf(cluster: ClusterState, runner: Runner): readonly PlacedPod[] {
    if (runner.admission.cluster !== cluster.name) return [];
    const known = this.#pods.get(runner);
    if (known !== undefined) return known;
    const { members, keeps, isGrowth = false } = runner;
    const part = keeps === null ? null : { keeps, isGrowth };
    const pods = cluster.podsOf(members, part);
    this.#pods.set(runner, pods);
    return pods;
  }

  /** Notes where the pods of a gang are that the round has admitted. */
  notePods(runner: Runner, pods: readonly PlacedPod[]): void {
    this.#pods.set(runner, pods);
  }

  make(entry: Entry, admission: PlannedFrom): Runner {
    const { uid, priority, createTimeMs } = entry.gang;
    const uses = this.#parts.usesOf(entry, admission);
    const times = { createTimeMs, admitTimeMs: admission.admitTimeMs };
    const of = { entry, admission, members: membersUnder(entry.gang, admission), keeps: null };
    return { uid, account: entry.account, priority, ...times, evicted: false, uses, ...of };
  }

  /** The members of a gang beyond those that it keeps. */
  growth(entry: Entry, live: PlannedFrom, keeps: MemberCounts): Runner {
    return { ...this.make(entry, splitAdmission(live, keeps).growth), keeps, isGrowth: true };
  }

  /** A running gang: whole, or its growth and the rest, of which the growth may leave already. */
  #partsOf(entry: Entry): readonly Runner[] {
    const known = this.#parts.runners.get(entry);
    if (known?.gang === entry.gang) return known.parts;
    const parts = this.#makeParts(entry);
    this.#parts.runners.set(entry, { gang: entry.gang, parts });
    return parts;
  }

  #makeParts(entry: Entry): readonly Runner[] {
    const live = liveAdmission(entry.gang);
    if (live === null) return [];
    const { shrinksTo } = entry.gang;
    const keeps = shrinksTo ?? leastKept(entry, live);
    if (keeps === null) return [this.make(entry, live)];
    const rest = { ...this.make(entry, splitAdmission(live, keeps).rest), keeps };
    return shrinksTo === undefined ? [this.growth(entry, live, keeps), rest] : [rest];
  }
}

/** Gangs by the cluster of their admission. */
export function byCluster(gangs: Iterable<Runner>): ReadonlyMap<string | null, readonly Runner[]> {
  return Map.groupBy(gangs, ({ admission }) => admission.cluster);
}

function queueOf({ entry }: Runner): string {
  return entry.line.name;
}

/** True for a gang whose live admission ends or is undone anyway. */
function leaves({ gang }: Entry): boolean {
  return gang.ends || gang.suspended || gang.evicted === true;
}
