import { awaitsResult } from "../job/cached.ts";
import { specNow } from "../job/interruptible.ts";
import type { Job } from "../job/job.ts";
import { currentAdmission } from "../job/job.ts";
import { firstMembers, memberCount, memberOrder } from "../job/roles.ts";
import { isTerminal } from "../job/status.ts";
import { isService } from "../kinds/kind.ts";
import { kindOf } from "../kinds/registry.ts";
import { type Berth, barred, chooseCluster } from "./choose-cluster.ts";
import { placeAll } from "./fit-all.ts";
import { type FlavorChoice, flavorChoices, flavoredAmounts } from "./flavors.ts";
import { addedMembers, allMembers, type MemberGroup, memberGroups, podCount } from "./gang.ts";
import type { PlannedAdmission, Refusal } from "./plan-types.ts";
import { type QuotaBook, queueOf } from "./quota-book.ts";
import { type Findings, lineWords, refuse, refuseFor } from "./refuse.ts";
import type { Room } from "./rooms.ts";
import type { PlanQueue } from "./snapshot.ts";

type Members = Readonly<Record<string, number>>;
type Amounts = Readonly<Record<string, number>>;

/** A gang that cannot board now. */
export type Refused = {
  readonly refusal: Refusal;
  /** How it would board if its pools had room: it has a cluster, and lacks nothing else. Null too where another stands in the line. */
  readonly inLine: PlannedAdmission | null;
};

/** What a plan has given away so far; deciding about a gang changes it only if the gang boards. */
export type Desk = {
  readonly book: QuotaBook;
  readonly rooms: Map<string, Room>;
  readonly resources: readonly string[];
  readonly lastAdmissions: Readonly<Record<string, number>>;
  readonly nowMs: number;
};

/** Admits a waiting gang with all its members, else with the fewest that it accepts, or says why neither can board now. */
export function board(job: Job, desk: Desk): PlannedAdmission | Refused {
  const queue = desk.book.queue(queueOf(job));
  if (queue === undefined) {
    const message = `there is no queue ${queueOf(job)}`;
    return { refusal: refuse(job, { reason: "UnknownQueue", message }), inLine: null };
  }
  const waits = ownReason(job, desk.nowMs);
  if (waits !== null) return { refusal: waits, inLine: null };
  if (isService(kindOf(job.spec.kind))) return boardService(job, desk);
  const all = allMembers(job.spec);
  const fewest = firstMembers(job.spec, job.spec.runPolicy.schedulingPolicy.minAvailable);
  const first = tryMembers(job, queue, { members: all, desk });
  if (!isFindings(first)) return first;
  const second = memberCount(fewest) < memberCount(all) ? tryMembers(job, queue, { members: fewest, desk }) : first;
  if (!isFindings(second)) return second;
  const inLine = second.stoppedByQuota ? inLineFor(job, second, desk) : null;
  const refusal = refuseFor(job, second);
  if (inLine === null) return { refusal, inLine };
  const message = refusal.message + lineWords(inLine.lines.map(({ pool }) => pool));
  return { refusal: { ...refusal, message }, inLine };
}

/** What the gang waits for that nobody else could take from it; null if there is nothing of the kind. */
function ownReason(job: Job, nowMs: number): Refusal | null {
  if (job.spec.runPolicy.suspend === true) {
    return refuse(job, { reason: "Suspended", message: "it is suspended" });
  }
  if (awaitsResult(job)) {
    const message =
      job.status.waiting?.reason === "WaitingForCache" ? job.status.waiting.message : "earlier results are looked for";
    return refuse(job, { reason: "WaitingForCache", message });
  }
  const backoff = job.status.backoff;
  if (backoff !== null && backoff.notBeforeMs > nowMs) {
    const until = new Date(backoff.notBeforeMs).toISOString();
    const message = `its admission to ${backoff.lastCluster} was undone; it may board again at ${until}`;
    return refuse(job, { reason: "Backoff", message, retryAtMs: backoff.notBeforeMs });
  }
  const leaving = job.admissions.find((old) => old.state !== "live" && old.tokensReleasedMs === null);
  if (leaving !== undefined) {
    const message = `pods of its admission ${leaving.number} still run on ${leaving.cluster || "its service"}`;
    return refuse(job, { reason: "Draining", message });
  }
  return null;
}

