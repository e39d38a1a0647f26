/** Counts jobs by two properties at most. Reads the jobs that have not ended, and a bounded number of the others. */
import {
  type CountedJobs,
  type CountQuery,
  countedEndedSince,
  ENDED_MAX,
  GROUPS_MAX,
  type JobCounts,
  type JobProperty,
  POOLS_MAX,
} from "../../../core/job/request/count.ts";
import type { Executor } from "../db/db.ts";
import { FILTER_CONDITION, FILTER_PARAMS, filterParams, WAIT_REASON } from "./job-filter.ts";

/** Counts the jobs that pass the filter in groups, as the store shows them at one moment. */
export async function countGroups(
  executor: Executor,
  { filter, groupBy }: CountQuery,
  nowMs: number,
): Promise<JobCounts> {
  const endedSinceMs = countedEndedSince(filter, nowMs);
  const rows = await executor.query<GroupRow>(countSql(groupBy), [...filterParams(filter), endedSinceMs]);
  const groups = rows.map((row) => countOf(row, groupBy.length));
  const rest = rows.find(({ place }) => place > GROUPS_MAX);
  return {
    groups: groups.slice(0, GROUPS_MAX),
    rest: rest === undefined ? null : { ...countOf(rest, 0) },
    restGroups: rest?.groups ?? 0,
    endedCapped: rows[0]?.capped ?? false,
    endedSinceMs,
  };
}

type GroupRow = {
  readonly place: number;
  readonly first: string;
  readonly second: string;
  /** How many groups the row sums up: more than one only in the last row. */
  readonly groups: number;
  readonly jobs: number;
  readonly pods: number;
  readonly oldest: number;
  readonly tokens: Readonly<Record<string, number>> | null;
  readonly capped: boolean;
};

function countOf({ first, second, jobs, pods, oldest, tokens }: GroupRow, values: number): CountedJobs {
  return { values: [first, second].slice(0, values), jobs, pods, oldestCreateMs: oldest, tokens: tokens ?? {} };
}

/** A property of a row of `jobs j`, whose live admission is a row of `admissions m`. */
const VALUES: Readonly<Record<JobProperty, string>> = {
  phase: "j.phase",
  queue: "j.queue",
  namespace: "j.namespace",
  owner: "j.created_by",
  kind: "j.kind",
  cluster: "j.cluster",
  flavor: "coalesce(f.flavor, '')",
  reason: `case when j.phase = 'WAITING' then ${WAIT_REASON} else '' end`,
};

/** What `VALUES` and `PODS` read of jobs. */
const COLUMNS = `
j.uid, j.create_ms, j.phase, j.queue, j.namespace, j.created_by, j.kind, j.cluster, j.status, j.outline, j.spec`;

const PODS = `
       (select coalesce(sum((r.value->>'replicas')::bigint), 0)
          from json_each(coalesce(j.outline, j.spec)->'replicaSpecs') r)`;

const FLAVORS = "left join lateral (select distinct value as flavor from json_each_text(m.flavors)) f on true";

/**
 * The ended jobs are those that ended last. Jobs of equal properties form a group, and the groups beyond the most that
 * are shown form one more. The tokens are those of the live admissions. Names of pools and values are compared by their
 * bytes.
 */
function countSql(groupBy: readonly JobProperty[]): string {
  const [first, second] = groupBy.map((property) => VALUES[property]);
  const isByFlavor = groupBy.includes("flavor");
  return `
with ended as (
  select ${COLUMNS}, row_number() over (order by j.completion_ms desc, j.uid desc) as nth
    from jobs j
   where ${FILTER_CONDITION} and j.completion_ms >= $${FILTER_PARAMS + 1}::bigint
   order by j.completion_ms desc, j.uid desc limit ${ENDED_MAX + 1}
), passing as (
  select ${COLUMNS} from jobs j where ${FILTER_CONDITION} and j.completion_ms is null
   union all
  select ${COLUMNS} from ended j where nth <= ${ENDED_MAX}
), counted as materialized (
  select j.uid, j.create_ms, m.number as admission, ${PODS} as pods,
         ${isByFlavor ? "f.flavor" : "null::text as flavor"}, ${first ?? "''"} as first, ${second ?? "''"} as second
    from passing j
    left join admissions m on m.job_uid = j.uid and m.state = 'live'
    ${isByFlavor ? FLAVORS : ""}
), grouped as (
  select first, second, count(*) as jobs, sum(pods) as pods, min(create_ms) as oldest,
         least(row_number() over (order by count(*) desc, first collate "C", second collate "C"),
               ${GROUPS_MAX + 1}) as place
    from counted group by first, second
), held as (
  select place, pool, sum(amount) as amount
    from counted join grouped using (first, second)
    join allocations a on a.job_uid = uid and a.admission = counted.admission and a.released_ms is null
   where ${isByFlavor ? "a.pool = flavor" : "true"}
   group by place, pool
), named as (
  select place, amount,
         case when row_number() over (partition by place order by amount desc, pool collate "C") <= ${POOLS_MAX}
              then pool else '' end as pool
    from held
), tokens as (
  select place, json_object_agg(pool, amount) as tokens
    from (select place, pool, sum(amount) as amount from named group by place, pool) summed
   group by place
)
select place::int, min(first) as first, min(second) as second, count(*)::int as groups, sum(jobs)::bigint as jobs,
       sum(pods)::bigint as pods, min(oldest)::bigint as oldest,
       (select t.tokens from tokens t where t.place = g.place) as tokens,
       (select count(*) > ${ENDED_MAX} from ended) as capped
  from grouped g
 group by place
 order by place`;
}
