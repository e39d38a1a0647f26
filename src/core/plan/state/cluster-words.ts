import { clusterName } from "../../job/cluster-text.ts";
import { describeBlocked } from "../blocked-words.ts";
import { memberGroups } from "../gang.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { ClusterRefusal } from "../plan-types.ts";
import { unselected } from "../selects.ts";
import { describeNeed } from "../words.ts";
import type { SizedAsk } from "./ask-shape.ts";
import type { ClusterRoom } from "./cluster-room.ts";
import type { ClusterFacts, ClusterState } from "./cluster-state.ts";
import { findBlocked } from "./find-blocked.ts";
import { type FitGroup, type PlaceResult, placeAll } from "./place-all.ts";
import type { ClusterBlock } from "./refused.ts";
import { groupsOf, labelsFor } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

/** The reasons for which a cluster refuses a gang whatever its flavors. */
type Barred = Exclude<ClusterBlock["reason"], Tried>;
type Tried = "NoSuchFlavor" | "TooLarge" | "NoCapacity";

/** A registered cluster. */
type Registered = { readonly facts: ClusterFacts; readonly observed: boolean };

type AskedOf = { readonly gang: PlanGang; readonly sized: SizedAsk };

/** Says why clusters refuse gangs, with the room that they have now. Gangs with one request get one answer. */
export class ClusterWords {
  readonly #clusters: Parts["clusters"];
  readonly #answers = new Map<ClusterBlock, ClusterRefusal>();

  constructor({ clusters }: Pick<Parts, "clusters">) {
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
    const message = isUnbarred(gang, reason, { facts, observed }) ? UNBARRED[reason] : barredWords(gang, reason, facts);
    return { ...mentionOf(facts), reason, message, ...NOT_TRIED };
  }

  /** True if the cluster does not refuse the gang for this reason any more, or is gone. */
  isUsable(asked: AskedOf, block: ClusterBlock): boolean {
    const cluster = this.#clusters.get(block.cluster);
    if (cluster === undefined || cluster.facts === null) return true;
    const { facts, observed } = cluster;
    const { reason } = block;
    if (!isTried(reason)) return isUnbarred(asked.gang, reason, { facts, observed });
    const { need, have } = this.refusalOf(asked, block);
    return have === need && need > 0;
  }
}

/** True if a reason of its own no longer keeps a cluster from taking a gang. */
function isUnbarred({ ask, admissions }: PlanGang, reason: Barred, { facts, observed }: Registered): boolean {
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
      return facts.reachable;
    case "Draining":
      return admissions.every(({ cluster, goneMs }) => cluster !== facts.name || goneMs !== null);
  }
}

/** The words for a cluster that such a reason kept away. */
const UNBARRED: Readonly<Record<Barred, string>> = {
  NotSelected: "the job did not select it before",
  Retired: "it takes gangs again",
  Cordoned: "it is not cordoned any more",
  CapacityUnknown: "its capacity has been observed by now",
  Unreachable: "it can be reached again",
  Draining: "nothing of this job is left there",
};

function isTried(reason: ClusterBlock["reason"]): reason is Tried {
  return reason === "NoSuchFlavor" || reason === "TooLarge" || reason === "NoCapacity";
}

const NOT_TRIED = { flavor: null, need: 0, have: 0, blocked: null };

function mentionOf({ name, simulated = false }: ClusterFacts): Pick<ClusterRefusal, "cluster" | "simulated"> {
  return { cluster: name, ...(simulated ? { simulated } : {}) };
}

/** The answer of a cluster that is not registered any more. */
function goneRefusal({ cluster, reason }: ClusterBlock): ClusterRefusal {
  return { cluster, reason, message: "it is not registered any more", ...NOT_TRIED };
}

function barredWords({ ask, admissions }: PlanGang, reason: Barred, facts: ClusterFacts): string {
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
  const { flavorLabels, flavorOf, lacks } = labelsFor(facts, choice);
  if (lacks !== null) return { ...tried, message: `it has no ${lacks}`, flavor: lacks, have: 0, blocked: null };
  const groups = groupsOf(sized, cluster, flavorLabels);
  const words = { cluster: clusterName(facts), gang: describeNeed(memberGroups(gang.ask, sized.members), choice) };
  const now = tryAll(cluster.room, groups);
  const ever = reason === "TooLarge" ? tryAll(cluster.empty, groups) : null;
  const tooLarge = ever !== null && !ever.all;
  const room = tooLarge ? cluster.empty : cluster.room;
  const blocked = now.all ? null : findBlocked({ room, empty: cluster.empty, flavorOf }, groups);
  if (blocked === null) {
    return { ...tried, message: `needs ${words.gang}; all fit now on ${words.cluster}`, have: need, blocked };
  }
  const fit = tooLarge ? ever.placed : now.placed;
  return { ...tried, message: describeBlocked(blocked, { ...words, fit, tooLarge }), have: now.placed, blocked };
}

/** Places all pods if it can, and takes them back. */
function tryAll(room: ClusterRoom, groups: readonly FitGroup[]): PlaceResult {
  const [only, ...others] = groups;
  // Pods of one class are placed whenever that is possible, so it is enough to count the places.
  if (only !== undefined && others.length === 0) {
    const placed = room.fitting(only.fit, only.count);
    return { all: placed === only.count, placed };
  }
  const { mark } = room;
  const result = placeAll(room, groups);
  room.undo(mark);
  return result;
}
