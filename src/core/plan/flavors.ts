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

/** What the quotas of a queue allow a gang. */
export type FlavorChoices = {
  /** Now, in the order of these quotas. */
  readonly choices: readonly FlavorChoice[];
  /** Once pools have room: nothing else is in the way. All of them, where there is a choice now. */
  readonly inLine: readonly FlavorChoice[];
  /** Every quota that was in the way, at each of its levels. */
  readonly refusals: readonly QuotaRefusal[];
};

/** Tries the flavors of a gang. A resource of amount 0 (members that come later ask for it) still gets its flavor. */
export function flavorChoices(
  job: Job,
  queue: PlanQueue,
  wanted: { readonly amounts: Readonly<Record<string, number>>; readonly book: QuotaBook },
): FlavorChoices {
  const refusals: QuotaRefusal[] = [];
  const models = job.spec.placement.gpuModels;
  const restricted = restrictedResources(queue, Object.keys(wanted.amounts), models);
  let choices: readonly FlavorChoice[] = [{}];
  let inLine: readonly FlavorChoice[] = [{}];
  for (const [resource, need] of Object.entries(wanted.amounts)) {
    const options = queue.quotas.filter(
      (quota) => quota.resource === resource && (!restricted.has(resource) || isModel(quota.flavor, models)),
    );
    if (options.length === 0) refusals.push(noQuota(queue, models[0] ?? resource, need));
    const asked = options.map((quota) => ({ quota, refused: wanted.book.refusals(job, quota.flavor, need) }));
    refusals.push(...asked.flatMap(({ refused }) => refused));
    const open = asked.filter(({ refused }) => refused.length === 0);
    const soon = asked.filter(({ refused }) => refused.every(isForTokens));
    choices = combine(choices, resource, open).slice(0, CHOICES_MAX);
    inLine = combine(inLine, resource, soon).slice(0, CHOICES_MAX);
  }
  return { choices, inLine, refusals };
}

/** True for what only the tokens of a pool that others hold are missing for. */
function isForTokens({ scope, reason }: QuotaRefusal): boolean {
  return scope.kind === "pool" && reason === "QuotaExhausted";
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

function combine(
  choices: readonly FlavorChoice[],
  resource: string,
  open: readonly { readonly quota: FlavorQuota }[],
): readonly FlavorChoice[] {
  return choices.flatMap((choice) => open.map(({ quota }) => ({ ...choice, [resource]: quota.flavor })));
}

function noQuota(queue: PlanQueue, flavor: string, need: number): QuotaRefusal {
  const scope = { kind: "queue", pool: flavor, queue: queue.name } as const;
  const amounts = { need, used: 0, limit: 0, reserved: 0 };
  return { queue: queue.name, flavor, scope, reason: "NoQuota", ...amounts, heldBy: [] };
}
