import type { Job } from "../job/job.ts";
import { type MemberGroup, wholeUnits } from "./gang.ts";
import type { QuotaRefusal } from "./plan-types.ts";
import type { QuotaBook } from "./quota-book.ts";
import type { FlavorQuota, PlanQueue, PlanSnapshot } from "./snapshot.ts";

/** One flavor for each flavored resource of a gang: `nvidia.com/gpu` → `gpu/h100`. */
export type FlavorChoice = Readonly<Record<string, string>>;

/** A gang may ask for several flavored resources; beyond so many combinations the later ones are not tried. */
const CHOICES_MAX = 64;

/** The resources that some cluster counts by flavor. */
export function flavoredResources(snapshot: PlanSnapshot): readonly string[] {
  const names = snapshot.clusters.flatMap((cluster) => cluster.flavors.map((flavor) => flavor.resource));
  return [...new Set(names)].sort();
}

/** What of the flavored resources these pods ask for, in whole units; a resource that they do not ask for is left out. */
export function flavoredAmounts(
  groups: readonly MemberGroup[],
  resources: readonly string[],
): Readonly<Record<string, number>> {
  const amounts = resources.map((resource) => [resource, wholeUnits(groups, resource)] as const);
  return Object.fromEntries(amounts.filter(([, amount]) => amount > 0));
}

/**
 * The flavors that a queue's quotas allow a gang now, in the order of these quotas; and every quota that was in the way. A resource
 * of amount 0 (members that come later ask for it) still gets its flavor.
 */
export function flavorChoices(
  job: Job,
  queue: PlanQueue,
  wanted: { readonly amounts: Readonly<Record<string, number>>; readonly book: QuotaBook },
): { readonly choices: readonly FlavorChoice[]; readonly refusals: readonly QuotaRefusal[] } {
  const refusals: QuotaRefusal[] = [];
  const models = job.spec.placement.gpuModels;
  const restricted = restrictedResources(queue, Object.keys(wanted.amounts), models);
  let choices: readonly FlavorChoice[] = [{}];
  for (const [resource, need] of Object.entries(wanted.amounts)) {
    const options = queue.quotas.filter(
      (quota) => quota.resource === resource && (!restricted.has(resource) || isModel(quota.flavor, models)),
    );
    if (options.length === 0) refusals.push(noQuota(queue, models[0] ?? resource, need));
    const open = options.filter((quota) => {
      const refusal = wanted.book.refusal(queue.name, quota, need);
      if (refusal !== null) refusals.push(refusal);
      return refusal === null;
    });
    choices = combine(choices, resource, open).slice(0, CHOICES_MAX);
  }
  return { choices, refusals };
}

/** True if a flavor is one of the models, by its full name or by what follows its last slash. */
function isModel(flavor: string, models: readonly string[]): boolean {
  return models.includes(flavor) || models.includes(flavor.slice(flavor.lastIndexOf("/") + 1));
}

/** Models restrict the resource that has such models; if none has, all of them: the asked model is not to be had. */
function restrictedResources(
  queue: PlanQueue,
  resources: readonly string[],
  models: readonly string[],
): ReadonlySet<string> {
  if (models.length === 0) return new Set();
  const having = resources.filter((resource) =>
    queue.quotas.some((quota) => quota.resource === resource && isModel(quota.flavor, models)),
  );
  return new Set(having.length > 0 ? having : resources);
}

function combine(choices: readonly FlavorChoice[], resource: string, open: readonly FlavorQuota[]) {
  return choices.flatMap((choice) => open.map((quota) => ({ ...choice, [resource]: quota.flavor })));
}

function noQuota(queue: PlanQueue, flavor: string, need: number): QuotaRefusal {
  return { queue: queue.name, flavor, reason: "NoQuota", need, used: 0, limit: 0, heldBy: [] };
}
