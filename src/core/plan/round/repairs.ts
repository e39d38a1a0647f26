import { type FlavorLabels, ofRole } from "../../job/flavor-labels.ts";
import { liveAdmission } from "../../job/job.ts";
import { OTHER_NODES_MAX, type PlannedRun, placesIn } from "../../job/placement/placement.ts";
import { memberOf } from "../../job/roles.ts";
import { placeIn } from "../assign/planned-admission.ts";
import { type ClusterState, membersUnder } from "../capacity/cluster-state.ts";
import { NO_LEAF } from "../capacity/domain-tree.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import type { UnseenPod } from "../capacity/unseen-pods.ts";
import { boundLevel } from "../domains/wish.ts";
import type { Fleet } from "../fit/fleet.ts";
import { groupsOf, togetherOf } from "../fit/requests.ts";
import { type PlanGang, repairOf } from "../model/plan-gang.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import { sizedAsk } from "../queues/ask-shape.ts";
import { leaves } from "../queues/gang-class.ts";
import { compareGangs } from "../queues/order.ts";
import type { GangRecord } from "../queues/records.ts";

/**
 * Plans members on other nodes whose pods the scheduler has refused on theirs, as far as there are such nodes. They
 * need no tokens and preempt nobody. They come before all other gangs: their own holds everything else already.
 */
export function planRepairs(fleet: Fleet): readonly PlannedAdmission[] {
  return [...fleet.queues.offPlan].sort(compareGangs).flatMap((gang) => repaired(fleet, gang));
}

function repaired(fleet: Fleet, { facts }: GangRecord): readonly PlannedAdmission[] {
  const live = liveAdmission(facts);
  const cluster = fleet.clusters.get(live?.cluster ?? "");
  const asked = live === null ? null : repairOf(live);
  if (live === null || asked === null || cluster === undefined || !takesRepairs(cluster)) return [];
  if (leaves(facts) || facts.setAside !== undefined) return [];
  const { groups, labels } = membersUnder(facts, live);
  const unseen = [...cluster.unseenPodsOf(facts.uid)];
  const places = placesIn(live.placement ?? null);
  const runs = asked.members.flatMap((key): readonly PlannedRun[] => {
    const { role, index } = memberOf(key);
    const podClass = groups.find((group) => group.role === role)?.podClass;
    const place = places(role, index);
    if (podClass === undefined || place === null) return [];
    const refused = new Set([place.node, ...place.others]);
    const fit = cluster.free.fits.of(podClass, ofRole(labels, role));
    const { mark } = cluster.free;
    takeOff(cluster, unseen, { role, node: place.node });
    const slots = slotsNear(cluster.free, fit, { node: place.node, level: boundOf(facts, { cluster, labels, role }) });
    const first = () => cluster.free.firstFor(fit, refused.size + OTHER_NODES_MAX + 1);
    const near = slots === null ? first() : cluster.free.within(slots, first);
    const [node, ...others] = near.filter((name) => !refused.has(name));
    if (node === undefined) {
      cluster.free.undo(mark);
      return [];
    }
    cluster.free.placeOn(node, fit, 1);
    return [{ role, first: index, count: 1, node, others: others.slice(0, OTHER_NODES_MAX) }];
  });
  if (runs.length === 0) return [];
  const { uid, askHash, generation } = facts;
  const { members, flavors, flavorLabels, number: admission } = live;
  const where = placeIn(cluster);
  cluster.planned += 1;
  const of = { jobUid: uid, askHash, generation, admission, members, flavors, flavorLabels, allocations: [] };
  return [{ kind: "repair", ...of, ...where, runs, repairs: asked.version }];
}

/** The level of which a member of a gang must not leave its domain. Null: it may go anywhere. */
function boundOf(
  { ask }: PlanGang,
  of: { readonly cluster: ClusterState; readonly labels: FlavorLabels; readonly role: string },
): number | null {
  const all = sizedAsk(ask, Object.fromEntries(ask.roles.map(({ role, replicas }) => [role, replicas])));
  const own = groupsOf(all, of.cluster, of.labels).find(({ roles }) => roles.some(({ role }) => role === of.role));
  return boundLevel(togetherOf(all, of.cluster, of.labels), own?.wish);
}

/** The slots in the domain of a node. Null: all. None if it is not known where the node is, because it is gone. */
function slotsNear(
  free: FreeCapacity,
  fit: FitClass,
  { node, level }: { readonly node: string; readonly level: number | null },
): readonly number[] | null {
  if (level === null) return null;
  const tree = free.domainsFor(fit)?.tree;
  const leaf = tree?.leafAt[free.slotOf(node) ?? -1] ?? NO_LEAF;
  return tree === undefined || leaf < 0 ? [] : tree.slotsUnder(tree.above(leaf, level));
}

/** Gangs get other nodes where they may also grow. */
function takesRepairs({ facts }: ClusterState): boolean {
  return facts?.reachable === true && !facts.cordoned && facts.retired !== true;
}

/**
 * Takes the pod of a member off the capacity: the one on its planned node, or else the last of its type, since those
 * that their planned nodes do not take come last.
 */
function takeOff(
  { free }: ClusterState,
  unseen: UnseenPod[],
  { role, node }: { readonly role: string; readonly node: string },
): void {
  const onPlan = unseen.findIndex((pod) => pod.role === role && pod.node === node);
  const at = onPlan >= 0 ? onPlan : unseen.findLastIndex((pod) => pod.role === role);
  const [pod] = at < 0 ? [] : unseen.splice(at, 1);
  if (pod !== undefined) free.shift(pod.node, pod.fit, -1);
}
