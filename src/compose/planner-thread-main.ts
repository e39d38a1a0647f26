/** The thread that decides for the planner: see `planner-thread`. */
import { parentPort, workerData } from "node:worker_threads";
import { loadKinds } from "../adapters/plugins/load-kinds.ts";
import { openPostgres } from "../adapters/store/db/postgres.ts";
import { fleetStore } from "../adapters/store/store.ts";
import { createFleetPlanner } from "../planner/fleet-planner.ts";
import { invariant } from "../runtime/assert.ts";
import { answerCalls } from "../runtime/thread-calls.ts";
import type { PlannerThreadData } from "./planner-thread.ts";

/** One connection decides, and one compares the state with the store meanwhile. */
const CONNECTIONS = 2;

invariant(parentPort !== null, "this file runs in a thread");
const { server, plugins, reservationsPerPool, workingDirectory, stopped } = workerData as PlannerThreadData;
const { url, directUrl, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs } = server;
const kinds = await loadKinds(plugins, workingDirectory);
// The next statement tells of a connection that is lost.
const onError = () => {};
const db = await openPostgres({
  url,
  pooled: directUrl !== url,
  poolMax: CONNECTIONS,
  connectTimeoutMs,
  statementTimeoutMs,
  idleTimeoutMs,
  onError,
});
const planner = createFleetPlanner(fleetStore(db, kinds), {
  isStopped: () => Atomics.load(stopped, 0) === 1,
  monotonicMs: () => performance.now(),
  reservationsPerPool,
});
answerCalls(parentPort, {
  decide: planner.decide,
  reread: planner.reread,
  sayAgain: planner.sayAgain,
  check: planner.check,
});
