/** The place that a gang has in its queue. */

import { compareText } from "../../../runtime/compare-text.ts";
import { drainingAdmission, liveAdmission } from "../../job/job.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { AgeingInBands } from "./ageing.ts";
import { type GangClass, type GangQueue, type GangRecord, written } from "./records.ts";

export function isWaiting(gang: PlanGang): boolean {
  return gang.waits && liveAdmission(gang) === null;
}

/** True while a gang waits for something that no other gang could take from it, or for its victims. */
export function isHeld(gang: PlanGang, nowMs: number): boolean {
  const backsOff = gang.backoff !== null && gang.backoff.notBeforeMs > nowMs;
  return (
    gang.nomination !== undefined ||
    gang.suspended ||
    gang.awaitsResult !== null ||
    backsOff ||
    drainingAdmission(gang) !== null
  );
}

/** Names the gang class that a gang is in. */
export function classKey(gang: PlanGang, { ageing }: { readonly ageing: AgeingInBands | null }): string {
  const excludedClusters = excludedClustersOf(gang).join();
  const waited = ageing === null || gang.waitsSinceMs === gang.createTimeMs ? "" : gang.waitsSinceMs;
  const never = gang.neverPreempts === true ? "never" : "";
  const overtakes = `${gang.maxRuntimeMs ?? ""} ${gang.backfill ?? ""}`;
  const own = `${gang.project}\n${gang.namespace}\n${gang.askHash}\n${gang.priority}`;
  return `${own}\n${excludedClusters}\n${never}\n${waited}\n${overtakes}`;
}

/** The clusters that older admissions of a gang have not left. */
export function excludedClustersOf({ admissions }: PlanGang): readonly string[] {
  const left = admissions.flatMap(({ cluster, goneMs }) => (goneMs === null && cluster !== null ? [cluster] : []));
  return left.length < 2 ? left : [...new Set(left)].sort(compareText);
}

/** True for a gang whose live admission ends or is undone anyway. */
export function leaves({ ends, suspended, evicted }: PlanGang): boolean {
  return ends || suspended || evicted === true;
}

/** True if a gang has objects in a cluster that leave, whatever a round decides. */
export function hasLeaving(gang: PlanGang): boolean {
  return gang.admissions.some(({ cluster, goneMs, state }) => {
    const isThere = cluster !== null && goneMs === null;
    return isThere && (state !== "live" || leaves(gang) || gang.shrinksTo !== undefined);
  });
}

/** The list of its queue that a gang is in because it may grow. Null: it may not. */
export function growthList({ facts, shape, gangQueue }: GangRecord): GangRecord[] | null {
  const live = liveAdmission(facts);
  if (live === null || leaves(facts) || facts.shrinksTo || facts.setAside !== undefined || facts.growsNoMore)
    return null;
  if (!shape.ask.roles.some(({ role, replicas }) => replicas > (live.members[role] ?? 0))) return null;
  const { stretching, growing } = written(gangQueue);
  return shape.ask.elastic ? stretching : growing;
}

/** True if a gang has the same place in the same gang class as before. */
export function staysInClass({ facts: before, gangClass, gangQueue }: GangRecord, gang: PlanGang): boolean {
  if (gangClass === null || !isWaiting(gang) || isHeld(gang, Number.NEGATIVE_INFINITY)) return false;
  return (
    gang.queue === before.queue &&
    gang.createTimeMs === before.createTimeMs &&
    classKey(gang, gangQueue) === gangClass.key
  );
}

/** A gang class of one gang that is in no queue's gang classes. */
export function ownClass(gang: GangRecord): GangClass {
  return newClass(classKey(gang.facts, gang.gangQueue), gang);
}

/*
 * The objects are written out: one that is put together of others keeps most of its fields in another place in memory.
 */

export function newClass(key: string, { facts, gangQueue, shape, account }: GangRecord): GangClass {
  const { queue, namespace, project, priority } = facts;
  return {
    active: false,
    isInActive: false,
    requests: [],
    waitsIn: [],
    gangs: [],
    at: 0,
    reevaluated: null,
    refusal: null,
    options: undefined,
    gangQueue,
    shape,
    account,
    priority,
    excludedClusters: excludedClustersOf(facts),
    maySearch: true,
    searchedUpTo: 0,
    closedBy: [],
    full: null,
    reported: 0,
    key,
    queue,
    namespace,
    project,
  };
}

export function newQueue(name: string, { stop, ageing }: Pick<GangQueue, "stop" | "ageing">): GangQueue {
  return {
    name,
    stop,
    skipped: false,
    growing: [],
    stretching: [],
    active: [],
    activeBefore: 0,
    head: null,
    reserved: null,
    full: null,
    classes: new Map(),
    order: null,
    waitedLong: null,
    hasUnflavored: null,
    reevaluated: 0,
    waiting: 0,
    reportedHead: "",
    ageing,
    rankedMs: null,
    held: new Set<GangRecord>(),
    running: new Set<GangRecord>(),
    runningAdmissions: null,
  };
}
