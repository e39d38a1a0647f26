/**
 * Lists jobs. The console, the command line and platforms page through thousands of jobs: so a page has a
 * stable cursor, and the places in queues and the tokens of its jobs come from one statement each.
 */
import { currentAdmission, type Job } from "../../../core/job/job.ts";
import {
  type JobOrder,
  type JobPage,
  type JobQuery,
  PAGE_BYTES_MAX,
  type ShownJob,
  waitsSinceMs,
} from "../../../core/job/request/list.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "../db/db.ts";
import { AGEING, effectivePrioritySql, WAITS_SINCE } from "./effective-priority.ts";
import { FILTER_CONDITION, FILTER_PARAMS, filterParams } from "./job-filter.ts";
import { JOB_READING, type JobRow } from "./job-row.ts";

/** Counting stops here: a list then says "10,000 or more". */
const TOTAL_MAX = 10_000;
/** A list computes so many places of each queue, so that it takes no longer with more jobs behind them. */
export const PLACES_MAX = 1_000;

type Order = {
  /** The rows that the order is for, if it is not for all: an index of these alone has the order. */
  readonly rows?: string;
  /** True for rows after the key, whose parameters begin at $at. */
  readonly condition: (at: number) => string;
  readonly orderBy: string;
  readonly types: readonly ("string" | "number")[];
  readonly key: (shown: Pick<ShownJob, "job" | "tokens">) => readonly (string | number)[];
};

/** The tokens of a job's live admission, as `tokensOf` reads them. Its row is found by an index, like its tokens. */
const HELD = `coalesce((
         select sum(a.amount) from allocations a
          where a.job_uid = j.uid and a.released_ms is null
            and a.admission = (select m.number from admissions m where m.job_uid = j.uid and m.state = 'live')
       ), 0)::bigint`;

export const ORDERS: Readonly<Record<JobOrder, Order>> = {
  create_time: {
    condition: (at) => `(j.create_ms, j.uid) > ($${at}::bigint, $${at + 1}::uuid)`,
    orderBy: "j.create_ms, j.uid",
    types: ["number", "string"],
    key: ({ job }) => [job.createTimeMs, job.uid],
  },
  "create_time desc": {
    condition: (at) => `(j.create_ms, j.uid) < ($${at}::bigint, $${at + 1}::uuid)`,
    orderBy: "j.create_ms desc, j.uid desc",
    types: ["number", "string"],
    key: ({ job }) => [job.createTimeMs, job.uid],
  },
  name: {
    condition: (at) => `(j.namespace, j.name) > ($${at}, $${at + 1})`,
    orderBy: "j.namespace, j.name",
    types: ["string", "string"],
    key: ({ job }) => [job.namespace, job.name],
  },
  "priority desc": {
    condition: (at) =>
      `(-j.priority::bigint, j.create_ms, j.uid) > (-$${at}::bigint, $${at + 1}::bigint, $${at + 2}::uuid)`,
    orderBy: "j.priority desc, j.create_ms, j.uid",
    types: ["number", "number", "string"],
    key: ({ job }) => [job.spec.priority, job.createTimeMs, job.uid],
  },
  "held desc": {
    condition: (at) => `(-${HELD}, j.create_ms, j.uid) > (-$${at}::bigint, $${at + 1}::bigint, $${at + 2}::uuid)`,
    orderBy: `${HELD} desc, j.create_ms, j.uid`,
    types: ["number", "number", "string"],
    key: ({ job, tokens }) => [tokens.reduce((sum, { amount }) => sum + amount, 0), job.createTimeMs, job.uid],
  },
  "complete_time desc": {
    rows: "j.completion_ms is not null",
    condition: (at) => `(j.completion_ms, j.uid) < ($${at}::bigint, $${at + 1}::uuid)`,
    orderBy: "j.completion_ms desc, j.uid desc",
    types: ["number", "string"],
    key: ({ job }) => [job.status.completionTimeMs ?? 0, job.uid],
  },
  wait_since: {
    condition: (at) => `(${WAITS_SINCE}, j.uid) > ($${at}::bigint, $${at + 1}::uuid)`,
    orderBy: `${WAITS_SINCE}, j.uid`,
    types: ["number", "string"],
    key: ({ job }) => [waitsSinceMs(job), job.uid],
  },
};

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** One page of jobs. The next page starts after its last row, even if jobs were made or deleted in between. */
export function listJobs(db: Db, query: JobQuery, nowMs: number): Promise<JobPage | "badCursor"> {
  const order = ORDERS[query.order];
  const key = query.after === null ? [] : decodeCursor(query.after, query.order, order.types);
  if (key === null || (query.order !== "name" && key.length > 0 && !UUID.test(String(key.at(-1))))) {
    return Promise.resolve("badCursor");
  }
  return readSnapshot(db, async (tx) => {
    const params = [...filterParams(query.filter), ...key];
    const after = key.length === 0 ? "" : `and ${order.condition(FILTER_PARAMS + 1)}`;
    const reading = JOB_READING[query.view ?? "FULL"];
    const pageSize = Math.trunc(query.pageSize);
    const [rows, counted] = await Promise.all([
      tx.query<PageRow>(pageOf({ order, after, pageSize }, reading), params),
      tx.query<{ total: number }>(COUNT, filterParams(query.filter)),
    ]);
    const shownJobs = await shown(tx, rows.map(reading.jobOf), nowMs);
    const jobs = shownJobs.map((one) => ({ ...one, cursor: encodeCursor(query.order, order.key(one)) }));
    const isLast = rows.length === (rows[0]?.found ?? 0);
    return { jobs, next: isLast ? null : (jobs.at(-1)?.cursor ?? null), total: onlyRow(counted).total };
  });
}

