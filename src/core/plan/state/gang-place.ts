/** The place that a gang has in its queue. */
import { compareText } from "../../../runtime/compare-text.ts";
import { drainingAdmission, liveAdmission } from "../../job/job.ts";
import type { AgeingInBands } from "../ageing.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { Entry } from "./gang-lines.ts";

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

/** Names the lane that a gang is in. */
export function laneKey(gang: PlanGang, { ageing }: { readonly ageing: AgeingInBands | null }): string {
  const barred = barredOf(gang).join();
  const waited = ageing === null || gang.waitsSinceMs === gang.createTimeMs ? "" : gang.waitsSinceMs;
  const never = gang.neverPreempts === true ? "never" : "";
  const passes = `${gang.maxRuntimeMs ?? ""} ${gang.backfill ?? ""}`;
  const own = `${gang.project}\n${gang.namespace}\n${gang.askHash}\n${gang.priority}`;
  return `${own}\n${barred}\n${never}\n${waited}\n${passes}`;
}

/** The clusters that older admissions of a gang have not left. */
export function barredOf({ admissions }: PlanGang): readonly string[] {
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
export function growthList({ gang, shape, line }: Entry): Entry[] | null {
  const live = liveAdmission(gang);
  if (live === null || leaves(gang) || gang.shrinksTo || gang.setAside !== undefined) return null;
  if (!shape.ask.roles.some(({ role, replicas }) => replicas > (live.members[role] ?? 0))) return null;
  return shape.ask.elastic ? line.stretching : line.growing;
}

/** True if a gang has the same place in the same lane as before. */
export function staysInLane({ gang: before, lane, line }: Entry, gang: PlanGang): boolean {
  if (lane === null || !isWaiting(gang) || isHeld(gang, Number.NEGATIVE_INFINITY)) return false;
  return gang.queue === before.queue && gang.createTimeMs === before.createTimeMs && laneKey(gang, line) === lane.key;
}
