import {
  type GangUpdate,
  gangVersion,
  isPlanned,
  type PlanGang,
  takesFromOthers,
} from "../../../core/plan/model/plan-gang.ts";
import { maxOf } from "../../../runtime/lists.ts";
import { type Db, type Executor, readSnapshot } from "../db/db.ts";
import { FIRST_UID } from "../db/first-uid.ts";
import { type GangReading, readGangs, readGangsOf, TAKES, WAITS } from "./read-gangs.ts";
import { refreshGangs } from "./refresh-gangs.ts";

/**
 * How many changes or gangs one read returns at most. The embedded database answers nobody else during a read, so it is
 * bounded.
 */
export const GANG_PAGE = 500;

/**
 * A page of the gangs that wait, run or hold tokens, or of those among them that take from others, by ranges of uids.
 * `after` null: the first page. Each page is of its own commit. So a planner that loads all gangs reads the log's head
 * before, and the updates since that head after.
 */
export function gangPage(
  db: Db,
  after: string | null,
  reading: GangReading,
): Promise<{ readonly gangs: readonly PlanGang[]; readonly next: string | null }> {
  return readSnapshot(db, async (tx) => {
    const params = [after ?? FIRST_UID, GANG_PAGE];
    const condition = reading.takersOnly ? `${IS_PLANNED} and ${TAKES}` : IS_PLANNED;
    const open = await readGangs(tx, { condition, params, order: "order by j.uid limit $2" }, reading);
    const next = open.length < GANG_PAGE ? null : (open.at(-1)?.uid ?? null);
    const ended = await readGangs(tx, { condition: ENDED_HOLDERS, params: [after ?? FIRST_UID, next] }, reading);
    return { gangs: [...open, ...ended], next };
  });
}

/** Of jobs that have not ended. Written so that their index gives the order. */
const IS_PLANNED = `
j.completion_ms is null and j.uid > $1
  and (${WAITS} or exists (select from admissions where job_uid = j.uid and state = 'live'))`;

/** Of jobs that have ended and hold tokens until their pods are gone. */
const ENDED_HOLDERS = `
j.completion_ms is not null
  and j.uid in (
    select job_uid from admissions
     where tokens_released_ms is null and job_uid > $1 and ($2::uuid is null or job_uid <= $2)
  )`;

/** The gangs of these jobs as they are now. */
export async function gangUpdates(
  db: Db,
  uids: readonly string[],
  reading: GangReading,
): Promise<readonly GangUpdate[]> {
  await refreshGangs(db, reading.kinds);
  return readSnapshot(db, (tx) => updatesOf(tx, new Set(uids), reading));
}

/** The updates since a position of the log. `gap`: entries after it were pruned, so that all gangs must be loaded. */
export type GangsSince =
  | { readonly gap: true }
  | {
      readonly gap: false;
      /** The position up to which the updates are complete. */
      readonly position: number;
      readonly updates: readonly GangUpdate[];
      /** True: more updates follow. */
      readonly more: boolean;
    };

/** The log of jobs' changes: the newest position, and the one up to which entries were pruned. */
export type LogBounds = { readonly head: number; readonly pruned_to: number };

/**
 * The gangs of jobs that changed after a position of the log, each as it is now, unless the reader knows it already.
 * Includes changes that have no position yet, at least the newest: they come again with their positions.
 */
export async function gangsSince(
  tx: Executor,
  of: { readonly position: number; readonly log: LogBounds; readonly versionOf: (uid: string) => number | null },
  reading: GangReading,
): Promise<GangsSince> {
  const { position, log, versionOf } = of;
  if (position < log.pruned_to || position > log.head) return { gap: true };
  const changes = await tx.query<ChangeRow>(CHANGES, [position, GANG_PAGE]);
  const positions = changes.flatMap((change) => change.position ?? []);
  const more = positions.length === GANG_PAGE;
  const news = changes.filter(({ job_uid: uid, version }) => version > (versionOf(uid) ?? 0));
  const all = await updatesOf(tx, new Set(news.map((change) => change.job_uid)), reading);
  // Such a reader need not remember which other gangs there are.
  const updates = reading.takersOnly ? all.filter(({ uid, gang }) => gang !== null || versionOf(uid) !== null) : all;
  return { gap: false, position: more ? maxOf(positions) : log.head, updates, more };
}

type ChangeRow = { readonly job_uid: string; readonly version: number; readonly position: number | null };

const CHANGES = `
(select job_uid, version, position from job_changes where position > $1 order by position limit $2)
union all
(select job_uid, version, position from job_changes where position is null order by id desc limit $2)`;

async function updatesOf(
  tx: Executor,
  uids: ReadonlySet<string>,
  reading: GangReading,
): Promise<readonly GangUpdate[]> {
  if (uids.size === 0) return [];
  const gangs = await readGangsOf(tx, uids, reading);
  const byUid = new Map(gangs.map((gang) => [gang.uid, gang]));
  return [...uids].map((uid) => {
    const gang = byUid.get(uid);
    if (gang === undefined) return { uid, version: Number.MAX_SAFE_INTEGER, gang: null };
    const isWanted = isPlanned(gang) && (reading.takersOnly !== true || takesFromOthers(gang));
    return { uid, version: gangVersion(gang), gang: isWanted ? gang : null };
  });
}
