import { compareText } from "../../../runtime/compare-text.ts";
import { drainingAdmission } from "../../job/job.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { PlaceInLine, PlannedAdmission, PlannedEviction } from "../plan-types.ts";
import type { PlannedPreemption } from "../preemption.ts";
import { chargeRest, riseOfBooked } from "./booked.ts";
import { Cycles, type RoundResult } from "./cycles.ts";
import { compareEntries } from "./entry-order.ts";
import { evictionsOf } from "./evictions.ts";
import type { FleetParts } from "./fleet-parts.ts";
import { type Entry, headOf, type Lane, type Line, waitingIn } from "./gang-lines.ts";
import { Heap } from "./heap.ts";
import { setLifted } from "./kept-room.ts";
import { compareAged, noteSteps } from "./line-ageing.ts";
import { type AmountInLine, type Cause, causeKey, type RefusedGang } from "./refused.ts";
import type { RoundBounds } from "./round-bounds.ts";

/** The decisions of a round. */
export type FleetPlan = {
  readonly admissions: readonly PlannedAdmission[];
  /** The first gang in the plan's order that has a cluster and waits for tokens of pools alone. Null: none does. */
  readonly inLine: PlaceInLine | null;
  /** The running gangs whose queue no longer wants them. */
  readonly evictions: readonly PlannedEviction[];
  /** The waiting gangs for which others are to give way. */
  readonly preemptions: readonly PlannedPreemption[];
  /** The jobs whose nomination ends without an admission. None of them is nominated anew. */
  readonly withdrawn: readonly string[];
  /** The gangs whose cause is another one than a round has said before. */
  readonly refused: readonly RefusedGang[];
  /** When to plan again without a change. Null: only after a change. */
  readonly replanAtMs: number | null;
  /** True if the bound ended the round: the next one has more to plan at once. */
  readonly more: boolean;
};

export type ReadRound = (plan: FleetPlan, parts: FleetParts) => void;

type RoundOf = {
  readonly nowMs: number;
  readonly number: number;
  readonly bounds: RoundBounds;
  /** True: the round says no cause, and leaves every gang that it refuses to the next one. */
  readonly isPreview?: boolean;
};

/** Runs one round, and gives back the room and the quota that it took. */
export function runRound(parts: FleetParts, of: RoundOf, read: ReadRound = () => undefined): FleetPlan {
  parts.sync(of.nowMs);
  const { quota } = parts;
  const { reserved } = quota;
  quota.reserved = null;
  parts.dischargeHolds();
  const undoRooms = parts.markRooms();
  const round = new Cycles(parts, of, of.bounds);
  const result = round.run();
  const { admissions, inLine, preemptions, withdrawn, refused: lanes, more, recheckAtMs, reserveAtMs } = result;
  parts.noteRecheck(recheckAtMs);
  parts.noteGiven(admissions.length + preemptions.length + withdrawn.length > 0);
  if (of.isPreview !== true) parts.lines.noteInLine(inLine?.planned.jobUid ?? null);
  const said = of.isPreview === true ? NOTHING_SAID : newCauses(parts, { nowMs: of.nowMs, lanes, bounds: of.bounds });
  const evictions = evictionsOf(parts);
  // A gang that takes over tokens boards in the next round.
  const boardsNext = preemptions.some(({ takesOver }) => takesOver !== undefined);
  const left = { replanAtMs: replanAt(parts, of.nowMs, reserveAtMs), more: more || said.more || boardsNext };
  const plan = { admissions, inLine, evictions, preemptions, withdrawn, refused: said.refused, ...left };
  // Words tell what is in use, not what is kept.
  for (const kept of parts.kept) setLifted(parts, kept, true);
  countInUse(parts, result);
  read(plan, parts);
  round.end();
  parts.kept.length = 0;
  parts.booked = [];
  if (of.isPreview === true) {
    quota.reserved = reserved;
    for (const lane of lanes) parts.lines.lookAgain(lane);
  }
  undoRooms();
  quota.undo(0);
  return plan;
}

/**
 * Lets the quotas count what the ledger does, with the round's admissions: what nominees hold, not what they still
 * lack. Their victims use that until they have left.
 */
function countInUse(parts: FleetParts, { admissions, booked }: Pick<RoundResult, "admissions" | "booked">): void {
  const { quota, lines } = parts;
  quota.undo(0);
  for (const { jobUid, allocations } of admissions) {
    const entry = lines.entries.get(jobUid);
    for (const { pool, amount } of allocations) if (entry !== undefined) chargeRest(parts, entry, pool, amount);
  }
  parts.booked = riseOfBooked(parts, booked);
}

/** The causes that a round tells. `more`: the bound left some to the next round. */
type Said = { readonly refused: readonly RefusedGang[]; readonly more: boolean };

const NOTHING_SAID: Said = { refused: [], more: false };

