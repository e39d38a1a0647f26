/** Counts jobs one by one, to compare with what stores and the service count. */
import { currentAdmission, type Job } from "../../src/core/job/job.ts";
import {
  type CountedJobs,
  type CountQuery,
  countedEndedSince,
  ENDED_MAX,
  GROUPS_MAX,
  type JobCounts,
  type JobProperty,
  POOLS_MAX,
} from "../../src/core/job/request/count.ts";
import { heldFlavors, matchesFilter, waitReason } from "../../src/core/job/request/filter.ts";
import type { ShownJob } from "../../src/core/job/request/list.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { compareText } from "../../src/runtime/compare-text.ts";

type Held = Pick<ShownJob, "job" | "tokens">;

/** `jobs`: all that exist, with the tokens of their live admissions. */
export function countByHand(jobs: readonly Held[], { filter, groupBy }: CountQuery, nowMs: number): JobCounts {
  const endedSinceMs = countedEndedSince(filter, nowMs);
  const passing = jobs.filter(({ job }) => matchesFilter(filter, job));
  const live = passing.filter(({ job }) => !isTerminal(job.status));
  const ended = passing
    .filter(({ job }) => endedSinceMs !== null && endOf(job) >= endedSinceMs)
    .sort((a, b) => endOf(b.job) - endOf(a.job) || compareText(b.job.uid, a.job.uid));
  const groups = new Map<string, CountedJobs>();
  for (const one of [...live, ...ended.slice(0, ENDED_MAX)]) {
    for (const { values, flavor } of placesOf(one.job, groupBy)) {
      const key = JSON.stringify(values);
      const tokens = one.tokens.filter(({ pool }) => flavor === null || pool === flavor);
      groups.set(
        key,
        sum(values, [...(groups.has(key) ? [groups.get(key) as CountedJobs] : []), own(one.job, tokens)]),
      );
    }
  }
  const inOrder = [...groups.values()].sort((a, b) => b.jobs - a.jobs || compareLists(a.values, b.values));
  const rest = inOrder.slice(GROUPS_MAX);
  return {
    groups: inOrder.slice(0, GROUPS_MAX).map(withFewPools),
    rest: rest.length === 0 ? null : withFewPools(sum([], rest)),
    restGroups: rest.length,
    endedCapped: ended.length > ENDED_MAX,
    endedSinceMs,
  };
}

function endOf({ status }: Job): number {
  return status.completionTimeMs ?? Number.NEGATIVE_INFINITY;
}

/** The groups that a job counts in. `flavor` null: with all its tokens. */
function placesOf(job: Job, groupBy: readonly JobProperty[]) {
  const flavors = heldFlavors(job);
  const counted = !groupBy.includes("flavor") ? [null] : flavors.length === 0 ? [""] : flavors;
  return counted.map((flavor) => ({ flavor, values: groupBy.map((property) => valueIn(job, property, flavor ?? "")) }));
}

function valueIn(job: Job, property: JobProperty, flavor: string): string {
  const values: Record<JobProperty, string> = {
    phase: job.status.phase,
    queue: job.spec.runPolicy.schedulingPolicy.queue,
    namespace: job.namespace,
    owner: job.createdBy,
    kind: job.spec.kind,
    cluster: currentAdmission(job)?.cluster ?? "",
    flavor,
    reason: waitReason(job),
  };
  return values[property];
}

function own(job: Job, tokens: Held["tokens"]): CountedJobs {
  const pods = Object.values(job.spec.replicaSpecs).reduce((all, { replicas }) => all + replicas, 0);
  const held = sum([], []);
  const counted = { ...held, jobs: 1, pods, oldestCreateMs: job.createTimeMs };
  return { ...counted, tokens: added(tokens.map(({ pool, amount }) => [pool, amount])) };
}

function sum(values: readonly string[], all: readonly CountedJobs[]): CountedJobs {
  return {
    values,
    jobs: all.reduce((jobs, one) => jobs + one.jobs, 0),
    pods: all.reduce((pods, one) => pods + one.pods, 0),
    tokens: added(all.flatMap(({ tokens }) => Object.entries(tokens))),
    oldestCreateMs: all.length === 0 ? null : Math.min(...all.map((one) => one.oldestCreateMs ?? 0)),
  };
}

function added(amounts: readonly (readonly [string, number])[]): Readonly<Record<string, number>> {
  const totals = new Map<string, number>();
  for (const [pool, amount] of amounts) totals.set(pool, (totals.get(pool) ?? 0) + amount);
  return Object.fromEntries(totals);
}

function withFewPools(counted: CountedJobs): CountedJobs {
  const byAmount = Object.entries(counted.tokens).sort((a, b) => b[1] - a[1] || compareText(a[0], b[0]));
  const named = byAmount.slice(0, POOLS_MAX);
  const others = byAmount.slice(POOLS_MAX).map(([, amount]) => ["", amount] as const);
  return { ...counted, tokens: added([...named, ...others]) };
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (const [at, value] of a.entries()) {
    const order = compareText(value, b[at] ?? "");
    if (order !== 0) return order;
  }
  return 0;
}
