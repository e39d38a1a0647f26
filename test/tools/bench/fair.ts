/** Runs loads of teams that share quotas on a virtual clock: how long they take, what is lost, and who waits. */
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { Heap } from "../../../src/runtime/heap.ts";
import { FLAVOR, RESOURCE, VirtualFleet } from "../../support/virtual-fleet.ts";
import { ownCpuMs } from "./cpu-time.ts";
import { BASELINE, type Load, type QueueSet, readLoads, type WorkloadSet } from "./fair-loads.ts";

/** What may be missed: the makespan as a multiple of its lower bound, and the part of the work that is lost. */
const MAKESPAN_MAX = 1.15;
const LOST_MAX = 0.05;

type Work = {
  readonly uid: string;
  readonly tree: string;
  readonly queue: string;
  readonly set: WorkloadSet;
  readonly units: number;
  readonly createMs: number;
  /** When its last admission was. Null: it waits. */
  startMs: number | null;
};

type Tree = { readonly name: string; readonly queues: readonly PlanQueue[]; readonly work: readonly Work[] };

type Event = {
  readonly atMs: number;
  readonly work: Work;
  readonly kind: "created" | "ended" | "may be admitted";
  /** The admission that ends. Null: the event is another one. */
  readonly startMs: number | null;
};

/** What came of a load. */
export type FairResult = {
  readonly makespanMs: number;
  /** No schedule is shorter: it takes so long for the work of each tree to arrive, and to run on the tree's quotas. */
  readonly boundMs: number;
  readonly lostPart: number;
  readonly preemptions: number;
  readonly meanWaitMs: ReadonlyMap<string, number>;
  readonly rounds: number;
  readonly cpuMs: number;
};

/**
 * Runs the loads of a folder, or the one that is built in: each with the load's own policies, and once more with a
 * minimum run time. Returns false if a goal is missed.
 */
export function benchFair(
  { dir, minRuntimeMs }: { dir: string | null; minRuntimeMs: number },
  print: (line: string) => void,
): boolean {
  const { loads, leftOut } = dir === null ? { loads: [BASELINE], leftOut: [] } : readLoads(dir);
  if (loads.length === 0) throw new Error(`${dir} has no load that quotas alone decide`);
  let isMet = true;
  for (const load of loads) {
    for (const [title, result] of [
      [load.suite, runLoad(load)],
      [`${load.suite} with min_runtime ${seconds(minRuntimeMs)}`, runLoad(load, minRuntimeMs)],
    ] as const) {
      isMet &&= result.makespanMs <= MAKESPAN_MAX * result.boundMs && result.lostPart <= LOST_MAX;
      for (const line of linesOf(title, load, result)) print(line);
    }
  }
  for (const name of leftOut) print(`${name}: left out, it places pods by topology`);
  return isMet;
}