/** Says the causes that are new: of the lanes that were refused, of new gangs, and behind a new head. */
function newCauses(
  parts: FleetParts,
  of: { readonly nowMs: number; readonly lanes: readonly Lane[]; readonly bounds: RoundBounds },
): Said {
  const { fresh } = parts.lines;
  const { refusalsMax = Number.POSITIVE_INFINITY } = of.bounds;
  const refused: RefusedGang[] = [];
  const say = (entry: Entry): void => {
    const isFull = refused.length >= refusalsMax;
    if (isFull) fresh.add(entry);
    const cause = isFull ? null : causeOf(parts, entry, of.nowMs);
    if (cause === null) return;
    fresh.delete(entry);
    const key = causeKey(cause);
    if (entry.said === key) return;
    entry.said = key;
    refused.push({ gang: entry.gang, cause });
  };
  for (const { entries } of of.lanes.filter(isNewCause)) entries.forEach(say);
  // The order must not depend on that of the changes.
  for (const line of parts.lines.byName) {
    if (isNewHead(line, of.nowMs)) waitingIn(line).sort(compareEntries).forEach(say);
  }
  const untold = new Heap([...fresh], comesBefore);
  while (untold.size > 0 && refused.length < refusalsMax) say(untold.pop() as Entry);
  return { refused, more: untold.size > 0 };
}

function comesBefore(a: Entry, b: Entry): boolean {
  return (compareText(a.line.name, b.line.name) || compareEntries(a, b)) < 0;
}

/** True if a lane was refused for another cause than its gangs were told of last. */
function isNewCause(lane: Lane): boolean {
  const key = causeKey(lane.refusal === null ? UNKNOWN_QUEUE : { kind: "lacks", refusal: lane.refusal, inLine: [] });
  const isNew = lane.said !== key;
  lane.said = key;
  return isNew;
}

/** True if the gangs of a strict queue stand behind another head than they were told of last. */
function isNewHead(line: Line, nowMs: number): boolean {
  const head = headIn(line, nowMs)?.gang.uid;
  if (head === undefined || head === line.saidHead) return false;
  line.saidHead = head;
  return true;
}

/** Why a gang waits whose queue runs as many jobs as it may. */
function causeInFull(entry: Entry, queue: string, nowMs: number): Cause | null {
  if (entry.lane === null) return ownCause(entry.gang, nowMs);
  return isAdmitted(entry.lane, entry) ? null : { kind: "queueFull", queue };
}

/** Why a gang waits whose namespace or project runs as many jobs as it may. */
function causeInFullTenant(lane: Lane, entry: Entry, { kind, name }: TenantName): Cause | null {
  return isAdmitted(lane, entry) ? null : { kind: "tenantFull", tenant: { kind, name } };
}

/** True if the round has admitted a gang of a lane. */
function isAdmitted(lane: Lane, entry: Entry): boolean {
  const first = headOf(lane);
  return first === undefined || compareEntries(entry, first) < 0;
}

/** The gang of a strict queue behind which the others wait. Undefined: none. */
function headIn({ head, reserved }: Line, nowMs: number): Entry | undefined {
  const refused = head === null ? undefined : headOf(head);
  if (reserved === null) return refused;
  return refused === undefined || compareAged(reserved, refused, nowMs) < 0 ? reserved : refused;
}

const UNKNOWN_QUEUE: Cause = { kind: "unknownQueue" };

/** Why a gang waits. Null: it does not, or no round has looked at it yet. */
export function causeOf({ quota }: Pick<FleetParts, "quota">, entry: Entry, nowMs: number): Cause | null {
  const { line, lane } = entry;
  if (!quota.queues.has(line.name)) return UNKNOWN_QUEUE;
  if (line.stop !== null) return { kind: "queueStopped", stop: line.stop };
  if (line.full !== null) return causeInFull(entry, line.full, nowMs);
  if (lane !== null && lane.full !== null) return causeInFullTenant(lane, entry, lane.full);
  const head = headIn(line, nowMs);
  const isPassed = entry.gang.nomination !== undefined;
  if (head !== undefined && !isPassed && compareAged(head, entry, nowMs) < 0)
    return { kind: "behindHead", head: head.gang };
  if (lane === null) return ownCause(entry.gang, nowMs);
  if (lane.awake || isAdmitted(lane, entry) || lane.refusal === null) return null;
  return { kind: "lacks", refusal: lane.refusal, inLine: lineOf(quota, entry) };
}

/** The pools in whose waiting lines a gang is. */
function lineOf({ reserved }: Pick<FleetParts["quota"], "reserved">, { gang }: Entry): readonly AmountInLine[] {
  if (reserved?.jobUid !== gang.uid) return [];
  return [...reserved.amounts].map(([pool, amount]) => ({ pool, amount }));
}

function causeOfNominee({ nomination }: PlanGang): Cause | null {
  return nomination === undefined ? null : { kind: "preempting", nomination };
}

/** Why a gang waits although others can take nothing from it. */
function ownCause(gang: PlanGang, nowMs: number): Cause | null {
  if (gang.suspended) return { kind: "suspended" };
  if (gang.awaitsResult !== null) return { kind: "awaitsResult" };
  if (gang.backoff !== null && gang.backoff.notBeforeMs > nowMs) {
    return { kind: "backoff", untilMs: gang.backoff.notBeforeMs };
  }
  return drainingAdmission(gang) === null ? causeOfNominee(gang) : { kind: "draining" };
}

/**
 * The first time at which a gang that backs off may be admitted, one that is protected may be preempted, or one that
 * ages may pass another, or one that waits may get a reservation.
 */
function replanAt(parts: FleetParts, nowMs: number, reserveAtMs: number): number | null {
  const atMs = Math.min(parts.recheckAtMs, reserveAtMs, noteSteps(parts.lines.lines.values(), nowMs));
  let least = Number.isFinite(atMs) ? atMs : null;
  for (const entry of parts.lines.timed) {
    const cause = causeOf(parts, entry, nowMs);
    if (cause?.kind === "backoff") least = Math.min(least ?? cause.untilMs, cause.untilMs);
  }
  return least;
}
