/** The API and intake on a database, and a bare echo, in a process of their own. Messages tell it what to do. */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { startApi } from "../../src/api/server.ts";
import { connectClusterAdmin } from "../../src/compose/cluster-admin.ts";
import { startQuestions } from "../../src/compose/questions.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createTelemetry } from "../../src/telemetry/events.ts";
import { createWatch } from "../../src/watch/watch.ts";
import { anonymous } from "../support/anonymous.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { noResources } from "../support/no-resources.ts";
import { startProfile } from "./measure.ts";
import { type Answer, ECHO, type Order } from "./submit-orders.ts";

async function serve(where: string): Promise<void> {
  const temporary = where === "" ? mkdtempSync(join(tmpdir(), "gangway-bench-")) : null;
  const db = await openPglite(where === "memory" ? null : join(temporary ?? where, "db"));
  const stop = new AbortController();
  const { api, watching } = await startService(db, stop.signal);
  const echo = new Server();
  echo.addService(
    { echo: { path: ECHO, requestStream: false, responseStream: false, ...identity } },
    {
      echo: (call: { request: Buffer }, callback: (error: null, value: Buffer) => void) => callback(null, call.request),
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, at: number) => (error === null ? resolve(at) : reject(error));
    echo.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
  });
  let profiled: Awaited<ReturnType<typeof startProfile>> | null = null;
  const obey = async (order: Order): Promise<Answer> => {
    if (order.kind === "insert") return { kind: "inserted", perSecond: await insertRate(db, order) };
    if (order.kind === "profile") profiled = await startProfile();
    if (order.kind === "profiled") return { kind: "profile", times: (await profiled?.()) ?? [] };
    return { kind: "done" };
  };
  process.on("message", (order: Order) => {
    if (order.kind !== "end") return void obey(order).then((answer) => process.send?.(answer));
    stop.abort();
    echo.forceShutdown();
    void Promise.all([api.close(), watching]).then(async () => {
      await db.close();
      if (temporary !== null) rmSync(temporary, { recursive: true, force: true });
      process.disconnect();
    });
  });
  // A bench that fails leaves without an order to end.
  process.on("disconnect", () => process.exit());
  process.send?.({ kind: "ready", api: api.address, echo: `127.0.0.1:${port}` } satisfies Answer);
}

const pass = (bytes: Buffer) => bytes;
const identity = {
  requestSerialize: pass,
  requestDeserialize: pass,
  responseSerialize: pass,
  responseDeserialize: pass,
};

/** Has the sequencer, because every submit gives it work. Planner and worker have benches of their own. */
async function startService(db: Db, signal: AbortSignal) {
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
  const clusters = connectClusterAdmin({ store, registry, clock, key: null, allowLocal: false, simulated: () => null });
  const ports = {
    kinds: OWN_KINDS,
    intake,
    ...startQuestions({ clock, kinds: OWN_KINDS, store, parts: new AsyncDisposableStack() }),
    watch,
    admin,
    clusters,
    resources: noResources(),
    clock,
    logs: { look: none, open: none },
    pods: { ofJob: none },
    authenticate: anonymous,
    robots: memoryRobots(),
    onInternalError,
    limitsChanged: async () => {},
    ...wakes,
  };
  const api = await startApi(ports, { listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: false });
  return { api, watching: watch.run(signal) };
}

/** The rows in a second that bare inserts reach. */
async function insertRate(
  db: Db,
  { rows, bytes, perTransaction }: Extract<Order, { kind: "insert" }>,
): Promise<number> {
  await db.query("create table if not exists bench_rows (id bigint primary key, doc json not null)");
  await db.query("truncate bench_rows");
  const doc = JSON.stringify({ text: "x".repeat(Math.max(0, bytes - 11)) });
  const startMs = performance.now();
  for (let from = 0; from < rows; from += perTransaction) {
    const ids = Array.from({ length: Math.min(perTransaction, rows - from) }, (_, at) => from + at);
    const docs = ids.map(() => doc);
    await db.tx((tx) => tx.query(INSERT_ROWS, [ids, docs]));
  }
  return (rows * 1000) / (performance.now() - startMs);
}

const INSERT_ROWS = `
insert into bench_rows (id, doc) select id, doc::json from unnest($1::bigint[], $2::text[]) as r (id, doc)
on conflict (id) do nothing`;

await serve(process.argv[2] ?? "");