function linesOf(title: string, { gates }: Load, result: FairResult): readonly string[] {
  const { makespanMs, boundMs, lostPart, preemptions, meanWaitMs, rounds, cpuMs } = result;
  const waits = [...meanWaitMs].map(([name, ms]) => {
    const gate = gates.maxAvgTimeToAdmissionMsByClass[name];
    const kueue = gate === undefined ? "" : ` (Kueue's gate ${seconds(gate)})`;
    return `${title}: mean wait of ${name} ${seconds(ms)}${kueue}`;
  });
  const ratio = (makespanMs / boundMs).toFixed(3);
  return [
    `${title}: makespan ${seconds(makespanMs)}, lower bound ${seconds(boundMs)}, ratio ${ratio} (goal ${MAKESPAN_MAX})`,
    `${title}: ${preemptions} preemptions lost ${(lostPart * 100).toFixed(2)} % of the work (goal ${LOST_MAX * 100} %)`,
    ...waits,
    `${title}: ${rounds} rounds in ${seconds(cpuMs)} of CPU time, ${(cpuMs / Math.max(1, rounds)).toFixed(2)} ms each`,
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Runs a load. A gang that was admitted for less than the minimum run time is not preempted. */
export function runLoad(load: Load, minRuntimeMs = 0): FairResult {
  const trees = treesOf(load, minRuntimeMs);
  const fleet = new VirtualFleet(trees.flatMap(({ queues }) => queues));
  const works = new Map(trees.flatMap(({ work }) => work.map((one) => [one.uid, one] as const)));
  const arrivals = [...works.values()].map((work): Event => {
    return { atMs: work.createMs, work, kind: "created", startMs: null };
  });
  const events = new Heap(arrivals, (a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.work.uid < b.work.uid));
  const waited = new Map<Work, number>();
  let [rounds, preemptions, lost, nowMs, cpuMs] = [0, 0, 0, 0, 0];

  /** Carries out one round. False: it decided nothing. */
  const runRound = (): boolean => {
    const { admissions, preemptions: planned, withdrawn } = fleet.state.round(nowMs, { admissionsMax: 10_000 });
    rounds += 1;
    for (const admission of admissions) {
      const work = workOf(works, admission.jobUid);
      work.startMs = nowMs;
      waited.set(work, nowMs - work.createMs);
      fleet.admit(admission, nowMs);
      events.push({ atMs: nowMs + work.set.runtimeMs, work, kind: "ended", startMs: nowMs });
    }
    for (const uid of withdrawn) fleet.nominate(uid, null);
    for (const { planned: wanted, victims } of planned) {
      const { jobUid, generation, cluster, flavors, members } = wanted;
      if (cluster === null) throw new Error(`${jobUid} preempts for no cluster`);
      fleet.nominate(jobUid, { cluster, flavors, members, generation, victims, sinceMs: nowMs });
      for (const victim of victims) {
        const work = workOf(works, victim.jobUid);
        lost += work.units * (nowMs - (work.startMs ?? nowMs));
        work.startMs = null;
        preemptions += 1;
        events.push({ atMs: fleet.preempt(victim.jobUid, nowMs), work, kind: "may be admitted", startMs: null });
      }
    }
    return admissions.length + planned.length + withdrawn.length > 0;
  };

  while (events.size > 0) {
    nowMs = events.peek()?.atMs ?? nowMs;
    const startedMs = ownCpuMs();
    while (events.peek()?.atMs === nowMs) {
      const { work, kind, startMs } = events.pop() as Event;
      if (kind === "created") fleet.submit(gangOf(work));
      else if (kind === "ended" && work.startMs === startMs) fleet.end(work.uid);
    }
    while (runRound());
    cpuMs += ownCpuMs() - startedMs;
  }
  const all = trees.flatMap(({ work }) => work);
  const unserved = all.filter((work) => !waited.has(work));
  if (unserved.length > 0) throw new Error(`${unserved.length} gangs were never admitted`);
  const total = sumOf(all, ({ units, set }) => units * set.runtimeMs);
  const boundMs = Math.max(...trees.map(lowerBoundMs));
  const meanWaitMs = meanByClass(all, (work) => waited.get(work) ?? 0);
  return { makespanMs: nowMs, boundMs, lostPart: lost / total, preemptions, meanWaitMs, rounds, cpuMs };
}

function workOf(works: ReadonlyMap<string, Work>, uid: string): Work {
  const work = works.get(uid);
  if (work === undefined) throw new Error(`there is no gang ${uid}`);
  return work;
}

function gangOf({ uid, queue, set, units, createMs }: Work) {
  return { uid, queue, priority: set.priority, units, createTimeMs: createMs };
}

function treesOf({ cohorts }: Load, minRuntimeMs: number): readonly Tree[] {
  return cohorts.flatMap(({ className, count, queueSets }) =>
    Array.from({ length: count }, (_, at) => treeOf(`${className}-${at}`, queueSets, minRuntimeMs)),
  );
}

function treeOf(name: string, queueSets: readonly QueueSet[], minRuntimeMs: number): Tree {
  const leaves = queueSets.flatMap((set, place) =>
    Array.from({ length: set.count }, (_, at) => ({ set, queue: `${set.className}-${place}-${at}-${name}` })),
  );
  const minRuntime = minRuntimeMs === 0 ? {} : { minRuntimePreemptMs: minRuntimeMs, minRuntimeReclaimMs: minRuntimeMs };
  const policy = { ...DEFAULT_POLICY, ...minRuntime };
  const root: PlanQueue = { name, parent: null, strategy: "BEST_EFFORT_FIFO", policy, quotas: [] };
  const queues = leaves.map(({ set, queue }) => leafOf(queue, name, set));
  const work = leaves.flatMap(({ set, queue }) => set.workloadSets.flatMap((one) => workOfSet(one, queue, name)));
  return { name, queues: [root, ...queues], work };
}

function leafOf(name: string, parent: string, { quotas, policies }: QueueSet): PlanQueue {
  const [quota, ...others] = Object.values(quotas);
  if (quota === undefined || others.length > 0) throw new Error(`${name} does not have a quota for exactly one pool`);
  const { nominal, borrow, lend } = quota;
  const limits = {
    ...(borrow === null ? {} : { borrowingLimit: borrow / 1000 }),
    ...(lend === null ? {} : { lendingLimit: lend / 1000 }),
  };
  const quotaOf = { flavor: FLAVOR, resource: RESOURCE, nominal: nominal / 1000, ...limits };
  return { name, parent, strategy: "BEST_EFFORT_FIFO", policy: policyOf(policies), quotas: [quotaOf] };
}

const WITHIN_QUEUE = {
  never: "NEVER",
  lowerPriority: "LOWER_PRIORITY",
  lowerOrNewerEqualPriority: "LOWER_OR_NEWER_EQUAL_PRIORITY",
} as const;
const RECLAIM = { never: "NEVER", lowerPriority: "LOWER_PRIORITY", any: "ANY" } as const;

function policyOf({ withinQueue, reclaimWithinTree, borrowWithin }: QueueSet["policies"]): QueuePolicy {
  const { policy = "never", maxPriorityThreshold = null } = borrowWithin ?? {};
  return {
    ...DEFAULT_POLICY,
    withinQueue: WITHIN_QUEUE[withinQueue],
    reclaimWithinTree: RECLAIM[reclaimWithinTree],
    borrowWithin: { policy: policy === "never" ? "NEVER" : "LOWER_PRIORITY", maxPriority: maxPriorityThreshold },
  };
}

function workOfSet(set: WorkloadSet, queue: string, tree: string): readonly Work[] {
  const units = Math.ceil((set.pods * set.requestPerPod.cpu) / 1000);
  return Array.from({ length: set.count }, (_, at) => {
    const uid = `${queue}-${set.className}-${at}`;
    return { uid, tree, queue, set, units, createMs: at * set.creationIntervalMs, startMs: null };
  });
}

/** What arrives from any moment on needs the tree's quotas for its work; and each gang arrives and runs. */
function lowerBoundMs({ queues, work }: Tree): number {
  const units = sumOf(queues, ({ quotas }) => sumOf(quotas, ({ nominal }) => nominal));
  const latest = [...work].sort((a, b) => b.createMs - a.createMs);
  let bound = 0;
  let left = 0;
  for (const one of latest) {
    left += one.units * one.set.runtimeMs;
    bound = Math.max(bound, one.createMs + left / units, one.createMs + one.set.runtimeMs);
  }
  return bound;
}

function meanByClass(works: readonly Work[], amountOf: (work: Work) => number): ReadonlyMap<string, number> {
  const groups = Map.groupBy(works, ({ set }) => set.className);
  return new Map([...groups].map(([name, group]) => [name, sumOf(group, amountOf) / group.length]));
}

function sumOf<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + amountOf(item), 0);
}
