/**
 * Callers of tokens, in a process of their own: each takes a token and gives it back, again and again. The messages
 * `start` and `stop` begin and end a measurement; `stop` is answered with the times of the grants, in milliseconds,
 * once there is at least one.
 */
import assert from "node:assert/strict";
import { redisCounters } from "../../../src/adapters/counters/redis/redis-counters.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { allocate } from "../../../src/tokens/allocate.ts";
import { release } from "../../../src/tokens/release.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { postgresOptions } from "../../support/postgres.ts";
import { soleDomain } from "../../support/sole-quota.ts";

const [postgres = "", redis = "", installation = "", pool = "", callers = "1"] = process.argv.slice(2);
const clock = systemClock();
const db = await openPostgres(postgresOptions(postgres));
const store = createStore(db, {
  clock,
  kinds: OWN_KINDS,
  openNamespaces: true,
  defaultQueue: "bench",
  onAppended: () => undefined,
});
const quiet = { onError: () => undefined, onWarning: () => undefined };
const counters = await redisCounters({ url: redis, installation, domain: "default", ...quiet });
const domain = soleDomain({ clock, ledger: store.ledgerOf("default", clock), counters });

let measured: { readonly times: number[]; readonly first: PromiseWithResolvers<void> } | null = null;
const stop = new AbortController();

async function call(caller: number): Promise<void> {
  const holder = { kind: "caller", name: `caller-${caller}` } as const;
  const place = { pool, project: "p", namespace: "n" };
  const allocation = { ...place, amount: 1, queue: null, caps: { project: null, namespace: null }, leaseMs: null };
  for (let at = 0; !stop.signal.aborted; at += 1) {
    const token = `${caller}/${at}`;
    const startedMs = clock.monotonicMs();
    const granted = await allocate(domain, { holder, allocations: [{ ...allocation, token }], priority: 0 });
    measured?.times.push(clock.monotonicMs() - startedMs);
    measured?.first.resolve();
    assert.equal(granted.kind, "granted");
    await release(domain, [{ ...place, token, holder }]);
  }
}

const running = Promise.all(Array.from({ length: Number(callers) }, (_, caller) => call(caller)));
process.on("message", async (order) => {
  if (order === "start") measured = { times: [], first: Promise.withResolvers() };
  if (order !== "stop" || measured === null) return;
  await measured.first.promise;
  process.send?.(measured.times);
  measured = null;
});
process.on("disconnect", async () => {
  stop.abort();
  await running;
  await domain.close();
  await counters.close();
  await db.close();
});
