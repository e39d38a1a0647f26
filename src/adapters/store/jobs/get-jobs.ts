import type { ShownJob } from "../../../core/job/request/list.ts";
import { GroupCommit } from "../../../runtime/group-commit.ts";
import type { Db, Executor } from "../db/db.ts";
import { prepared, unseenArray } from "../db/prepared.ts";
import { AGEING } from "./effective-priority.ts";
import { JOB_COLUMNS, type JobRow, jobOf } from "./job-row.ts";
import { IN_LINE, isOfCurrent, PLACE, shown, type TokenRow, tokenOf, UUID } from "./list-jobs.ts";

type Which = { readonly namespace: string; readonly name: string } | { readonly uid: string };

/** The most reads that share a statement. A job that is read may be a megabyte, and all wait for the last of them. */
const READS_MAX = 16;
/** A read that takes long, such as that of the last place of a long queue, delays only those of its statement. */
const STATEMENTS_MAX = 4;
/** More reads than a process answers before its clients give up. */
const READS_WAITING_MAX = 10_000;

/**
 * Reads single jobs as they are shown; null if no job has that name or uid. Reads that wait at the same time share a
 * statement, which begins after all of them came. Where priorities grow, another statement numbers the queue.
 */
export function jobGetter(db: Db): (which: Which, nowMs: number) => Promise<ShownJob | null> {
  const reads = new GroupCommit<Which, ShownRow | null>({
    what: "reads of jobs",
    groupMax: READS_MAX,
    waitingMax: READS_WAITING_MAX,
    atATime: STATEMENTS_MAX,
    apart: true,
    run: (group) => shownRows(db, group),
  });
  return async (which, nowMs) => {
    if ("uid" in which && !UUID.test(which.uid)) return null;
    const row = await reads.ask(which);
    if (row === null) return null;
    const job = jobOf(row);
    if (row.ages) return (await shown(db, [job], nowMs))[0] ?? null;
    const { position, effective, held } = row;
    return { job, position, effectivePriority: effective, tokens: held.filter(isOfCurrent(job)).map(tokenOf) };
  };
}

type ShownRow = JobRow & {
  /** The place of the read in its group, from 0. */
  readonly at: number;
  /** True if the job waits in a queue in which priorities grow: then the place is not known. */
  readonly ages: boolean;
  readonly position: number | null;
  readonly effective: number | null;
  readonly held: readonly TokenRow[];
};

/** The rows of these jobs, in the order of the reads. */
async function shownRows(executor: Executor, group: readonly Which[]): Promise<readonly (ShownRow | null)[]> {
  const byName = group.flatMap((which, at) => ("uid" in which ? [] : [{ ...which, at }]));
  const byUid = group.flatMap((which, at) => ("uid" in which ? [{ ...which, at }] : []));
  const places = (asked: readonly { readonly at: number }[]) => asked.map(({ at }) => at);
  const read = await Promise.all([
    byName.length === 0
      ? []
      : executor.query<ShownRow>(GET_BY_NAMES, [
          places(byName),
          byName.map(({ namespace }) => namespace),
          byName.map(({ name }) => name),
        ]),
    byUid.length === 0 ? [] : executor.query<ShownRow>(GET_BY_UIDS, [places(byUid), byUid.map(({ uid }) => uid)]),
  ]);
  const rows = new Map(read.flat().map((row) => [row.at, row]));
  return group.map((_, at) => rows.get(at) ?? null);
}

/** Jobs that are joined to what was asked for, with their places in their queues and the tokens that they hold. */
const getBy = (asked: string, condition: string) => `
select asked.at, ${JOB_COLUMNS}, waits and ages as ages,
       case when waits and not ages then j.priority end as effective,
       case when waits and not ages then ${PLACE} end as position,
       coalesce((
         select json_agg(a order by a.id) from (
           select id, admission, pool, amount, fence::text from allocations
            where job_uid = j.uid and released_ms is null
         ) a
       ), '[]') as held
  from ${asked} join jobs j on ${condition} left join queues q on q.name = j.queue
 cross join lateral (
   select ${IN_LINE} as waits, ${AGEING} is not null as ages
 ) line`;

const PLACES = unseenArray("$1", "int");
const GET_BY_UIDS = prepared(
  getBy(`unnest(${PLACES}, ${unseenArray("$2", "uuid")}) as asked (at, uid)`, "j.uid = asked.uid"),
);
const GET_BY_NAMES = prepared(
  getBy(
    `unnest(${PLACES}, ${unseenArray("$2", "text")}, ${unseenArray("$3", "text")}) as asked (at, namespace, name)`,
    "j.namespace = asked.namespace and j.name = asked.name",
  ),
);
