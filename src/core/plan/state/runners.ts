import { liveAdmission } from "../../job/job.ts";
import type { MemberCounts } from "../gang.ts";
import type { PlanGang, PlannedFrom } from "../plan-gang.ts";
import { usesOne } from "../preempt/candidates.ts";
import type { RunningGang, Victim } from "../preempt/running-gang.ts";
import type { Branch } from "./branches.ts";
import { type ClusterState, type LiveMembers, membersUnder, type PlacedPod } from "./cluster-state.ts";
import type { Entry, Line } from "./gang-lines.ts";
import { leaves } from "./gang-place.ts";
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

/** A gang that stays, made of one record of it: with its growth as one of its own, and whole. */
export type EntryRunners = {
  readonly gang: PlanGang;
  readonly parts: readonly Runner[];
  readonly whole: Runner | null;
};

/** The gangs of a queue that stay. */
export type LineRunners = {
  readonly parts: readonly Runner[];
  readonly wholes: readonly Runner[];
  /** Those of `wholes` whose end is known, or that may be taken back at any time. */
  readonly ending: readonly Runner[];
  /** The pools that they use. */
  readonly pools: ReadonlySet<string>;
  /** Those of `parts` by cluster. Null: not asked for yet. */
  byCluster: ReadonlyMap<string | null, readonly Runner[]> | null;
};

/** The gangs that use tokens and room, as they are when a round begins. They are the same until a fact changes. */
export class Runners {
  readonly #parts: Parts;
  /** The leaves of trees with gangs in each cluster, or in any, that use pools, by the names of both. */
  readonly #leaves = new Map<Branch, Map<string, readonly Branch[]>>();
  readonly #pods = new WeakMap<Runner, readonly PlacedPod[]>();
  #leaving: readonly Runner[] | null = null;
  #whole: readonly Runner[] | null = null;
  #ending: readonly Runner[] | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The running gangs of a queue that do not leave. The growth of an elastic gang is one of its own. */
  readonly staying = (queue: string): readonly Runner[] => {
    const line = this.#parts.lines.lines.get(queue);
    return line === undefined ? [] : this.#inLine(line).parts;
  };

  /** The running gangs of all queues that do not leave, elastic ones together with their growth. */
  wholeStaying(): readonly Runner[] {
    this.#whole ??= this.#ofAllLines(({ wholes }) => wholes);
    return this.#whole;
  }

  /** Those among them whose end is known, or that may be taken back at any time. */
  ending(): readonly Runner[] {
    this.#ending ??= this.#ofAllLines(({ ending }) => ending);
    return this.#ending;
  }

  /** One of them. Null: the gang does not run, or it leaves. */
  wholeStayingOf(entry: Entry): Runner | null {
    return leaves(entry.gang) ? null : this.#ofEntry(entry).whole;
  }

  /** The gangs that leave anyway, and the members that others are giving up. */
  leaving(): readonly Runner[] {
    this.#leaving ??= [...this.#parts.lines.leaving].flatMap((entry) =>
      entry.gang.admissions.flatMap((admission) => {
        if (admission.cluster === null || admission.goneMs !== null) return [];
        if (admission.state !== "live" || leaves(entry.gang)) return [this.make(entry, admission)];
        const { shrinksTo } = entry.gang;
        return shrinksTo === undefined ? [] : [this.growth(entry, admission, shrinksTo)];
      }),
    );
    return this.#leaving;
  }

  /** The gangs of a queue that stay in one cluster. */
  inCluster(cluster: string, queue: string): readonly Runner[] {
    const line = this.#parts.lines.lines.get(queue);
    if (line === undefined) return [];
    const runners = this.#inLine(line);
    runners.byCluster ??= byCluster(runners.parts);
    return runners.byCluster.get(cluster) ?? [];
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
    const line = this.#parts.lines.lines.get(queue);
    if (line === undefined || !hasOne(this.#inLine(line).pools, pools)) return false;
    return cluster === null || this.inCluster(cluster, queue).some((gang) => usesOne(gang, pools));
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

  #ofAllLines(of: (line: LineRunners) => readonly Runner[]): readonly Runner[] {
    return [...this.#parts.lines.lines.values()].flatMap((line) => of(this.#inLine(line)));
  }

  #inLine(line: Line): LineRunners {
    line.runners ??= this.#makeInLine(line);
    return line.runners;
  }

  #makeInLine({ running }: Line): LineRunners {
    const all = [...running].filter(({ gang }) => !leaves(gang)).map((entry) => this.#ofEntry(entry));
    const wholes = all.flatMap(({ whole }) => whole ?? []);
    const pools = new Set(wholes.flatMap(({ uses }) => [...uses].flatMap(([pool, used]) => (used > 0 ? [pool] : []))));
    const parts = all.flatMap((gang) => gang.parts);
    return { parts, wholes, ending: wholes.filter(mayEnd), pools, byCluster: null };
  }

  #ofEntry(entry: Entry): EntryRunners {
    const known = this.#parts.runners.get(entry);
    if (known?.gang === entry.gang) return known;
    const made = { gang: entry.gang, ...this.#makeParts(entry) };
    this.#parts.runners.set(entry, made);
    return made;
  }

  /** A running gang: whole, or its growth and the rest, of which the growth may leave already. */
  #makeParts(entry: Entry): Omit<EntryRunners, "gang"> {
    const live = liveAdmission(entry.gang);
    if (live === null) return { parts: [], whole: null };
    const { shrinksTo } = entry.gang;
    const keeps = shrinksTo ?? leastKept(entry, live);
    if (keeps === null) {
      const whole = this.make(entry, live);
      return { parts: [whole], whole };
    }
    const rest = { ...this.make(entry, splitAdmission(live, keeps).rest), keeps };
    if (shrinksTo !== undefined) return { parts: [rest], whole: rest };
    return { parts: [this.growth(entry, live, keeps), rest], whole: this.make(entry, live) };
  }
}

/** Gangs by the cluster of their admission. */
export function byCluster(gangs: Iterable<Runner>): ReadonlyMap<string | null, readonly Runner[]> {
  return Map.groupBy(gangs, ({ admission }) => admission.cluster);
}

function hasOne(all: ReadonlySet<string>, pools: ReadonlySet<string>): boolean {
  for (const pool of pools) if (all.has(pool)) return true;
  return false;
}

/** True if the end of a gang is known, or it may be taken back at any time. */
export function mayEnd({ entry: { gang } }: Runner): boolean {
  return gang.backfill === true || gang.maxRuntimeMs !== undefined;
}
