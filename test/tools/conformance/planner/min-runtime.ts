import type { Branch } from "../../../../src/core/plan/usage/branches.ts";
import {
  membersToTake,
  nearestMinRuntimeMs,
  type PreemptedBy,
  protectedUntilMs,
  reclaimedBranch,
} from "../../../../src/core/plan/victims/min-runtime.ts";
import { type CaseQueue, leafOf, quotaStateOf } from "./world.ts";

type MinRuntimeGang = {
  readonly queue: string;
  readonly startedMs: number | null;
  readonly groups: readonly { readonly name: string; readonly running: number; readonly min: number }[];
  /** The members that a scenario takes, by group. */
  readonly evict?: Readonly<Record<string, number>>;
};

type MinRuntimeCase = {
  readonly config: {
    readonly question: string;
    readonly defaultPreemptMinRuntimeMs: number;
    readonly defaultReclaimMinRuntimeMs: number;
    /** `queue`: the value for a reclaim is that of the victim's queue, as for a preemption. */
    readonly reclaimResolve?: "lca" | "queue";
  };
  readonly input: {
    readonly queues: readonly Omit<CaseQueue, "quotas">[];
    readonly queue?: string;
    readonly preemptorQueue?: string;
    readonly victimQueue?: string;
    readonly pending?: MinRuntimeGang;
    readonly victim?: MinRuntimeGang;
    readonly victims?: readonly MinRuntimeGang[];
  };
};

/** Which minimum run time counts, or whether it lets gangs or some of their members be taken. Now is 0. */
export function runMinRuntime({ config, input }: MinRuntimeCase): object {
  const state = quotaStateOf({ queues: input.queues.map((queue) => ({ ...queue, quotas: {} })) }, {});
  const leaf = (queue = "") => leafOf(state, queue);
  const minimumOf = (to: PreemptedBy, victim: Branch, preemptor: Branch) => {
    const byAncestor = to === "otherQueue" && config.reclaimResolve !== "queue";
    const value = nearestMinRuntimeMs(byAncestor ? reclaimedBranch(victim, preemptor) : victim, to);
    return value ?? (to === "ownQueue" ? config.defaultPreemptMinRuntimeMs : config.defaultReclaimMinRuntimeMs);
  };
  const takeable = (to: PreemptedBy, victim: MinRuntimeGang) => {
    const value = minimumOf(to, leaf(victim.queue), leaf(input.pending?.queue));
    const untilMs = protectedUntilMs(victim.startedMs, value);
    return victim.groups.map((group) => ({ ...group, most: membersToTake(group, { untilMs, nowMs: 0 }) }));
  };
  const filter = (to: PreemptedBy) => takeable(to, input.victim as MinRuntimeGang).some(({ most }) => most > 0);
  const scenario = (to: PreemptedBy) =>
    (input.victims ?? []).every((one) => takeable(to, one).every(({ name, most }) => (one.evict?.[name] ?? 0) <= most));
  switch (config.question) {
    case "preemptMinRuntime":
      return { minRuntimeMs: minimumOf("ownQueue", leaf(input.queue), leaf(input.queue)) };
    case "reclaimMinRuntime":
      return { minRuntimeMs: minimumOf("otherQueue", leaf(input.victimQueue), leaf(input.preemptorQueue)) };
    case "preemptFilter":
      return { allowed: filter("ownQueue") };
    case "reclaimFilter":
      return { allowed: filter("otherQueue") };
    case "preemptScenario":
      return { allowed: scenario("ownQueue") };
    case "reclaimScenario":
      return { allowed: scenario("otherQueue") };
    default:
      throw new Error(`the case asks an unknown question ${config.question}`);
  }
}
