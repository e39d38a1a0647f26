import { type FlavorLabels, ofRole } from "../../job/flavor-labels.ts";
import { liveAdmission } from "../../job/job.ts";
import { OTHER_NODES_MAX, type PlannedRun, placesIn } from "../../job/placement/placement.ts";
import { memberOf } from "../../job/roles.ts";
import { placeIn } from "../assign/planned-admission.ts";
import { type ClusterState, membersUnder } from "../capacity/cluster-state.ts";
import { type Bound, slotsWithin } from "../capacity/domain-bounds.ts";
import type { UnseenPod } from "../capacity/unseen-pods.ts";
import { boundsOf } from "../domains/wish.ts";
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
  const boundsFor = boundsByRole(facts, cluster, labels);
  const runs = asked.members.flatMap((key): readonly PlannedRun[] => {
    const { role, index } = memberOf(key);
    const podClass = groups.find((group) => group.role === role)?.podClass;
    const place = places(role, index);
    if (podClass === undefined || place === null) return [];
    const refused = new Set([place.node, ...place.others]);
    const fit = cluster.free.fits.of(podClass, ofRole(labels, role));
    const { mark } = cluster.free;
    takeOff(cluster, unseen, { role, node: place.node });
    const slots = slotsWithin(cluster.free, place.node, boundsFor(role));
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

/** The levels of which a member of each replica type of a gang must not leave its domain. */
function boundsByRole({ ask }: PlanGang, cluster: ClusterState, labels: FlavorLabels) {
  const all = sizedAsk(ask, Object.fromEntries(ask.roles.map(({ role, replicas }) => [role, replicas])));
  const groups = groupsOf(all, cluster, labels);
  const together = togetherOf(all, cluster, labels);
  return (role: string): readonly Bound[] => {
    const group = groups.find(({ roles }) => roles.some((one) => one.role === role));
    return group === undefined ? [] : boundsOf(together, group.fit, group.wish);
  };
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
