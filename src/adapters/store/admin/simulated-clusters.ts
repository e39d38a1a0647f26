/**
 * Simulated clusters serve newcomers until a real cluster is registered. From then on they take no gangs, so that no
 * job succeeds although nothing ran. They are forgotten once their gangs have ended.
 */
import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { Topology } from "../../../core/plan/model/topology.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { getCluster, IS_RETIRED } from "./clusters.ts";
import { forgetClusters, recheckPlaced } from "./forget-clusters.ts";
import { ensurePools, type PoolBounds } from "./pools.ts";

export type NewSimulation = Pick<ClusterRecord, "name" | "labels" | "flavors"> & {
  /** True: the cluster takes gangs also beside real clusters. Omitted: only until one is registered. */
  readonly besideReal?: boolean;
  /** The levels of a new cluster; one that is there keeps its own, as it keeps its nodes. Omitted: none. */
  readonly topology?: Topology;
};

/**
 * Notes that this process simulates a cluster; its observed capacity and its cordon stay. Its flavors become pools.
 * Null: it must not, because a real cluster is registered, an admin has removed it, or a real one has its name.
 */
export function simulateCluster(
  db: Db,
  cluster: NewSimulation,
  { nowMs, poolsMax }: PoolBounds,
): Promise<ClusterRecord | null> {
  const { name, labels, flavors, besideReal = false, topology = [] } = cluster;
  return db.tx(async (tx) => {
    await takeRegistrations(tx);
    await tx.query(UPSERT_CLUSTER, [name, json(labels), json(flavors), besideReal, nowMs, json(topology)]);
    const record = await getCluster(tx, name);
    if (record === null || !record.simulated || record.retired) return null;
    const pools = flavors.map((flavor) => flavor.name);
    const refused = await ensurePools(tx, pools, { nowMs, poolsMax });
    if (refused?.kind === "tooManyPools") {
      throw new Error(`cluster ${name} has flavors for more than ${poolsMax} pools, which is the maximum`);
    }
    return record;
  });
}

/**
 * Lets registrations and simulations of clusters follow each other: either a simulation sees the real cluster, or its
 * registration retires the simulated one. It is a row of its own, since neither has a row of the other to lock.
 */
export async function takeRegistrations(tx: Executor): Promise<void> {
  await tx.query("select 1 from installation for no key update");
}

/** Beside real clusters, a new row is not written, one that is there is retired, and a forgotten one stays so. */
const UPSERT_CLUSTER = `
with wanted as (
  select case
           when $4::boolean then 'kept'
           when exists (select from clusters where not simulated and forgotten_ms is null) then 'retired'
           else 'until_real'
         end as simulation
)
insert into clusters as c (name, labels, flavors, simulated, simulation, create_ms, topology)
select $1, $2::jsonb, $3::json, true, (select simulation from wanted), $5::bigint, $6::jsonb
 where (select simulation from wanted) <> 'retired'
    or exists (select from clusters where name = $1 and forgotten_ms is null)
on conflict (name) do update
   set labels = excluded.labels, flavors = excluded.flavors, simulated = true, simulation = excluded.simulation,
       version = c.version + 1, credentials = null, forgotten_ms = null
 where case when c.forgotten_ms is null then c.simulated else c.simulation is distinct from 'removed' end
   and (c.forgotten_ms is not null or c.labels <> excluded.labels or c.flavors::jsonb <> excluded.flavors::jsonb
     or c.simulation is distinct from excluded.simulation)`;

const TAKES_UNTIL_REAL = "simulated and forgotten_ms is null and coalesce(simulation, '') not in ('kept', 'retired')";

/** Locks a cluster and the simulated ones that a registration retires, in the order of their names. */
export async function takeWithSimulated(tx: Executor, name: string): Promise<void> {
  await tx.query(TAKE_WITH_SIMULATED, [name]);
}

const TAKE_WITH_SIMULATED = `
select 1 from clusters where name = $1 or ${TAKES_UNTIL_REAL} order by name for update`;

/** Lets simulated clusters take no more gangs, except those that are kept beside real ones. Returns their names. */
export async function retireSimulated(tx: Executor): Promise<readonly string[]> {
  return (await tx.query<{ name: string }>(RETIRE)).map(({ name }) => name);
}

const RETIRE = `
with simulating as (select name from clusters where ${TAKES_UNTIL_REAL} order by name for update)
update clusters c set simulation = 'retired', version = version + 1
  from simulating s where s.name = c.name
returning c.name`;

/**
 * Forgets retired clusters on which no gang is live, and those that this process does not simulate: no process does so
 * beside a worker, and gangs that were live there wait again. Returns their names.
 */
export async function forgetRetired(
  db: Db,
  { simulatedHere, nowMs }: { readonly simulatedHere: readonly string[]; readonly nowMs: number },
): Promise<readonly string[]> {
  const names = await db.tx(async (tx) => {
    const found = await tx.query<{ name: string }>(LOCK_DRAINED, [json(simulatedHere)]);
    const drained = found.map(({ name }) => name);
    if (drained.length > 0) await forgetClusters(tx, { names: drained, simulation: "retired", nowMs });
    return drained;
  });
  // In a transaction of its own, as when a cluster is deleted.
  if (names.length > 0) await recheckPlaced(db, names, nowMs);
  return names;
}

const LOCK_DRAINED = `
select name from clusters c
 where ${IS_RETIRED} and forgotten_ms is null
   and (name not in (select json_array_elements_text($1::json))
     or not exists (select from admissions where cluster = c.name and state = 'live'))
 order by name for update`;

/** The clusters that take gangs, in the order of their names. None if none of them is simulated. */
export const BESIDE_SIMULATED = `
with taking as (select name, labels, simulated from clusters where forgotten_ms is null and not ${IS_RETIRED})
select name, labels, simulated from taking where exists (select from taking where simulated) order by name`;
