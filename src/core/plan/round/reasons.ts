/** Why gangs were not admitted in a round: the reasons that are new. */
import { compareText } from "../../../runtime/compare-text.ts";
import { Heap } from "../../../runtime/heap.ts";
import { drainingAdmission } from "../../job/job.ts";
import type { TenantName } from "../../job/tenant-limits.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { AmountInLine } from "../model/plan-types.ts";
import type { Round } from "../preempt/round.ts";
import { noteReported } from "../queues/class-state.ts";
import { compareAged, compareGangs, headOf, waitingIn } from "../queues/order.ts";
import { noteReportedHead } from "../queues/queue-state.ts";
import type { GangClass, GangQueue, GangRecord } from "../queues/records.ts";
import { causeKey, type RefusedGang, type WaitReason } from "../queues/refusals.ts";

/** The reasons that a round reports. `more`: the bound left some to the next round. */
type ReportedReasons = { readonly refused: readonly RefusedGang[]; readonly more: boolean };

export const NOTHING_SAID: ReportedReasons = { refused: [], more: false };

/** Reports the reasons that are new: of the gang classes that were refused, of new gangs, and behind a new head. */
export function newReasons({ fleet, nowMs, bounds }: Round, classes: readonly GangClass[]): ReportedReasons {
  const { fresh } = fleet.queues;
  const { refusalsMax = Number.POSITIVE_INFINITY } = bounds;
  const refused: RefusedGang[] = [];
  const report = (gang: GangRecord): void => {
    const isFull = refused.length >= refusalsMax;
    if (isFull) fresh.add(gang);
    const cause = isFull ? null : reasonOf(fleet, gang, nowMs);
    if (cause === null) return;
    fresh.delete(gang);
    const key = causeKey(cause);
    if (gang.reported === key) return;
    noteReported(gang, key);
    refused.push({ gang: gang.facts, cause });
  };
  for (const gangClass of classes) {
    const key = keyOfClass(gangClass);
    if (gangClass.reported === key) continue;
    noteReported(gangClass, key);
    gangClass.gangs.forEach(report);
  }
  // The order must not depend on that of the changes.
  for (const gangQueue of fleet.queues.byName) {
    const head = headIn(gangQueue, nowMs)?.facts.uid;
    if (head === undefined || head === gangQueue.reportedHead) continue;
    noteReportedHead(gangQueue, head);
    waitingIn(gangQueue).sort(compareGangs).forEach(report);
  }
  const unreported = new Heap([...fresh], comesBefore);
  while (unreported.size > 0 && refused.length < refusalsMax) report(unreported.pop() as GangRecord);
  return { refused, more: unreported.size > 0 };
}

function comesBefore(a: GangRecord, b: GangRecord): boolean {
  return (compareText(a.gangQueue.name, b.gangQueue.name) || compareGangs(a, b)) < 0;
}

/** The key of the reason for which a gang class was refused. */
function keyOfClass({ refusal }: GangClass): number {
  return causeKey(refusal === null ? UNKNOWN_QUEUE : { kind: "lacks", refusal, inLine: [] });
}

/** Why a gang waits whose queue runs as many jobs as it may. */
function reasonInFull(gang: GangRecord, queue: string, nowMs: number): WaitReason | null {
  if (gang.gangClass === null) return ownReason(gang.facts, nowMs);
  return isAdmitted(gang.gangClass, gang) ? null : { kind: "queueFull", queue };
}

/** Why a gang waits whose namespace or project runs as many jobs as it may. */
function reasonInFullTenant(gangClass: GangClass, gang: GangRecord, { kind, name }: TenantName): WaitReason | null {
  return isAdmitted(gangClass, gang) ? null : { kind: "tenantFull", tenant: { kind, name } };
}

/** True if the round has admitted a gang of a class. */
function isAdmitted(gangClass: GangClass, gang: GangRecord): boolean {
  const first = headOf(gangClass);
  return first === undefined || compareGangs(gang, first) < 0;
}

/** The gang of a strict queue behind which the others wait. Undefined: none. */
function headIn({ head, reserved }: GangQueue, nowMs: number): GangRecord | undefined {
  const refused = head === null ? undefined : headOf(head);
  if (reserved === null) return refused;
  return refused === undefined || compareAged(reserved, refused, nowMs) < 0 ? reserved : refused;
}

const UNKNOWN_QUEUE: WaitReason = { kind: "unknownQueue" };

/** Why a gang waits. Null: it does not, or no round has looked at it yet. */
export function reasonOf({ quota }: Pick<Fleet, "quota">, gang: GangRecord, nowMs: number): WaitReason | null {
  const { gangQueue, gangClass } = gang;
  if (!quota.queues.has(gangQueue.name)) return UNKNOWN_QUEUE;
  if (gangQueue.stop !== null) return { kind: "queueStopped", stop: gangQueue.stop };
  if (gangQueue.full !== null) return reasonInFull(gang, gangQueue.full, nowMs);
  if (gangClass !== null && gangClass.full !== null) return reasonInFullTenant(gangClass, gang, gangClass.full);
  const head = headIn(gangQueue, nowMs);
  const isNominee = gang.facts.nomination !== undefined;
  if (head !== undefined && !isNominee && compareAged(head, gang, nowMs) < 0)
    return { kind: "behindHead", head: head.facts };
  if (gangClass === null) return ownReason(gang.facts, nowMs);
  if (gangClass.active || isAdmitted(gangClass, gang) || gangClass.refusal === null) return null;
  return { kind: "lacks", refusal: gangClass.refusal, inLine: lineOf(quota, gang) };
}

/** The pools in whose waiting lines a gang is. */
function lineOf({ reserved }: Pick<Fleet["quota"], "reserved">, { facts }: GangRecord): readonly AmountInLine[] {
  if (reserved?.jobUid !== facts.uid) return [];
  return [...reserved.amounts].map(([pool, amount]) => ({ pool, amount }));
}

function reasonOfNominee({ nomination }: PlanGang): WaitReason | null {
  return nomination === undefined ? null : { kind: "preempting", nomination };
}

/** Why a gang waits although others can take nothing from it. */
function ownReason(gang: PlanGang, nowMs: number): WaitReason | null {
  if (gang.suspended) return { kind: "suspended" };
  if (gang.awaitsResult !== null) return { kind: "awaitsResult" };
  if (gang.backoff !== null && gang.backoff.notBeforeMs > nowMs) {
    return { kind: "backoff", untilMs: gang.backoff.notBeforeMs };
  }
  return drainingAdmission(gang) === null ? reasonOfNominee(gang) : { kind: "draining" };
}
