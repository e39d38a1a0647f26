/**
 * Reads the fleet for a planner that keeps it in memory: first all of it in pages, then only what has changed. Each
 * read is bounded, and what it says about gangs, sums and settings is of one commit.
 */

import type { Change } from "../../../core/plan/facts/changes.ts";
import type { FleetPlace, FleetRead, KnownFleet } from "../../../core/plan/facts/fleet-read.ts";
import { tenantKey } from "../../../core/plan/model/limited-tenant.ts";
import { type GangUpdate, gangVersion } from "../../../core/plan/model/plan-gang.ts";
import type { RecordedSum } from "../../../core/quota/grant-book.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "../db/db.ts";
import { capacityChanges } from "./fleet-capacity.ts";
import {
  PLAN_CLUSTERS,
  PLAN_HOLDS,
  PLAN_SUMS,
  type PlanClusterRow,
  planCallers,
  planClusters,
  planHolds,
  planPools,
  planQueues,
  planSums,
  planTenants,
} from "./fleet-settings.ts";
import { gangPage, gangsSince, type LogBounds } from "./gang-updates.ts";
import type { GangReading } from "./read-gangs.ts";
import { refreshGangs } from "./refresh-gangs.ts";

/** Reads on from a place. Null: from the beginning. */
export async function readFleet(
  db: Db,
  place: FleetPlace | null,
  known: KnownFleet,
  reading: GangReading,
): Promise<FleetRead> {
  if (place === null) return begin(db, reading);
  return place.loadedTo === null ? follow(db, place, known, reading) : load(db, place, place.loadedTo, reading);
}

/** The first page of gangs. The log's head is noted before, so that no change between the pages is missed. */
async function begin(db: Db, reading: GangReading): Promise<FleetRead> {
  await refreshGangs(db, reading.kinds);
  const { head, incarnation } = await heads(db);
  const place: FleetPlace = { ...NOWHERE, incarnation, position: head };
  return { ...(await load(db, place, null, reading)), restarts: true };
}

async function load(db: Db, place: FleetPlace, after: string | null, reading: GangReading): Promise<FleetRead> {
  const { gangs, next } = await gangPage(db, after, reading);
  const changes = gangs.map((gang) => gangChange({ uid: gang.uid, version: gangVersion(gang), gang }));
  const nothing = { restarts: false, whole: [], callers: null, quotaEpoch: 0 };
  return { ...nothing, changes, place: { ...place, loadedTo: next }, more: true };
}

const NOWHERE: FleetPlace = {
  incarnation: "",
  position: 0,
  loadedTo: "",
  limitsVersion: null,
  transaction: "",
  listed: "",
  serial: 0,
};

type Heads = LogBounds & {
  readonly incarnation: string;
  readonly epoch: number;
  readonly limitsVersion: number;
  /** The oldest transaction that was under way. */
  readonly transaction: string;
  /** True: a program of the version before has changed jobs, whose gangs are to be computed. */
  readonly outdated: boolean;
  /** True: changes of jobs have no position yet. */
  readonly unpositioned: boolean;
  /** A digest of all clusters and holds. */
  readonly listed: string;
};

async function heads(executor: Executor): Promise<Heads> {
  return onlyRow(await executor.query<Heads>(HEADS));
}

const HEADS = `
select l.head, l.pruned_to, l.incarnation, d.epoch, d.limits_version as "limitsVersion",
       (pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296)::text as transaction,
       exists (select from jobs where completion_ms is null and gang_version is distinct from version) as outdated,
       exists (select from job_changes where position is null) as unpositioned,
       md5(concat(
         (select json_agg(c) from (${PLAN_CLUSTERS}) c),
         (select json_agg(h) from (${PLAN_HOLDS}) h)
       )) as listed
  from job_log l cross join quota_domains d where d.name = 'default'`;

