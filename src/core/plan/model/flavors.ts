import { type MemberGroup, wholeUnits } from "./gang.ts";
import type { QuotaRefusal } from "./plan-types.ts";
import type { PlanQueue } from "./snapshot.ts";

/** One flavor for each flavored resource of a gang: `nvidia.com/gpu` → `gpu/h100`. */
export type FlavorChoice = Readonly<Record<string, string>>;

/** A gang may request several flavored resources. At most this many combinations of their flavors are tried. */
export const CHOICES_MAX = 64;

const NONE: ReadonlySet<string> = new Set();

/** The flavored resources that these pods request, in whole units. Omits resources that they do not request. */
export function flavoredAmounts(
  groups: readonly MemberGroup[],
  resources: readonly string[],
): Readonly<Record<string, number>> {
  const amounts = resources.map((resource) => [resource, wholeUnits(groups, resource)] as const);
  return Object.fromEntries(amounts.filter(([, amount]) => amount > 0));
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
