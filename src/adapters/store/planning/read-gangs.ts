import type { Placement } from "../../../core/job/placement/placement.ts";
import type { RepairRequest, ReturnedMembers } from "../../../core/job/status.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { Ask } from "../../../core/plan/model/ask.ts";
import { type DocumentedFacts, gangOf, type PlanGang, type PlannedFrom } from "../../../core/plan/model/plan-gang.ts";
import type { Executor } from "../db/db.ts";
import { type AdmissionRow, flavorLabelsOf } from "../jobs/job-row.ts";
import { loadJobs } from "../jobs/load-job.ts";

/** The inputs of reading gangs beside the database. */
export type GangReading = {
  readonly kinds: Registry;
  /** The asks that earlier calls have read, by hash. Reading adds to them, so that gangs share them. */
  readonly asks: Map<string, Ask>;
  /** True: reads only gangs that run, hold tokens or are nominated, when it reads many. Omitted: false. */
  readonly takersOnly?: boolean;
};

/** A condition on rows of `jobs j`, with the values of its parameters. */
export type GangSelect = {
  readonly condition: string;
  readonly params: readonly unknown[];
  /** Omitted: the oldest first, without a limit. */
  readonly order?: string;
};

/** Waiting jobs, as a condition. */
export const WAITS = "(j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null)";

/** Jobs that are nominated, or have an admission that is live or holds tokens, as a condition. */
export const TAKES = `
(exists (select from admissions where job_uid = j.uid and (state = 'live' or tokens_released_ms is null))
  or j.gang -> 'nomination' is not null)`;

/**
 * Reads the gangs of the rows of `jobs j` that a condition selects. Reads no spec and no template,
 * except of jobs whose gang's columns a program of the version before has left behind.
 */
export async function readGangs(tx: Executor, select: GangSelect, reading: GangReading): Promise<readonly PlanGang[]> {
  const { condition, params, order = OLDEST_FIRST } = select;
  const rows = await tx.query<GangRow>(`${GANGS} where ${condition} ${order}`, params);
  await readAsks(tx, rows, reading.asks);
  const outdated = rows.filter((row) => !row.current || !reading.asks.has(row.ask_hash ?? ""));
  const jobs = await loadJobs(
    tx,
    outdated.map((row) => row.uid),
  );
  return rows.map((row) => {
    const job = jobs.get(row.uid);
    if (job !== undefined) return withPlacements(gangOf(job, reading.kinds, countersOf(row)), row);
    const ask = reading.asks.get(row.ask_hash ?? "");
    if (ask === undefined || row.gang === null) throw new Error(`the gang of job ${row.uid} cannot be read`);
    return gangOfRow(row, ask, row.gang);
  });
}

/** Reads the gangs of these jobs as they are now. */
export function readGangsOf(tx: Executor, uids: Iterable<string>, reading: GangReading): Promise<readonly PlanGang[]> {
  return readGangs(tx, { condition: "j.uid = any($1::uuid[])", params: [[...uids]] }, reading);
}

type GangRow = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly queue: string;
  readonly priority: number;
  readonly create_ms: number;
  readonly trace_parent: string | null;
  readonly version: number;
  readonly generation: number;
  readonly ask_hash: string | null;
  readonly gang: DocumentedFacts | null;
  readonly waits: boolean;
  readonly ends: boolean;
  /** False: the columns of the gang are those of an older version of the job. */
  readonly current: boolean;
  readonly last_admission: number;
  readonly admissions: readonly GangAdmissionRow[];
};

type GangAdmissionRow = Omit<PlannedFrom, "cluster" | "flavorLabels" | "returned" | "repair" | "placement"> & {
  readonly cluster: string;
  readonly returned: ReturnedMembers | null;
  readonly repair: RepairRequest | null;
  readonly placement: Placement | null;
} & Pick<AdmissionRow, "node_labels" | "flavor_labels">;

const GANGS = `
select j.uid, j.namespace, j.name, j.project, j.queue, j.priority, j.create_ms, j.trace_parent, j.version,
       j.generation, j.ask_hash, j.gang, j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null as waits,
       j.cancel is not null or j.delete_ms is not null as ends, coalesce(j.gang_version = j.version, false) as current,
       a.last_admission, a.admissions
  from jobs j cross join lateral (
    select coalesce(max(number), 0) as last_admission,
           coalesce(json_agg(json_build_object(
             'number', number, 'admitTimeMs', admit_ms, 'cluster', cluster, 'state', state, 'members', members,
             'flavors', flavors, 'node_labels', node_labels,
             'flavor_labels', flavor_labels, 'tokensReleasedMs', tokens_released_ms, 'goneMs', gone_ms,
             'returned', details -> 'returned', 'repair', details -> 'repair', 'placement', placement
           ) order by number) filter (where not finished), '[]') as admissions
      from admissions where job_uid = j.uid
  ) a`;

const OLDEST_FIRST = "order by j.create_ms, j.uid";

async function readAsks(tx: Executor, rows: readonly GangRow[], asks: Map<string, Ask>): Promise<void> {
  const hashes = new Set(rows.flatMap(({ ask_hash: hash }) => (hash === null || asks.has(hash) ? [] : [hash])));
  if (hashes.size === 0) return;
  const found = await tx.query<{ hash: string; ask: Ask }>("select hash, ask from asks where hash = any($1::text[])", [
    [...hashes],
  ]);
  for (const { hash, ask } of found) asks.set(hash, ask);
}

function countersOf(row: GangRow) {
  return { generation: row.generation, lastAdmission: row.last_admission };
}

function admissionOf({
  node_labels,
  flavor_labels,
  returned,
  repair,
  placement,
  ...row
}: GangAdmissionRow): PlannedFrom {
  const flavorLabels = flavorLabelsOf({ flavors: row.flavors, flavor_labels, node_labels });
  return {
    ...row,
    cluster: row.cluster || null,
    flavorLabels,
    ...(returned === null ? {} : { returned }),
    ...(repair === null ? {} : { repair }),
    ...(placement === null ? {} : { placement }),
  };
}

/** The record of a job does not have the planned nodes of its admissions. */
function withPlacements(gang: PlanGang, { admissions }: GangRow): PlanGang {
  const placed = gang.admissions.map((admission) => {
    const placement = admissions.find(({ number }) => number === admission.number)?.placement ?? null;
    return placement === null ? admission : { ...admission, placement };
  });
  return { ...gang, admissions: placed };
}

function gangOfRow(row: GangRow, ask: Ask, documented: DocumentedFacts): PlanGang {
  const { uid, namespace, name, project, queue, priority, version, waits, ends } = row;
  return {
    uid,
    namespace,
    name,
    project,
    queue,
    priority,
    createTimeMs: row.create_ms,
    version,
    ...countersOf(row),
    askHash: row.ask_hash ?? "",
    ask,
    waits,
    ends,
    admissions: row.admissions.map(admissionOf),
    ...documented,
    ...(row.trace_parent === null ? {} : { traceParent: row.trace_parent }),
  };
}