/** A job without pods needs no room in any cluster: it boards when its turn in the queue comes, and its plugin takes what tokens it needs. */
function boardService(job: Job, desk: Desk): PlannedAdmission {
  return {
    kind: "admit",
    jobUid: job.uid,
    jobVersion: job.version,
    admission: nextNumber(job, desk),
    cluster: "",
    admissionCounter: 0,
    members: {},
    flavors: {},
    nodeLabels: {},
    lines: [],
  };
}

/**
 * Lets an admission that has fewer members than its job grow where it runs: to all of them in one step, or of an elastic kind by as many as there
 * is room for. Null if it cannot now.
 */
export function grow(job: Job, desk: Desk): PlannedAdmission | null {
  if (!mayGrow(job)) return null;
  const admission = currentAdmission(job);
  const now = admission?.members ?? {};
  const all = memberMax(now, allMembers(job.spec));
  const whole = growTo(job, all, desk);
  if (whole !== null || !isElastic(job)) return whole;
  // The most that fits: what fits for a number fits for every smaller one.
  let [fits, tooMany] = [0, memberCount(all) - memberCount(now)];
  let best: Members | null = null;
  while (tooMany - fits > 1) {
    const count = Math.floor((fits + tooMany) / 2);
    const members = growBy(job, now, count);
    if (canGrowTo(job, members, desk) === null) tooMany = count;
    else [fits, best] = [count, members];
  }
  return best === null ? null : growTo(job, best, desk);
}

/** True for a job whose gang may grow step by step. */
export function isElastic(job: Job): boolean {
  return (kindOf(job.spec.kind)?.elasticRoles?.(job.spec) ?? []).length > 0;
}

/** The members that a gang has and so many more, in the order in which members are admitted. */
function growBy(job: Job, now: Members, count: number): Members {
  const members: Record<string, number> = { ...now };
  let left = count;
  for (const role of memberOrder(job.spec)) {
    const more = Math.min(left, Math.max(0, (job.spec.replicaSpecs[role]?.replicas ?? 0) - (members[role] ?? 0)));
    members[role] = (members[role] ?? 0) + more;
    left -= more;
  }
  return members;
}

function memberMax(a: Members, b: Members): Members {
  const roles = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(roles.map((role) => [role, Math.max(a[role] ?? 0, b[role] ?? 0)]));
}

function growTo(job: Job, members: Members, desk: Desk): PlannedAdmission | null {
  const boarding = canGrowTo(job, members, desk);
  return boarding === null ? null : take(job, boarding, desk);
}

/** What growing to these members takes; null if there is no room for it now. */
function canGrowTo(job: Job, members: Members, desk: Desk): Boarding | null {
  const admission = currentAdmission(job);
  const queue = desk.book.queue(queueOf(job));
  const room = desk.rooms.get(admission?.cluster ?? "");
  if (admission === null || queue === undefined || room === undefined) return null;
  if (room.cluster.cordoned || !room.cluster.reachable || room.shapes === null) return null;
  const groups = memberGroups(specNow(job), addedMembers(admission.members, members));
  const amounts = flavoredAmounts(groups, desk.resources);
  const refused = Object.entries(amounts).some(([resource, need]) => {
    const quota = queue.quotas.find((known) => known.flavor === admission.flavors[resource]);
    return quota === undefined || desk.book.refusals(job, quota.flavor, need).length > 0;
  });
  if (refused) return null;
  const placement = placeAll(room.shapes, groups, admission.nodeLabels);
  if (placement.placed < podCount(groups)) return null;
  const berth = { room, left: placement.left, nodeLabels: admission.nodeLabels };
  const number = admission.number;
  return { kind: "grow", number, members, choice: admission.flavors, amounts, berth };
}

