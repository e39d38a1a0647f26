/** Says why a job waits: the cause that the planner has recorded, with the numbers of this moment. */
import { setImmediate } from "node:timers/promises";
import type { AskedWhy } from "../core/plan/explain/explain.ts";
import type { KeptRefusal } from "../core/plan/explain/kept-reason.ts";
import { withHead } from "../core/plan/explain/refuse.ts";
import type { Refusal } from "../core/plan/model/plan-types.ts";
import type { FleetNow, FollowedFleet } from "./followed-fleet.ts";
import type { ExplainStore } from "./ports.ts";

/** Why a job waits, and the time of the numbers. */
export type Explanation = { readonly refusal: Refusal; readonly atMs: number };

/** Null: the planner has not looked at the job yet, the job does not wait any more, or the caller has left. */
export type Explainer = (jobUid: string, signal: AbortSignal) => Promise<Explanation | null>;

export function createExplainer({ store, fleet }: { store: ExplainStore; fleet: FollowedFleet }): Explainer {
  return async (jobUid, signal) => {
    const kept = await store.refusalOf(jobUid);
    if (kept === null) return null;
    const { refusal, head, atMs } = kept;
    // A program of the version before has kept it with the numbers of its moment.
    if (refusal.cause === undefined) return { refusal: head === null ? refusal : withHead(refusal, head), atMs };
    const asked = await readAsked(store, { refusal, head });
    if (asked.gangs.get(jobUid)?.waits !== true) return null;
    // The fleet is read after that: no cause is newer than the numbers.
    return fleet.read(async (now) => ({ refusal: await explain(now, asked), atMs: now.nowMs }), signal);
  };
}

/** Others have their turn between two clusters. */
async function explain({ planner, callers, nowMs }: FleetNow, asked: AskedWhy): Promise<Refusal> {
  const slices = planner.explain(asked, { callers, nowMs });
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
    await setImmediate();
  }
}

async function readAsked(
  store: ExplainStore,
  { refusal, head }: Pick<AskedWhy, "refusal" | "head">,
): Promise<AskedWhy> {
  const line = isReserved(refusal) || isReserved(head) ? await store.gangInLine() : null;
  const uids = [refusal.jobUid, refusal.head, head?.jobUid, line?.jobUid].filter((uid) => uid !== undefined);
  const gangs = new Map((await store.gangsNow([...new Set(uids)])).map((gang) => [gang.uid, gang]));
  const gang = gangs.get(line?.jobUid ?? "");
  const first = line === null || gang === undefined ? null : { gang, inLine: line.inLine };
  return { refusal, head, gangs, first };
}

/** True if a pool keeps room for another gang. */
function isReserved(refusal: KeptRefusal | null): boolean {
  const cause = refusal?.cause;
  return cause?.kind === "lacks" && cause.refusal.quotas.some(({ reason }) => reason === "Reserved");
}
