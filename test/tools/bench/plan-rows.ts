/** Writes the fleet of `npm run bench -- plan` into a database, in the rows that the service would have written. */
import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import { sumKey } from "../../../src/adapters/store/ledger/sums.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { type Fleet, GPU, gangChange, MODELS } from "./plan-fleet.ts";

/** So many rows go into one statement. */
const ROWS = 2_000;

/** Writes everything that a fleet has. */
export async function writeFleet(db: Db, fleet: Fleet): Promise<void> {
  const pools = MODELS.map((model) => ({ name: `gpu/${model}` }));
  const quotas = fleet.queues.flatMap(({ name, quotas: of }) =>
    of.map((quota, position) => ({ name, position, ...quota })),
  );
  await inParts(db, ASKS, fleet.asks);
  await inParts(db, POOLS, pools);
  await inParts(db, QUEUES, fleet.queues);
  await inParts(db, QUOTAS, quotas);
  await inParts(
    db,
    NAMESPACES,
    Array.from({ length: 100 }, (_, at) => ({ name: `team-${at}` })),
  );
  await inParts(
    db,
    CLUSTERS,
    fleet.clusterNames.map((name) => ({
      name,
      flavors: MODELS.map((model) => ({ name: `gpu/${model}`, resource: GPU, nodeLabels: { gpu: model } })),
    })),
  );
  await db.tx((tx) => writeChanges(tx, fleet.load(), { log: false }));
  await db.query("analyze");
}

/** Writes changes of a fleet in one transaction, with the log of jobs' changes. */
export function recordChanges(db: Db, changes: readonly Change[]): Promise<void> {
  return db.tx((tx) => writeChanges(tx, changes, { log: true }));
}

async function writeChanges(
  tx: Executor,
  changes: readonly Change[],
  { log }: { readonly log: boolean },
): Promise<void> {
  const gangs: PlanGang[] = [];
  const gone: string[] = [];
  const sums = new Map<string, unknown>();
  for (const change of changes) {
    if (change.kind === "gang" && change.gang !== null) gangs.push(change.gang);
    else if (change.kind === "gang") gone.push(change.uid);
    else if (change.kind === "sum")
      sums.set(JSON.stringify(change.scope), { ...sumKey(change.scope), used: change.used });
    else if (change.kind === "cluster") await tx.query(COUNTER, [change.name, change.facts?.admissionCounter ?? 0]);
    else if (change.kind === "capacity") await writeCapacity(tx, change);
  }
  // A gang that came and went, or changed twice, counts once.
  const latest = [...new Map(gangs.map((gang) => [gang.uid, gang])).values()];
  await inParts(tx, JOBS, latest.map(jobRow));
  await inParts(tx, ADMISSIONS, latest.flatMap(admissionRows));
  await inParts(
    tx,
    ENDED,
    gone.map((uid) => ({ uid })),
  );
  await inParts(tx, SUMS, [...sums.values()]);
  const changed = new Set([...latest.map(({ uid }) => uid), ...gone]);
  if (log)
    await inParts(
      tx,
      LOG,
      [...changed].map((uid) => ({ uid })),
    );
}

/** Numbers the entries of one report one after the other, as an observer's writer does. */
async function writeCapacity(tx: Executor, change: Extract<Change, { kind: "capacity" }>): Promise<void> {
  const { cluster, changes } = change;
  const [at] = await tx.query<{ sequence: number }>(RAISE, [cluster, changes.length]);
  const first = (at?.sequence ?? 0) - changes.length + 1;
  const rows = changes.map(({ key, entry }, place) => ({ cluster, ...key, sequence: first + place, entry }));
  await inParts(tx, CAPACITY, rows);
}

function jobRow({ ask: _, admissions: __, backoff, suspended, awaitsResult, waitsSinceMs, ...gang }: PlanGang) {
  return { ...gang, gang: { suspended, awaitsResult, backoff, waitsSinceMs } };
}

function admissionRows({ uid, admissions }: PlanGang) {
  return admissions.map((admission) => ({ uid, ...admission }));
}

async function inParts(tx: Executor, statement: string, rows: readonly unknown[]): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS) await tx.query(statement, [JSON.stringify(rows.slice(at, at + ROWS))]);
}

