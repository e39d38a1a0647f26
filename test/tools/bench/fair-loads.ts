/** Loads of teams that share quotas, in the form of Kueue's performance tests, and the gates of those tests. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Gangs of one class, of which each queue creates one after the other. */
export type WorkloadSet = {
  readonly className: string;
  readonly count: number;
  readonly creationIntervalMs: number;
  readonly runtimeMs: number;
  readonly priority: number;
  readonly pods: number;
  /** In thousandths of a core. */
  readonly requestPerPod: { readonly cpu: number };
  /** Only in loads that place pods by topology. */
  readonly topology?: unknown;
};

export type QueueSet = {
  readonly className: string;
  readonly count: number;
  /** By pool, of which there is one. In thousandths of a core. Null: no limit. */
  readonly quotas: Readonly<
    Record<string, { readonly nominal: number; readonly borrow: number | null; readonly lend: number | null }>
  >;
  readonly policies: {
    readonly withinQueue: "never" | "lowerPriority" | "lowerOrNewerEqualPriority";
    readonly reclaimWithinTree: "never" | "lowerPriority" | "any";
    readonly borrowWithin: {
      readonly policy: "never" | "lowerPriority";
      readonly maxPriorityThreshold: number | null;
    } | null;
  };
  readonly workloadSets: readonly WorkloadSet[];
};

export type Load = {
  readonly suite: string;
  /** Trees of queues. */
  readonly cohorts: readonly {
    readonly className: string;
    readonly count: number;
    readonly queueSets: readonly QueueSet[];
  }[];
  /** What Kueue's tests demand of Kueue. */
  readonly gates: { readonly maxAvgTimeToAdmissionMsByClass: Readonly<Record<string, number>> };
};

/** The loads in a folder, by their names. Leaves out those that place pods by topology. */
export function readLoads(dir: string): { readonly loads: readonly Load[]; readonly leftOut: readonly string[] } {
  const files = readdirSync(dir).filter((name) => name.endsWith(".json"));
  const all = files.sort().map((name) => JSON.parse(readFileSync(join(dir, name), "utf8")) as Load);
  const placed = all.filter(placesByTopology).map(({ suite }) => suite);
  return { loads: all.filter((load) => !placesByTopology(load)), leftOut: placed };
}

function placesByTopology({ cohorts }: Load): boolean {
  return cohorts
    .flatMap(({ queueSets }) => queueSets)
    .some(({ workloadSets }) => workloadSets.some(({ topology }) => topology !== undefined));
}

const TEAMS: QueueSet = {
  className: "cq",
  count: 6,
  quotas: { "default/cpu": { nominal: 20_000, borrow: 100_000, lend: null } },
  policies: { withinQueue: "lowerPriority", reclaimWithinTree: "any", borrowWithin: null },
  workloadSets: [
    workloads("small", { count: 350, everyMs: 100, runtimeMs: 200, priority: 50, cpu: 1_000 }),
    workloads("medium", { count: 100, everyMs: 500, runtimeMs: 500, priority: 100, cpu: 5_000 }),
    workloads("large", { count: 50, everyMs: 1_200, runtimeMs: 1_000, priority: 200, cpu: 20_000 }),
  ],
};

function workloads(
  className: string,
  of: { count: number; everyMs: number; runtimeMs: number; priority: number; cpu: number },
): WorkloadSet {
  const { count, everyMs, runtimeMs, priority, cpu } = of;
  return { className, count, creationIntervalMs: everyMs, runtimeMs, priority, pods: 1, requestPerPod: { cpu } };
}

/** The load of Kueue's performance test "baseline": five trees of six queues, 15,000 gangs. */
export const BASELINE: Load = {
  suite: "baseline",
  cohorts: [{ className: "cohort", count: 5, queueSets: [TEAMS] }],
  gates: { maxAvgTimeToAdmissionMsByClass: { large: 23_000, medium: 90_000, small: 260_000 } },
};