export type PageRow = JobRow & {
  /** How many jobs were found for the page and the one after it, before the bytes were counted. */
  readonly found: number;
};

/**
 * Finds the jobs of a page, then reads as many of them as the bytes allow, and at least one. So neither the server nor
 * this process handles templates of jobs that do not fit into the page.
 */
export function pageOf(
  { order, after, pageSize }: { readonly order: Order; readonly after: string; readonly pageSize: number },
  { columns, bytes }: { readonly columns: string; readonly bytes: string },
): string {
  return `
with found as materialized (
  select j.uid, row_number() over (order by ${order.orderBy}) as place
    from jobs j where ${FILTER_CONDITION} and ${order.rows ?? "true"} ${after}
   order by ${order.orderBy} limit ${pageSize + 1}
), measured as (
  select uid, place, count(*) over () as found, sum(${bytes}) over (order by place) as bytes
    from found join jobs j using (uid)
)
select ${columns}, found
  from measured join jobs j using (uid)
 where place <= ${pageSize} and (place = 1 or bytes <= ${PAGE_BYTES_MAX})
 order by place`;
}

const COUNT = `
select count(*) as total from (select 1 from jobs j where ${FILTER_CONDITION} limit ${TOTAL_MAX}) counted`;

/** Adds the places and tokens of these jobs, each read by one statement. */
export async function shown(tx: Executor, jobs: readonly Job[], nowMs: number): Promise<readonly ShownJob[]> {
  const [places, tokens] = await Promise.all([placesOf(tx, jobs, nowMs), tokensOf(tx, jobs)]);
  return jobs.map((job) => {
    const place = places.get(job.uid);
    const effectivePriority = place?.effective ?? null;
    return { job, position: place?.position ?? null, effectivePriority, tokens: tokens.get(job.uid) ?? [] };
  });
}

/**
 * The places of waiting jobs in their queues. Counts for one job, unless its queue lets priorities grow; else numbers
 * the first jobs of each queue once.
 */
