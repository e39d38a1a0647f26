import { type MemberGroup, wholeUnits } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { QuotaRefusal } from "./plan-types.ts";
import type { QuotaBook } from "./quota-book.ts";
import type { FlavorQuota, PlanQueue, PlanSnapshot } from "./snapshot.ts";

/** One flavor for each flavored resource of a gang: `nvidia.com/gpu` → `gpu/h100`. */
export type FlavorChoice = Readonly<Record<string, string>>;

/** A gang may request several flavored resources. At most this many combinations of their flavors are tried. */
export const CHOICES_MAX = 64;

const NONE: ReadonlySet<string> = new Set();

/** The resources that some cluster counts by flavor. */
export function flavoredResources(snapshot: PlanSnapshot): readonly string[] {
  const names = snapshot.clusters.flatMap((cluster) => cluster.flavors.map((flavor) => flavor.resource));
  return [...new Set(names)].sort();
}

/** The flavored resources that these pods request, in whole units. Omits resources that they do not request. */
export function flavoredAmounts(
  groups: readonly MemberGroup[],
  resources: readonly string[],
): Readonly<Record<string, number>> {
  const amounts = resources.map((resource) => [resource, wholeUnits(groups, resource)] as const);
  return Object.fromEntries(amounts.filter(([, amount]) => amount > 0));
}

/** The flavors that the quotas of a queue allow a gang. */
type FlavorChoices = {
  /** Possible now, in the order of the quotas. */
  readonly choices: readonly FlavorChoice[];
  /** Possible now, or as soon as pools have room. */
  readonly inLine: readonly FlavorChoice[];
  /** Every quota that is in the way, at each of its levels. */
  readonly refusals: readonly QuotaRefusal[];
};

/** Tries the flavors of a gang. A resource of amount 0, which only later members request, still gets its flavor. */
export function flavorChoices(
  gang: PlanGang,
  queue: PlanQueue,
  request: { readonly amounts: Readonly<Record<string, number>>; readonly book: QuotaBook },
): FlavorChoices {
  const refusals: QuotaRefusal[] = [];
  const models = gang.ask.placement.gpuModels;
  const restricted = restrictedResources(queue, Object.keys(request.amounts), models);
  let choices: readonly FlavorChoice[] = [{}];
  let inLine: readonly FlavorChoice[] = [{}];
  for (const [resource, need] of Object.entries(request.amounts)) {
    const options = queue.quotas.filter(
      (quota) => quota.resource === resource && (!restricted.has(resource) || isModel(quota.flavor, models)),
    );
    if (options.length === 0) refusals.push(noQuota(queue, models[0] ?? resource, need));
    const tried = options.map((quota) => ({ quota, refused: request.book.refusals(gang, quota.flavor, need) }));
    refusals.push(...tried.flatMap(({ refused }) => refused));
    const open = tried.filter(({ refused }) => refused.length === 0);
    const soon = tried.filter(({ refused }) => refused.every(isForTokens));
    choices = combine(choices, resource, open).slice(0, CHOICES_MAX);
    inLine = combine(inLine, resource, soon).slice(0, CHOICES_MAX);
  }
  return { choices, inLine, refusals };
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