/** The changes since a place. One statement looks first, so that a fleet at rest costs no more. */
async function follow(db: Db, place: FleetPlace, known: KnownFleet, reading: GangReading): Promise<FleetRead> {
  const rests = await atRest(db, place);
  if (rests !== null) return rests;
  const serial = place.serial + 1;
  const read = () => readSnapshot(db, (tx) => changesSince(tx, place, known, reading));
  let found = await read();
  // The gangs have other generations once they are computed.
  if (found !== "gap" && found.head.outdated && (await refreshGangs(db, reading.kinds)) > 0) found = await read();
  if (found === "gap") return begin(db, reading);
  const { head, gangs, settings, sums, holds, clusters, callers } = found;
  const capacity = await capacityChanges(db, { clusters, known });
  const { epoch: quotaEpoch, limitsVersion, transaction, listed } = head;
  const isQuiet = capacity.changes.length + gangs.updates.length + sums.length === 0;
  return {
    restarts: false,
    changes: [
      ...settings.queues.map((queue): Change => ({ kind: "queue", name: queue.name, version: serial, queue })),
      ...settings.pools.map((pool): Change => ({ kind: "pool", name: pool.pool, version: serial, pool })),
      ...settings.tenants.map(
        (tenant): Change => ({ kind: "tenant", name: tenantKey(tenant), version: serial, tenant }),
      ),
      ...sums.map(({ scope, used }): Change => ({ kind: "sum", scope, version: serial, used })),
      ...holds.map((one): Change => ({ kind: "holds", version: serial, ...one })),
      ...clusters.map((row) => clusterChange(row, serial)),
      ...capacity.changes,
      ...gangs.updates.map(gangChange),
    ],
    whole: settings.isWhole ? ["queue", "pool", "tenant", "sum", "holds", "cluster"] : ["holds", "cluster"],
    callers,
    quotaEpoch,
    place: {
      incarnation: head.incarnation,
      position: gangs.position,
      loadedTo: null,
      limitsVersion,
      transaction,
      listed: isQuiet ? listed : "",
      serial,
    },
    more: gangs.more || capacity.more,
  };
}

/** The read that tells nothing. Null: something may have changed since the place. */
async function atRest(db: Db, place: FleetPlace): Promise<FleetRead | null> {
  if (place.listed === "") return null;
  const look = onlyRow(await db.query<Heads & { readonly summed: boolean }>(LOOK, [place.transaction]));
  const { head, incarnation, epoch: quotaEpoch, limitsVersion, listed, transaction } = look;
  if (look.unpositioned || look.outdated || look.summed) return null;
  if (
    head !== place.position ||
    incarnation !== place.incarnation ||
    limitsVersion !== place.limitsVersion ||
    listed !== place.listed
  )
    return null;
  const nothing = { restarts: false, changes: [], whole: [], callers: null, more: false };
  return { ...nothing, quotaEpoch, place: { ...place, transaction } };
}

const LOOK = `
select h.*, exists (select from (${PLAN_SUMS}) s) as summed from (${HEADS}) h`;

async function changesSince(tx: Executor, place: FleetPlace, known: KnownFleet, reading: GangReading) {
  const head = await heads(tx);
  // Changes that are known may be lost, and others have got their positions.
  if (head.incarnation !== place.incarnation) return "gap" as const;
  const { position } = place;
  const gangs = await gangsSince(tx, { position, log: head, versionOf: known.versionOf }, reading);
  if (gangs.gap) return "gap" as const;
  const isWhole = place.limitsVersion !== head.limitsVersion;
  const queues = isWhole ? await planQueues(tx) : [];
  const pools = isWhole ? await planPools(tx) : [];
  const tenants = isWhole ? await planTenants(tx) : [];
  const sums = isWhole ? await planSums(tx, null) : await changedSums(tx, place.transaction, known);
  // A turn-over may change no sum, so they are read each time.
  const holds = await planHolds(tx);
  const clusters = await planClusters(tx);
  // Callers' tokens come and go with the sums.
  const callers = sums.length > 0 || isWhole ? await planCallers(tx) : null;
  return { head, gangs, settings: { isWhole, queues, pools, tenants }, sums, holds, clusters, callers };
}

/** A transaction that was under way for long makes the database tell more sums than have changed. */
async function changedSums(tx: Executor, transaction: string, known: KnownFleet): Promise<readonly RecordedSum[]> {
  const sums = await planSums(tx, transaction);
  return sums.filter(({ scope, used }) => used !== known.usedOf(scope));
}

function gangChange(update: GangUpdate): Change {
  return { kind: "gang", ...update };
}

function clusterChange(row: PlanClusterRow, version: number): Change {
  const { epoch: _, sequence: __, observed: ___, legacyMs: ____, ...facts } = row;
  return { kind: "cluster", name: facts.name, version, facts };
}