/** True for a live admission that has fewer members than its job and that nobody is ending. */
export function mayGrow(job: Job): boolean {
  const admission = currentAdmission(job);
  if (admission === null || admission.state !== "live" || isTerminal(job.status)) return false;
  if (job.cancel !== null || job.deleteTimeMs !== null || job.spec.runPolicy.suspend === true) return false;
  return Object.entries(allMembers(job.spec)).some(([role, count]) => count > (admission.members[role] ?? 0));
}

function tryMembers(
  job: Job,
  queue: PlanQueue,
  wanted: { readonly members: Members; readonly desk: Desk },
): PlannedAdmission | Tried {
  const { members, desk } = wanted;
  const groups = memberGroups(specNow(job), members);
  const amounts = flavoredAmounts(groups, desk.resources);
  // Members that come later get the same flavors, so these are chosen for the whole gang at once.
  const later = flavoredAmounts(memberGroups(specNow(job), allMembers(job.spec)), desk.resources);
  const asked = Object.fromEntries(Object.keys(later).map((resource) => [resource, amounts[resource] ?? 0]));
  const { choices, inLine, refusals: quotas } = flavorChoices(job, queue, { amounts: asked, book: desk.book });
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
  return { quotas, clusters, stoppedByQuota: choices.length === 0, asked: { members, groups, amounts, inLine, rooms } };
}

/** Findings, with what is needed to look further. */
type Tried = Findings & {
  readonly asked: {
    readonly members: Members;
    readonly groups: readonly MemberGroup[];
    readonly amounts: Amounts;
    /** The flavors that would do if pools had room. */
    readonly inLine: readonly FlavorChoice[];
    readonly rooms: readonly Room[];
  };
};

/** How a gang that waits for tokens of pools alone would board; null if no cluster has room for it, or another stands in the line. */
function inLineFor(job: Job, { asked }: Tried, desk: Desk): PlannedAdmission | null {
  if (desk.book.hasReserved) return null;
  const { members, groups, amounts, inLine, rooms } = asked;
  for (const choice of inLine) {
    const { berth } = chooseCluster(job, groups, { rooms, choice });
    if (berth === null) continue;
    return planned(job, { kind: "admit", number: nextNumber(job, desk), members, choice, amounts, berth });
  }
  return null;
}

/** Numbers are never used twice: what carries an older one is cleaned up, never adopted. */
function nextNumber(job: Job, desk: Desk): number {
  return Math.max(desk.lastAdmissions[job.uid] ?? 0, ...job.admissions.map((admission) => admission.number)) + 1;
}

type Boarding = {
  readonly kind: "admit" | "grow";
  readonly number: number;
  readonly members: Members;
  readonly choice: FlavorChoice;
  readonly amounts: Amounts;
  readonly berth: Berth;
};

/** Books the room and the quota of a gang that boards or grows. */
function take(job: Job, boarding: Boarding, desk: Desk): PlannedAdmission {
  const { room, left } = boarding.berth;
  const made = planned(job, boarding);
  for (const { pool, amount } of made.lines) desk.book.charge(job, pool, amount);
  desk.rooms.set(room.cluster.name, { ...room, shapes: left, planned: room.planned + 1, refused: new Map() });
  return made;
}

function planned(job: Job, boarding: Boarding): PlannedAdmission {
  const { kind, number, members, choice, amounts, berth } = boarding;
  const { room, nodeLabels } = berth;
  const byPool = new Map<string, number>();
  for (const [resource, amount] of Object.entries(amounts)) {
    const pool = choice[resource] ?? "";
    byPool.set(pool, (byPool.get(pool) ?? 0) + amount);
  }
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

function isFindings(tried: PlannedAdmission | Tried): tried is Tried {
  return "stoppedByQuota" in tried;
}
