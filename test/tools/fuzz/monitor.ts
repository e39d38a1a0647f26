/**
 * Runs inside the service's process, loaded before its main file. Measures the event loop, memory and open handles, and
 * reads the embedded database. Answers the messages of the fuzz.
 */
import { PGlite } from "@electric-sql/pglite";
import { Meter } from "./meter.ts";
import type { Stall } from "./stalls.ts";
import { watchStalls } from "./stalls.ts";

export type Order =
  | { readonly id: number; readonly kind: "measure" }
  | { readonly id: number; readonly kind: "stalls" }
  | { readonly id: number; readonly kind: "meter"; readonly collect: boolean }
  | { readonly id: number; readonly kind: "yardstick" }
  | { readonly id: number; readonly kind: "query"; readonly sql: string };

/** Counts of one process, after its garbage was collected. */
export type Footprint = {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly rssBytes: number;
  /** Open handles by kind: sockets, timers, servers. */
  readonly handles: Readonly<Record<string, number>>;
};

/** Each database of the service, from its first transaction on. */
const databases = new Set<PGlite>();
const { transaction } = PGlite.prototype;
Object.assign(PGlite.prototype, {
  transaction(this: PGlite, ...of: Parameters<PGlite["transaction"]>) {
    databases.add(this);
    return transaction.apply(this, of);
  },
});

const stalls = watchStalls();
const meter = new Meter();

function footprint(): Footprint {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  return { heapBytes: heapUsed, externalBytes: external, rssBytes: rss, handles };
}

async function obey(order: Order): Promise<unknown> {
  if (order.kind === "measure") return footprint();
  if (order.kind === "stalls") return stalls.take();
  if (order.kind === "meter") return meter.read(order.collect);
  if (order.kind === "yardstick") return meter.yardstickMs();
  const database = [...databases].find((one) => !one.closed);
  if (database === undefined) throw new Error("this process has no embedded database");
  return (await database.query(order.sql)).rows;
}

process.on("message", (order: Order) => {
  obey(order).then(
    (result) => process.send?.({ id: order.id, result }),
    (error: unknown) => process.send?.({ id: order.id, error: String(error) }),
  );
});
// The process ends as it would without a fuzz: the channel must not keep it alive.
process.channel?.unref();
process.on("disconnect", () => process.exit());

export type { Stall };
