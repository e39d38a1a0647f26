import { available } from "../../../../src/core/plan/usage/branch-use.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { type CaseAmounts, type CaseState, leafOf, quotaStateOf } from "./world.ts";

type Table = Readonly<Record<string, CaseAmounts>>;

/** What each leaf may use of each pool: now, after all use was taken off, and if nothing had ever been in use. */
export function runAvailable({ input }: { readonly input: CaseState }, expected: object): object {
  const { available: wanted } = expected as { readonly available: Table };
  const table = (from: QuotaState) => {
    return mapTable(wanted, (queue, pool) => available(from, leafOf(from, queue), pool));
  };
  const state = quotaStateOf(input, {});
  const now = table(state);
  const potential = mapTable(wanted, (queue, pool) => leafOf(state, queue).pools.get(pool)?.potential ?? 0);
  for (const [queue, amounts] of Object.entries(input.usage ?? {})) {
    const account = state.account(queue, "project", "namespace");
    for (const [pool, amount] of Object.entries(amounts)) state.discharge(account, pool, amount);
  }
  return { available: now, availableWhenIdle: table(state), potential };
}

function mapTable(table: Table, value: (queue: string, pool: string) => number): Table {
  const row = (queue: string, amounts: CaseAmounts) =>
    Object.fromEntries(Object.keys(amounts).map((pool) => [pool, value(queue, pool)]));
  return Object.fromEntries(Object.entries(table).map(([queue, amounts]) => [queue, row(queue, amounts)]));
}
