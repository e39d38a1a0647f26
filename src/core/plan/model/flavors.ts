import { ofRole } from "../../job/flavor-labels.ts";
import { countable } from "../../quota/allocations.ts";
import { type MemberGroup, wholeUnits } from "./gang.ts";
import type { QuotaRefusal } from "./plan-types.ts";
import type { PlanQueue } from "./snapshot.ts";

/**
 * One flavor for each flavored resource of a gang, `nvidia.com/gpu` → `gpu/h100`, or for each of its replica types: a
 * map as in `core/job/flavor-labels`.
 */
export type FlavorChoice = Readonly<Record<string, string>>;

/**
 * Several types may request several flavored resources. At most so many combinations of their flavors are tried: all of
 * four types with three flavors each, or of seven types with two.
 */
export const CHOICES_MAX = 128;

const NONE: ReadonlySet<string> = new Set();

/** The whole units of each pool that these pods request, as far as amounts are `countable`. Omits pools without any. */
export function amountsOfMembers(groups: readonly MemberGroup[], choice: FlavorChoice): ReadonlyMap<string, number> {
  const amounts = new Map<string, number>();
  for (const { role, count, requests } of groups) {
    for (const [resource, pool] of Object.entries(ofRole(choice, role))) {
      const amount = count * wholeUnits(requests, resource);
      if (amount > 0) amounts.set(pool, countable((amounts.get(pool) ?? 0) + amount));
    }
  }
  return amounts;
}

/** True if only tokens of a pool are missing, which others hold now. */
export function isForTokens({ scope, reason }: Pick<QuotaRefusal, "scope" | "reason">): boolean {
  return scope.kind === "pool" && reason === "QuotaExhausted";
}

/** True if a flavor is one of the models, by its full name or by the part after its last slash. */
export function isModel(flavor: string, models: readonly string[]): boolean {
  return models.includes(flavor) || models.includes(flavor.slice(flavor.lastIndexOf("/") + 1));
}

/** Models restrict the resources that have such flavors. If none has, they restrict all: no quota has the model. */
export function restrictedResources(
  queue: PlanQueue,
  resources: readonly string[],
  models: readonly string[],
): ReadonlySet<string> {
  if (models.length === 0) return NONE;
  const having = resources.filter((resource) =>
    queue.quotas.some((quota) => quota.resource === resource && isModel(quota.flavor, models)),
  );
  return new Set(having.length > 0 ? having : resources);
}