/** The changes that end these gangs, and make as many new ones. */
export function turnOver(fleet: Fleet, count: number): readonly Change[] {
  const running = [...fleet.gangs.values()].filter(({ waits }) => !waits);
  const changes: Change[] = [];
  while (changes.length < count && running.length > 0) {
    changes.push(gangChange(fleet.newGang()));
    const gang = fleet.of(running);
    if (fleet.gangs.has(gang.uid)) changes.push(...fleet.end(gang));
  }
  return changes;
}

const ASKS = `
insert into asks (hash, ask) select hash, ask from json_to_recordset($1::json) as r (hash text, ask json)`;

const POOLS =
  "insert into pools (name, domain) select name, 'default' from json_to_recordset($1::json) as r (name text)";

const QUEUES = `
insert into queues (name, parent, strategy, create_ms, update_ms)
select name, parent, strategy, 0, 0 from json_to_recordset($1::json) as r (name text, parent text, strategy text)`;

const QUOTAS = `
insert into queue_quotas (queue, position, flavor, resource, nominal)
select name, position, flavor, resource, nominal
  from json_to_recordset($1::json) as r (name text, position int, flavor text, resource text, nominal bigint)`;

const NAMESPACES = `
insert into namespaces (name, project, default_queue, create_ms)
select name, 'project-0', 'queue-0', 0 from json_to_recordset($1::json) as r (name text)`;

const CLUSTERS = `
insert into clusters (name, labels, flavors, simulated, reachable, capacity_ms, capacity_epoch, create_ms)
select name, '{}', flavors, false, true, 1, 1, 0 from json_to_recordset($1::json) as r (name text, flavors json)`;

const COUNTER = "update clusters set admission_counter = $2 where name = $1";

const RAISE = `
update clusters set capacity_sequence = capacity_sequence + $2 where name = $1 returning capacity_sequence as sequence`;

const CAPACITY = `
insert into cluster_capacity (cluster, kind, name, sequence, entry)
select cluster, kind, name, sequence, entry
  from json_to_recordset($1::json) as r (cluster text, kind text, name text, sequence bigint, entry json)
    on conflict (cluster, kind, name) do update set sequence = excluded.sequence, entry = excluded.entry`;

const JOBS = `
insert into jobs (uid, namespace, name, project, kind, queue, priority, phase, cluster, labels, annotations, created_by,
                  create_ms, version, bucket, sent, spec, status, ask_hash, gang, generation, gang_version)
select uid, namespace, name, project, 'PyTorchJob', queue, priority,
       case when waits then 'WAITING' else 'RUNNING' end, '', '{}', '{}', 'bench',
       "createTimeMs", version, 0, '{}', '{}', '{}', "askHash", gang, generation, version
  from json_to_recordset($1::json) as r (
         uid uuid, namespace text, name text, project text, queue text, priority int, waits boolean,
         "createTimeMs" bigint, version bigint, "askHash" text, gang json, generation bigint)
    on conflict (uid) do update
   set phase = excluded.phase, version = excluded.version, gang_version = excluded.version, gang = excluded.gang`;

const ADMISSIONS = `
insert into admissions (job_uid, number, cluster, state, members, flavors, node_labels, admit_ms)
select uid, number, cluster, state, members, flavors, "nodeLabels", 0
  from json_to_recordset($1::json) as r (
         uid uuid, number int, cluster text, state text, members json, flavors json, "nodeLabels" json)
    on conflict (job_uid, number) do update set members = excluded.members`;

const ENDED = `
with ended as (select uid from json_to_recordset($1::json) as r (uid uuid)),
     left_over as (
       update admissions a set state = 'ended', tokens_released_ms = 1, gone_ms = 1
         from ended e where a.job_uid = e.uid)
update jobs j
   set phase = 'SUCCEEDED', completion_ms = 1, version = j.version + 1, gang_version = j.version + 1
  from ended e where j.uid = e.uid`;

const SUMS = `
insert into allocation_sums (pool, scope, name, used)
select pool, scope, name, used from json_to_recordset($1::json) as r (pool text, scope text, name text, used bigint)
    on conflict (pool, scope, name) do update set used = excluded.used`;

const LOG = `
with changed as (
  select j.uid, j.version, row_number() over () as place
    from json_to_recordset($1::json) as r (uid uuid) join jobs j on j.uid = r.uid
), log as (
  update job_log set head = head + (select count(*) from changed) returning head
)
insert into job_changes (position, job_uid, version, change, job, previous_phase, previous_cluster, at_ms)
select head - place + 1, uid, version, 'MODIFIED', '{}', 'WAITING', '', 1 from changed cross join log`;
