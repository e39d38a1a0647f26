import type { Job } from "../../../core/job/job.ts";
import type { Placement } from "../../../core/job/placement/placement.ts";
import type { PlannedAdmission } from "../../../core/plan/model/plan-types.ts";
import { IS_RETIRED } from "../admin/clusters.ts";
import type { Executor } from "../db/db.ts";
import { JOB_READING, type JobRow, LIVE_PLACEMENT } from "../jobs/job-row.ts";

/** A job that is locked until the transaction ends, and the facts that guard its admission. */
export type LockedGang = {
  /** Without templates. */
  readonly job: Job;
  /** The highest number of an admission that the job ever had. 0: none. */
  readonly lastAdmission: number;
  /** The clusters where objects of its admissions may be. */
  readonly entered: readonly string[];
  /** The planned nodes of its live admission. Null: none are planned. */
  readonly placement: Placement | null;
};

/**
 * Locks the jobs of these admissions that are as they were planned, and reads them, by uid. Skips jobs that another
 * transaction has locked: it is about to change them, and no gang may hold up the others of its batch.
 */
export async function lockGangs(
  tx: Executor,
  planned: readonly PlannedAdmission[],
): Promise<ReadonlyMap<string, LockedGang>> {
  const locked = await tx.query<{ uid: string }>(LOCK_JOBS, [
    planned.map(({ jobUid }) => jobUid),
    planned.map(({ generation }) => generation),
    planned.map(({ askHash }) => askHash),
  ]);
  if (locked.length === 0) return new Map();
  // A second statement: the first one has read the admissions as they were before it locked the jobs.
  const rows = await tx.query<GangRow>(READ_GANGS, [locked.map(({ uid }) => uid)]);
  return new Map(
    rows.map((row) => [
      row.uid,
      {
        job: JOB_READING.BASIC.jobOf(row),
        lastAdmission: row.last_admission,
        entered: row.entered,
        placement: row.placement,
      },
    ]),
  );
}

/**
 * The guard of each gang: nothing of its job that the plan has read has changed. Other changes of the job, such as the
 * words of its status, are no reason to plan it again. The list of uids makes the server look up each row, also while
 * it knows little about the table.
 */
const LOCK_JOBS = `
select j.uid
  from jobs j
 where j.uid = any($1::uuid[]) and j.gang_version = j.version and j.cancel is null and j.delete_ms is null
   and (j.uid, j.generation, j.ask_hash) in (
         select uid, generation, ask_hash
           from unnest($1::uuid[], $2::bigint[], $3::text[]) as g (uid, generation, ask_hash)
       )
 order by j.uid
   for no key update of j skip locked`;

type GangRow = JobRow &
  Pick<LockedGang, "entered" | "placement"> & {
    readonly last_admission: number;
  };

const READ_GANGS = `
select ${JOB_READING.BASIC.columns},
       coalesce((select max(number) from admissions where job_uid = j.uid), 0) as last_admission,
       coalesce((select json_agg(cluster) from admission_clusters where job_uid = j.uid), '[]') as entered,
       ${LIVE_PLACEMENT}
  from jobs j where j.uid = any($1::uuid[])`;

/** Clusters that are locked until the transaction ends. */
export type LockedClusters = {
  /** Those that take admissions. Null: a job without pods enters no cluster. */
  readonly open: ReadonlySet<string | null>;
  /** Since when they count as lost, of those that do. */
  readonly lost: ReadonlyMap<string, number>;
};

export const NO_CLUSTERS: LockedClusters = { open: new Set(), lost: new Map() };

/**
 * Locks the clusters that still have these counters, and those that gangs are to leave. A cluster is not open if it is
 * cordoned or retired by now, or if an admission that the plan did not know came first. So a registration that commits
 * first, or waits for these rows, leaves no later admission to a simulated cluster, and none leaves a cluster that has
 * returned.
 */
export async function lockClusters(
  tx: Executor,
  counters: ReadonlyMap<string, number>,
  left: readonly string[],
): Promise<LockedClusters> {
  const rows = await tx.query<ClusterRow>(LOCK_CLUSTERS, [[...counters.keys(), ...left]]);
  const open = rows.filter(({ name, counter, closed }) => !closed && counters.get(name) === counter);
  return {
    open: new Set([null, ...open.map(({ name }) => name)]),
    lost: new Map(rows.flatMap(({ name, lostMs }) => (lostMs === null ? [] : [[name, lostMs] as const]))),
  };
}

type ClusterRow = {
  readonly name: string;
  readonly counter: number;
  readonly closed: boolean;
  readonly lostMs: number | null;
};

const LOCK_CLUSTERS = `
select name, admission_counter as counter, cordoned or ${IS_RETIRED} as closed, lost_ms as "lostMs"
  from clusters where name = any ($1::text[]) order by name for no key update`;
