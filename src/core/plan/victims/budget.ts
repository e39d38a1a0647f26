import { BUDGET_WINDOW_MS } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";

/**
 * A gang may not preempt others because its queue has caused as many preemptions within the last hour as it may.
 * `untilMs`: when it may. Null: it needs more of them than the queue may ever cause within an hour.
 */
export type OverBudget = { readonly queue: string; readonly max: number; readonly untilMs: number | null };

/**
 * Judges a preemption by the budget of the nominee's queue. `planned`: the victims that the round has chosen for other
 * gangs of the queue. Null: the budget allows it, or the queue has none.
 */
export function overBudget(
  { name, policy, preempted = [] }: Pick<PlanQueue, "name" | "policy" | "preempted">,
  victims: { readonly needed: number; readonly planned: number },
  nowMs: number,
): OverBudget | null {
  const max = policy?.preemptionsPerHour ?? null;
  if (max === null) return null;
  if (victims.needed > max) return { queue: name, max, untilMs: null };
  const past = preempted
    .map(({ atMs, victims: count }) => ({ endsMs: atMs + BUDGET_WINDOW_MS, count }))
    .concat({ endsMs: nowMs + BUDGET_WINDOW_MS, count: victims.planned })
    .filter(({ endsMs }) => endsMs > nowMs)
    .sort((a, b) => a.endsMs - b.endsMs);
  let over = past.reduce((sum, { count }) => sum + count, 0) + victims.needed - max;
  let untilMs: number | null = null;
  for (const { endsMs, count } of past) {
    if (over <= 0) break;
    over -= count;
    untilMs = endsMs;
  }
  return untilMs === null ? null : { queue: name, max, untilMs };
}

/** `queue nlp may cause 5 preemptions within an hour, and too few are left for it until 2026-…`. */
export function budgetMessage({ queue, max, untilMs }: OverBudget): string {
  if (untilMs === null) return `it needs more preemptions than the ${max} that queue ${queue} may cause within an hour`;
  const until = new Date(untilMs).toISOString();
  const most = `${max} preemption${max === 1 ? "" : "s"}`;
  return `queue ${queue} may cause ${most} within an hour, and too few are left for it until ${until}`;
}