async function placesOf(
  executor: Executor,
  jobs: readonly Job[],
  nowMs: number,
): Promise<ReadonlyMap<string, PlaceRow>> {
  const waiting = jobs.filter((job) => job.status.phase === "WAITING");
  const uids = waiting.map((job) => job.uid);
  if (uids.length === 0) return new Map();
  const counted = uids.length === 1 ? await executor.query<PlaceRow & { ages: boolean }>(POSITION, uids) : [];
  const isCounted = uids.length === 1 && counted[0]?.ages !== true;
  const queues = [...new Set(waiting.map((job) => job.spec.runPolicy.schedulingPolicy.queue))];
  const rows = isCounted ? counted : await executor.query<PlaceRow>(POSITIONS, [queues, uids, nowMs]);
  return new Map(rows.map((row) => [row.uid, row]));
}

type PlaceRow = {
  readonly uid: string;
  readonly position: number | null;
  /** The priority that decides about the position. */
  readonly effective: number;
};

export const IN_LINE = "j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null";

const WAITS_TOO = "o.phase = 'WAITING' and o.cancel is null and o.delete_ms is null and o.queue = j.queue";

/**
 * The place of a job in line, if priorities do not grow. Two counts, each of a range of one index: one count of both
 * would read every job that waits.
 */
export const PLACE = `(
         (select count(*) from jobs o where ${WAITS_TOO} and o.priority > j.priority)
         + (select count(*) from jobs o
             where ${WAITS_TOO} and o.priority = j.priority and (o.create_ms, o.uid) <= (j.create_ms, j.uid))
       )`;

const POSITION = `
select j.uid, j.priority as effective, ${AGEING} is not null as ages, ${PLACE} as position
  from jobs j left join queues q on q.name = j.queue
 where j.uid = $1 and ${IN_LINE}`;

/**
 * The queues come as values, for which the index of waiting jobs is chosen. Where priorities grow, no index has the
 * order, so all waiting jobs of the queue are read.
 */
const POSITIONS = `
with line as (
  select name, exists (select from queues q where q.name = n.name and ${AGEING} is not null) as ages
    from unnest($1::text[]) as n (name)
), in_order as (
  select first.*
    from line cross join lateral (
      select j.uid, j.priority as effective,
             row_number() over (order by j.priority desc, j.create_ms, j.uid) as position
        from jobs j
       where j.queue = line.name and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
       order by j.priority desc, j.create_ms, j.uid
       limit ${PLACES_MAX}
    ) first
   where not ages
), by_age as (
  select aged.*
    from line cross join lateral (
      select uid, effective, row_number() over (order by effective desc, create_ms, uid) as position
        from (
          select j.uid, j.create_ms, ${effectivePrioritySql("$3::bigint")} as effective
            from jobs j join queues q on q.name = j.queue
           where j.queue = line.name and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
        ) waiting
    ) aged
   where ages
)
select uid, position, effective from in_order where uid = any($2::uuid[])
 union all
select uid, case when position <= ${PLACES_MAX} then position end, effective from by_age where uid = any($2::uuid[])`;

/** The tokens of the jobs' current admissions. */
async function tokensOf(tx: Executor, jobs: readonly Job[]): Promise<ReadonlyMap<string, ShownJob["tokens"]>> {
  const holders = jobs.filter((job) => currentAdmission(job) !== null);
  if (holders.length === 0) return new Map();
  const rows = await tx.query<TokenRow & { job_uid: string }>(TOKENS, [holders.map((job) => job.uid)]);
  const held = Map.groupBy(rows, ({ job_uid }) => job_uid);
  return new Map(holders.map((job) => [job.uid, (held.get(job.uid) ?? []).filter(isOfCurrent(job)).map(tokenOf)]));
}

/** Whether a token is of the current admission of the job. */
export function isOfCurrent(job: Job): (row: TokenRow) => boolean {
  const current = currentAdmission(job)?.number;
  return ({ admission }) => admission === current;
}

export function tokenOf({ pool, amount, fence }: TokenRow): ShownJob["tokens"][number] {
  return { pool, amount, fence: BigInt(fence) };
}

export type TokenRow = {
  readonly admission: number;
  readonly pool: string;
  readonly amount: number;
  readonly fence: string;
};

const TOKENS = `
select job_uid, admission, pool, amount, fence::text
  from allocations where job_uid = any($1::uuid[]) and released_ms is null
 order by id`;
