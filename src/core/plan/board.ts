import type { Job } from "../job/job.ts";
import { currentAdmission } from "../job/job.ts";
import { firstMembers, memberCount } from "../job/roles.ts";
import { isTerminal } from "../job/status.ts";
import { type Berth, barred, chooseCluster } from "./choose-cluster.ts";
import { placeAll } from "./fit-all.ts";
import { type FlavorChoice, flavorChoices, flavoredAmounts } from "./flavors.ts";
import { addedMembers, allMembers, memberGroups, podCount } from "./gang.ts";
import type { PlannedAdmission, Refusal } from "./plan-types.ts";
import { type QuotaBook, queueOf } from "./quota-book.ts";
import { type Findings, refuse, refuseFor } from "./refuse.ts";
import type { Room } from "./rooms.ts";
import type { PlanQueue } from "./snapshot.ts";

type Members = Readonly<Record<string, number>>;
type Amounts = Readonly<Record<string, number>>;

/** What a plan has given away so far; deciding about a gang changes it only if the gang boards. */
export type Desk = {
  readonly book: QuotaBook;
  readonly rooms: Map<string, Room>;
  readonly resources: readonly string[];
  readonly lastAdmissions: Readonly<Record<string, number>>;
  readonly nowMs: number;
};

/** Admits a waiting gang with all its members, else with the fewest that it accepts, or says why neither can board now. */
export function board(job: Job, desk: Desk): PlannedAdmission | Refusal {
  const queue = desk.book.queue(queueOf(job));
  if (queue === undefined) {
    return refuse(job, { reason: "UnknownQueue", message: `there is no queue ${queueOf(job)}` });
  }
  const backoff = job.status.backoff;
  if (backoff !== null && backoff.notBeforeMs > desk.nowMs) {
    const until = new Date(backoff.notBeforeMs).toISOString();
    const message = `its admission to ${backoff.lastCluster} was undone; it may board again at ${until}`;
    return refuse(job, { reason: "Backoff", message, retryAtMs: backoff.notBeforeMs });
  }
  const leaving = job.admissions.find((old) => old.state !== "live" && old.tokensReleasedMs === null);
  if (leaving !== undefined) {
    const message = `pods of its admission ${leaving.number} still run on ${leaving.cluster}`;
    return refuse(job, { reason: "Draining", message });
  }
  const all = allMembers(job.spec);
  const fewest = firstMembers(job.spec, job.spec.runPolicy.schedulingPolicy.minAvailable);
  const first = tryMembers(job, queue, { members: all, desk });
  if (!isFindings(first)) return first;
  if (memberCount(fewest) >= memberCount(all)) return refuseFor(job, first);
  const second = tryMembers(job, queue, { members: fewest, desk });
  return isFindings(second) ? refuseFor(job, second) : second;
}

/** Lets an admission that has fewer members than its job grow to all of them in one step, where it runs; null if it cannot now. */
export function grow(job: Job, desk: Desk): PlannedAdmission | null {
  const admission = currentAdmission(job);
  const queue = desk.book.queue(queueOf(job));
  const room = desk.rooms.get(admission?.cluster ?? "");
  if (admission === null || queue === undefined || room === undefined || !mayGrow(job)) return null;
  if (room.cluster.cordoned || !room.cluster.reachable || room.shapes === null) return null;
  const members = allMembers(job.spec);
  const groups = memberGroups(job.spec, addedMembers(admission.members, members));
  const amounts = flavoredAmounts(groups, desk.resources);
  const refused = Object.entries(amounts).some(([resource, need]) => {
    const quota = queue.quotas.find((known) => known.flavor === admission.flavors[resource]);
    return quota === undefined || desk.book.refusal(queue.name, quota, need) !== null;
  });
  if (refused) return null;
  const placement = placeAll(room.shapes, groups, admission.nodeLabels);
  if (placement.placed < podCount(groups)) return null;
  const berth = { room, left: placement.left, nodeLabels: admission.nodeLabels };
  const number = admission.number;
  return take(job, { kind: "grow", number, members, choice: admission.flavors, amounts, berth }, desk);
}

/** True for a live admission that has fewer members than its job and that nobody is ending. */
export function mayGrow(job: Job): boolean {
  const admission = currentAdmission(job);
  if (admission === null || admission.state !== "live" || isTerminal(job.status)) return false;
  if (job.cancel !== null || job.deleteTimeMs !== null) return false;
  return memberCount(admission.members) < memberCount(allMembers(job.spec));
}

function tryMembers(
  job: Job,
  queue: PlanQueue,
  wanted: { readonly members: Members; readonly desk: Desk },
): PlannedAdmission | Findings {
  const { members, desk } = wanted;
  const groups = memberGroups(job.spec, members);
  const amounts = flavoredAmounts(groups, desk.resources);
  // Members that come later get the same flavors, so these are chosen for the whole gang at once.
  const later = flavoredAmounts(memberGroups(job.spec, allMembers(job.spec)), desk.resources);
  const asked = Object.fromEntries(Object.keys(later).map((resource) => [resource, amounts[resource] ?? 0]));
  const { choices, refusals: quotas } = flavorChoices(job, queue, { amounts: asked, book: desk.book });
  const looked = [...desk.rooms.values()].map((room) => ({ room, bar: barred(job, room.cluster) }));
  const rooms = looked.flatMap(({ room, bar }) => (bar === null ? [room] : []));
  const clusters = looked.flatMap(({ bar }) => (bar === null ? [] : [bar]));
  for (const choice of choices) {
    const { berth, refusals } = chooseCluster(job, groups, { rooms, choice });
    if (berth !== null) {
      return take(job, { kind: "admit", number: nextNumber(job, desk), members, choice, amounts, berth }, desk);
    }
    clusters.push(...refusals);
  }
  return { quotas, clusters, stoppedByQuota: choices.length === 0 };
}

/** Numbers are never used twice: what carries an older one is cleaned up, never adopted. */
function nextNumber(job: Job, desk: Desk): number {
  return Math.max(desk.lastAdmissions[job.uid] ?? 0, ...job.admissions.map((admission) => admission.number)) + 1;
}

/** Books the room and the quota of a gang that boards or grows. */
function take(
  job: Job,
  boarding: {
    readonly kind: "admit" | "grow";
    readonly number: number;
    readonly members: Members;
    readonly choice: FlavorChoice;
    readonly amounts: Amounts;
    readonly berth: Berth;
  },
  desk: Desk,
): PlannedAdmission {
  const { kind, number, members, choice, amounts, berth } = boarding;
  const { room, left, nodeLabels } = berth;
  const byPool = new Map<string, number>();
  for (const [resource, amount] of Object.entries(amounts)) {
    const pool = choice[resource] ?? "";
    byPool.set(pool, (byPool.get(pool) ?? 0) + amount);
  }
  for (const [pool, amount] of byPool) desk.book.charge(job, pool, amount);
  desk.rooms.set(room.cluster.name, { ...room, shapes: left, planned: room.planned + 1, refused: new Map() });
  const { namespace, project } = job;
  return {
    kind,
    jobUid: job.uid,
    jobVersion: job.version,
    admission: number,
    cluster: room.cluster.name,
    admissionCounter: room.cluster.admissionCounter + room.planned,
    members,
    flavors: choice,
    nodeLabels,
    lines: [...byPool].map(([pool, amount]) => ({ pool, amount, project, namespace, queue: queueOf(job) })),
  };
}

function isFindings(tried: PlannedAdmission | Findings): tried is Findings {
  return "stoppedByQuota" in tried;
}
