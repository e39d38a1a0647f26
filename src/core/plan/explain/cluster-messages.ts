import { clusterName } from "../../job/cluster-text.ts";
import { type FlavorLabels, ofRole } from "../../job/flavor-labels.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import { findBlocked } from "../capacity/find-blocked.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { type FitGroup, type PlaceResult, placeAll } from "../capacity/place-all.ts";
import { type NearestDomain, nearestDomain } from "../domains/nearest-domain.ts";
import { fitGang, type GangPods, wishesForDomains } from "../domains/place-gang.ts";
import { apartMessage, apartPod } from "../fit/flavors-apart.ts";
import type { Fleet } from "../fit/fleet.ts";
import { groupsOf, labelsFor, lackOfLevel, togetherOf } from "../fit/requests.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import { memberGroups } from "../model/gang.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { ClusterRefusal } from "../model/plan-types.ts";
import { unselected } from "../model/selects.ts";
import type { ClusterFacts } from "../model/snapshot.ts";
import type { SizedAsk } from "../queues/ask-shape.ts";
import type { ClusterBlock } from "../queues/refusals.ts";
import { describeBlocked } from "./blocked-messages.ts";
import { describeNeed } from "./message-parts.ts";

/** The reasons for which a cluster refuses a gang whatever its flavors. */
type ExclusionReason = Exclude<ClusterBlock["reason"], Tried>;
type Tried = "NoSuchFlavor" | "NoSuchLevel" | "TooLarge" | "NoCapacity" | "DomainFull";

/** A registered cluster. */
type Registered = { readonly facts: ClusterFacts; readonly observed: boolean };

type AskedOf = { readonly gang: PlanGang; readonly sized: SizedAsk };

/** Says why clusters refuse gangs, with the capacity that they have now. Gangs with one request get one answer. */
export class ClusterMessages {
  readonly #clusters: Fleet["clusters"];
  readonly #answers = new Map<ClusterBlock, ClusterRefusal>();

  constructor({ clusters }: Pick<Fleet, "clusters">) {
    this.#clusters = clusters;
  }

  refusalOf(asked: AskedOf, block: ClusterBlock): ClusterRefusal {
    const cluster = this.#clusters.get(block.cluster);
    if (cluster === undefined || cluster.facts === null) return goneRefusal(block);
    const { reason } = block;
    const { facts, observed } = cluster;
    if (isTried(reason)) {
      const known = this.#answers.get(block) ?? fitRefusal(asked, block, { cluster, facts });
      this.#answers.set(block, known);
      return known;
    }
    const { gang } = asked;
    const message = isExcludedNoMore(gang, reason, { facts, observed })
      ? UNBARRED[reason]
      : exclusionMessage(gang, reason, facts);
    return { ...mentionOf(facts), reason, message, ...NOT_TRIED };
  }

  /** True if the cluster does not refuse the gang for this reason any more, or is gone. */
  isUsable(asked: AskedOf, block: ClusterBlock): boolean {
    const cluster = this.#clusters.get(block.cluster);
    if (cluster === undefined || cluster.facts === null) return true;
    const { facts, observed } = cluster;
    const { reason } = block;
    if (!isTried(reason)) return isExcludedNoMore(asked.gang, reason, { facts, observed });
    const { need, have } = this.refusalOf(asked, block);
    return have === need && need > 0;
  }
}

/** True if a reason of its own no longer keeps a cluster from taking a gang. */
function isExcludedNoMore(
  { ask, admissions }: PlanGang,
  reason: ExclusionReason,
  { facts, observed }: Registered,
): boolean {
  switch (reason) {
    case "NotSelected":
      return unselected(ask.placement, facts) === null;
    case "Retired":
      return facts.retired !== true;
    case "Cordoned":
      return !facts.cordoned;
    case "CapacityUnknown":
      return observed;
    case "Unreachable":
    case "Unusable":
    case "Returning":
      return facts.reachable;
    case "Draining":
      return admissions.every(({ cluster, goneMs }) => cluster !== facts.name || goneMs !== null);
  }
}

/** The messages for a cluster that such a reason kept away. */
const UNBARRED: Readonly<Record<ExclusionReason, string>> = {
  NotSelected: "the job did not select it before",
  Retired: "it takes gangs again",
  Cordoned: "it is not cordoned any more",
  CapacityUnknown: "its capacity has been observed by now",
  Unreachable: "it can be reached again",
  Unusable: "it can be used again",
  Returning: "nothing that was left there is there any more",
  Draining: "nothing of this job is left there",
};

const TRIED: ReadonlySet<string> = new Set<Tried>([
  "NoSuchFlavor",
  "NoSuchLevel",
  "TooLarge",
  "NoCapacity",
  "DomainFull",
]);

function isTried(reason: ClusterBlock["reason"]): reason is Tried {
  return TRIED.has(reason);
}

const NOT_TRIED = { flavor: null, need: 0, have: 0, blocked: null };

function mentionOf({ name, simulated = false }: ClusterFacts): Pick<ClusterRefusal, "cluster" | "simulated"> {
  return { cluster: name, ...(simulated ? { simulated } : {}) };
}

/** The answer of a cluster that is not registered any more. */
function goneRefusal({ cluster, reason }: ClusterBlock): ClusterRefusal {
  return { cluster, reason, message: "it is not registered any more", ...NOT_TRIED };
}

