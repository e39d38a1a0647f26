/** The API and intake on a database, and a bare echo, in a process of their own. Messages tell it what to do. */
import { onlyRow } from "../../../src/adapters/store/db/db.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import { openBenchDb, startApiService } from "./api-service.ts";
import { type BareRows, bareRows } from "./bare-rows.ts";
import { startBareServer } from "./bare-server.ts";
import { ownCpuMs, serverCpuMs } from "./cpu-time.ts";
import { startProfile } from "./measure.ts";
import { type Answer, ECHO, INSERT, type Order, SIZED } from "./submit-orders.ts";

async function serve(where: string): Promise<void> {
  const db = await openBenchDb(where);
  const stop = new AbortController();
  const { api, store, watching } = await startApiService(db, stop.signal);
  let rows: BareRows | null = null;
  const echo = await startBareServer({
    [ECHO]: async () => undefined,
    [INSERT]: async () => void (await rows?.insert()),
    [SIZED]: async (request) => Buffer.alloc(request.readUInt32BE()),
  });
  let profiled: Awaited<ReturnType<typeof startProfile>> | null = null;
  const obey = async (order: Order): Promise<Answer> => {
    switch (order.kind) {
      case "row":
        rows = await bareRows(db, order.name);
        return { kind: "done" };
      case "insert":
        return { kind: "inserted", perSecond: await insertRate(rows, order) };
      case "copy": {
        const found = await db.query<{ uid: string }>("select uid from jobs where name = $1", [order.name]);
        await copyJobs(db, { ...order, uid: onlyRow(found).uid });
        await db.query("vacuum analyze");
        return { kind: "done" };
      }
      case "analyze":
        // As the server of an installation that runs for a while has done by itself.
        await db.query("analyze");
        return { kind: "done" };
      case "queue":
        await store.admin.ensureQueue({ name: order.name, strategy: "BEST_EFFORT_FIFO", quotas: [] });
        return { kind: "done" };
      case "finish":
        await db.query(FINISH, [order.namespace]);
        return { kind: "done" };
      case "count":
        return { kind: "counted", ...onlyRow(await db.query<{ jobs: number }>("select count(*) as jobs from jobs")) };
      case "cpu":
        return { kind: "cpu", serviceMs: ownCpuMs(), postgresMs: await serverCpuMs(db) };
      case "profile":
        profiled = await startProfile();
        return { kind: "done" };
      case "profiled":
        return { kind: "profile", times: (await profiled?.()) ?? [] };
      case "end":
        return { kind: "done" };
    }
  };
  process.on("message", (order: Order) => {
    if (order.kind !== "end") return void obey(order).then((answer) => process.send?.(answer));
    stop.abort();
    echo.close();
    void Promise.all([api.close(), watching]).then(async () => {
      await db.close();
      process.disconnect();
    });
  });
  // A bench that fails leaves without an order to end.
  process.on("disconnect", () => process.exit());
  process.send?.({ kind: "ready", api: api.address, echo: echo.address } satisfies Answer);
}

const FINISH = `
update jobs set phase = 'SUCCEEDED', completion_ms = create_ms, recheck_at_ms = null where namespace = $1`;

/** The rows in a second that bare inserts reach. */
async function insertRate(
  bare: BareRows | null,
  { rows, perTransaction }: Extract<Order, { kind: "insert" }>,
): Promise<number> {
  const startMs = performance.now();
  for (let from = 0; from < rows; from += perTransaction) {
    await bare?.insertMany(Math.min(perTransaction, rows - from));
  }
  return (rows * 1000) / (performance.now() - startMs);
}

await serve(process.argv[2] ?? "");
