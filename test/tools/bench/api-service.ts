/** The API with intake and watch on one database, as the benches of calls measure them. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { startApi } from "../../../src/api/server.ts";
import { connectClusterAdmin } from "../../../src/compose/cluster-admin.ts";
import { startQuestions } from "../../../src/compose/questions.ts";
import { NO_CALL_LIMITS } from "../../../src/core/access/call-limits.ts";
import { onlyDefault } from "../../../src/core/admin/credential-keys.ts";
import { createIntake } from "../../../src/intake/intake.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { createTelemetry } from "../../../src/telemetry/events.ts";
import { createWatch } from "../../../src/watch/watch.ts";
import { anonymous } from "../../support/anonymous.ts";
import { newDataFolder } from "../../support/data-folder.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { memoryAccess } from "../../support/memory-access.ts";
import { memoryRobots } from "../../support/memory-robots.ts";
import { noResources } from "../../support/no-resources.ts";
import { migratedImage } from "../../support/pglite-image.ts";
import { postgresOptions } from "../../support/postgres.ts";

/**
 * A database that is closed by `close`: in `memory`, that of a migrated database's URL, or in a folder. Empty: in a
 * temporary folder, which `close` removes.
 */
export async function openBenchDb(where: string): Promise<Db> {
  if (where.includes("://")) return await openPostgres(postgresOptions(where));
  if (where === "memory") return await openPglite(null, await migratedImage());
  if (where !== "") return await openPglite(join(where, "db"));
  const temporary = newDataFolder("gangway-bench-");
  const db = await openPglite(join(temporary, "db"));
  const close = () => db.close().then(() => rmSync(temporary, { recursive: true, force: true }));
  return { ...db, close };
}

/** Has the sequencer, because every change gives it work. Planner and worker have benches of their own. */
export async function startApiService(db: Db, signal: AbortSignal) {
  const clock = systemClock();
  let appended = () => {};
  const options = {
    clock,
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "bench",
    onAppended: () => appended(),
  };
  const store = createStore(db, options);
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 8 }];
  await store.admin.ensureQueue({ name: "bench", strategy: "BEST_EFFORT_FIFO", quotas });
  const watch = createWatch({ clock, store: store.watch }, createTelemetry({ level: "silent", file: "/dev/null" }));
  appended = watch.hint;
  const wakes = { wakePlanner: () => {}, wakeJob: () => {} };
  const intake = createIntake({ clock, kinds: OWN_KINDS, store: store.intake, randomBytes, ...wakes });
  const { admin } = store;
  const none = () => Promise.reject(new Error("there are no clusters"));
  const onInternalError = (_reference: string, cause: unknown) => console.error(cause);
  const registry = { refresh: async () => {} };
  const clusters = connectClusterAdmin({
    store,
    registry,
    clock,
    keys: () => onlyDefault(null),
    allowLocal: false,
    simulated: () => null,
  });
  const ports = {
    kinds: OWN_KINDS,
    intake,
    ...startQuestions({ clock, kinds: OWN_KINDS, store, parts: new AsyncDisposableStack() }),
    watch,
    admin,
    priorityClasses: store.priorityClasses,
    runtimes: store.runtimes,
    clusters,
    resources: noResources(),
    clock,
    logs: { look: none, open: none },
    pods: { ofJob: none },
    authenticate: anonymous,
    limits: NO_CALL_LIMITS,
    authorization: null,
    access: memoryAccess().admin,
    robots: memoryRobots(),
    onInternalError,
    limitsChanged: async () => {},
    ...wakes,
  };
  const api = await startApi(ports, { listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: false });
  return { api, store, watching: watch.run(signal) };
}
