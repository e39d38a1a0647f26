/**
 * Keeps other workers away from a database whose clusters one process simulates: only that process reaches its
 * simulated clusters, and a job that another worker got would wait for ever.
 */
import type { Clock } from "../../../runtime/clock.ts";
import { type Executor, storable } from "../db/db.ts";

/** The process that simulates clusters holds this lease. */
export const SIMULATION_LEASE = "simulated clusters";

export class SoleWorkerError extends Error {
  override readonly name = "SoleWorkerError";
}

type Worker = { readonly name: string; readonly counter: number };

/** How often the other workers are read. A worker that lives renews its row several times in its lease. */
const LOOK_MS = 100;

/**
 * Resolves once no worker lives but those of this process. Throws `SoleWorkerError` as soon as another one renews its
 * row; a dead one loses its row after its lease, by this process' own membership.
 */
export function awaitNoOtherWorker(db: Executor, processName: string, clock: Clock): Promise<void> {
  return awaitNone(
    () => db.query<Worker>(OTHER_WORKERS, [storable(`${processName}/`)]),
    (name) =>
      new SoleWorkerError(
        `process ${name} works on the jobs of this database, and could not reach the clusters that this process ` +
          "simulates: stop it, or use another database",
      ),
    clock,
  );
}

const OTHER_WORKERS = `
select name, counter from workers where takes_buckets and not starts_with(name, $1)`;

/** Resolves once no other process simulates clusters. Throws `SoleWorkerError` if one that does so lives. */
export function awaitNoSimulation(db: Executor, processName: string, clock: Clock): Promise<void> {
  return awaitNone(
    () => db.query<Worker>(SIMULATING_WORKERS, [SIMULATION_LEASE, storable(`${processName}/`)]),
    (name) =>
      new SoleWorkerError(
        `process ${name} simulates the clusters of this database, which no other worker can reach: stop it, or leave ` +
          "the role worker to it",
      ),
    clock,
  );
}

const SIMULATING_WORKERS = `
select w.name, w.counter from leases l join workers w on w.name = l.holder
 where l.name = $1 and not starts_with(w.name, $2)`;

async function awaitNone(
  read: () => Promise<readonly Worker[]>,
  refusal: (name: string) => SoleWorkerError,
  clock: Clock,
): Promise<void> {
  const first = new Map<string, number>();
  for (let workers = await read(); workers.length > 0; workers = await read()) {
    for (const { name, counter } of workers) {
      const before = first.get(name) ?? counter;
      if (counter !== before) throw refusal(name);
      first.set(name, before);
    }
    await clock.sleep(LOOK_MS);
  }
}