function exclusionMessage({ ask, admissions }: PlanGang, reason: ExclusionReason, facts: ClusterFacts): string {
  switch (reason) {
    case "NotSelected":
      return unselected(ask.placement, facts) ?? UNBARRED.NotSelected;
    case "Retired":
      return "it is simulated, and takes no gangs since a real cluster is registered";
    case "Cordoned":
      return "it is cordoned";
    case "CapacityUnknown":
      return "its capacity has not been observed yet";
    case "Unreachable":
      return "it cannot be reached";
    case "Returning":
      return facts.restored === true
        ? "the database was restored, and clusters take gangs once each of them is adopted (gangway cluster adopt)"
        : "it has just returned, and what gangs left there is being deleted";
    case "Unusable":
      return "it answers, but this service cannot use it until an operator has seen to it";
    case "Draining": {
      const old = admissions.find(({ cluster, goneMs }) => cluster === facts.name && goneMs === null);
      return `${old === undefined ? "an older admission" : `admission ${old.number}`} of this job has not left it yet`;
    }
  }
}

/** The answer of a cluster that was tried with a choice of flavors. */
function fitRefusal(
  { gang, sized }: AskedOf,
  { reason, choice }: ClusterBlock,
  of: { readonly cluster: ClusterState; readonly facts: ClusterFacts },
): ClusterRefusal {
  const { cluster, facts } = of;
  const [flavor = null] = Object.values(choice);
  const { podCount: need } = sized;
  const tried = { ...mentionOf(facts), reason, flavor, need };
  const { flavorLabels, missingFlavor, apart } = labelsFor(facts, choice, sized);
  if (apart !== null) {
    return { ...tried, message: apartMessage(apart), flavor: missingFlavor, have: 0, blocked: apartPod(apart) };
  }
  if (missingFlavor !== null)
    return { ...tried, message: `it has no ${missingFlavor}`, flavor: missingFlavor, have: 0, blocked: null };
  const lacks = lackOfLevel(sized, cluster, flavorLabels);
  if (lacks !== null) return { ...tried, message: `it has no level ${lacks.name}`, have: 0, blocked: null };
  const groups = groupsOf(sized, cluster, flavorLabels);
  const asked = { groups, together: togetherOf(sized, cluster, flavorLabels) };
  const words = { cluster: clusterName(facts), gang: describeNeed(memberGroups(gang.ask, sized.members), choice) };
  const wished = wishesForDomains(asked) ? domainRefusal(cluster, asked, { ...words, need }) : null;
  if (wished !== null) return { ...tried, ...wished, blocked: null };
  const now = tryAll(cluster.free, groups);
  const ever = reason === "TooLarge" ? tryAll(cluster.empty, groups) : null;
  const tooLarge = ever !== null && !ever.all;
  const free = tooLarge ? cluster.empty : cluster.free;
  const blocked = now.all
    ? null
    : findBlocked({ free, empty: cluster.empty, flavorOf: labelFlavors(choice, flavorLabels) }, groups);
  if (blocked === null) {
    return { ...tried, message: `needs ${words.gang}; all fit now on ${words.cluster}`, have: need, blocked };
  }
  const fit = tooLarge ? ever.placed : now.placed;
  return { ...tried, message: describeBlocked(blocked, { ...words, fit, tooLarge }), have: now.placed, blocked };
}

/** Why the domains of a cluster do not take a gang as it wishes. Null: they take it, or its pods do not fit anyhow. */
function domainRefusal(
  { free, empty }: ClusterState,
  asked: GangPods,
  { gang, cluster, need }: { readonly gang: string; readonly cluster: string; readonly need: number },
): Pick<ClusterRefusal, "message" | "have" | "domain"> | null {
  const isAlone = (of: FreeCapacity) => tryAll(of, asked.groups).all;
  if (fitGang(free, asked) || !isAlone(empty)) return null;
  const isTooLarge = !fitGang(empty, asked);
  if (!isTooLarge && !isAlone(free)) return null;
  const [now, ever] = [nearestDomain(free, asked), nearestDomain(empty, asked)];
  if (now === null || ever === null) return null;
  const { level, domain, slice: sliceSize, takes: fits } = now;
  const message = `needs ${gang} ${domainWords(isTooLarge ? ever : now, isTooLarge)} on ${cluster}`;
  return { message, have: Math.min(fits, need - 1), domain: { level, domain, sliceSize, fits, fitsEmpty: ever.takes } };
}

/** `in one rack; the emptiest, b1/r3, takes 9 now`. */
function domainWords({ level, domain, slice, takes }: NearestDomain, isTooLarge: boolean): string {
  const when = isTooLarge ? "when empty" : "now";
  if (slice !== null) return `in slices of ${slice}, each in one ${level}; ${takes} fit so ${when}`;
  return `in one ${level}; the ${isTooLarge ? "largest" : "emptiest"}, ${domain}, takes ${takes} ${when}`;
}

/** By replica type: the flavor that each label comes from which is demanded of its pods. */
function labelFlavors(choice: FlavorChoice, flavorLabels: FlavorLabels) {
  return (role: string): Readonly<Record<string, string>> => {
    const own = ofRole(choice, role);
    const all = Object.entries(ofRole(flavorLabels, role)).flatMap(([resource, labels]) => {
      return Object.keys(labels).map((key) => [key, own[resource] ?? ""] as const);
    });
    return Object.fromEntries(all);
  };
}

/** Places all pods if it can, and takes them back. */
function tryAll(free: FreeCapacity, groups: readonly FitGroup[]): PlaceResult {
  const [only, ...others] = groups;
  // Pods of one class are placed whenever that is possible, so it is enough to count the places.
  if (only !== undefined && others.length === 0) {
    const placed = free.fitting(only.fit, only.count);
    return { all: placed === only.count, placed };
  }
  const { mark } = free;
  const result = placeAll(free, groups);
  free.undo(mark);
  return result;
}
