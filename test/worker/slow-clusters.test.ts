import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action, ActOutcome } from "../../src/core/reconcile/decision.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock, until } from "../cluster/harness.ts";
import { CONFIG } from "../core/reconcile/world.ts";
import { gangOf, NO_PODS } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

test("jobs of a cluster are acted on while another cluster answers no write", async (t) => {
  const store = new MemoryStore(clock);
  const made = Array.from({ length: 7 }, () => gangOf());
  for (const job of made) store.add(job);
  const uids = made.map(({ uid }) => uid);
  const slow = uids.slice(0, 6);
  for (const uid of slow) store.admit(uid, "slow");
  for (const uid of uids.slice(6)) store.admit(uid, "fast");
  const gate = Promise.withResolvers<ActOutcome>();
  const acted: string[] = [];
  const nothingIn = (cluster: string) => ({ cluster, pods: [], services: [], configMaps: [] });
  const clusters = {
    ...NO_PODS,
    observe: ({ clusters: named }: { readonly clusters: readonly string[] }) => named.map(nothingIn),
    act: async ({ cluster }: Action): Promise<ActOutcome> => {
      acted.push(cluster);
      return cluster === "slow" ? gate.promise : { kind: "failed", reason: "Tried", message: "" };
    },
  };
  const term = { name: "w/1", signal: new AbortController().signal };
  const worker = createWorker(
    {
      clock,
      store: { ...store.port(), dueJobs: async () => uids },
      clusters,
      member: { term: () => term },
      wakePlanner: () => undefined,
    },
    { config: CONFIG, concurrency: 2, onError: (error) => assert.fail(String(error)) },
  );
  const round = worker.runOnce();
  t.after(() => round);
  await until(() => acted.includes("fast"), "the job of the fast cluster is acted on");
  assert.deepEqual(acted.slice(0, 6), Array(6).fill("slow"), "all jobs of the slow one came first, and wait");
  gate.resolve({ kind: "failed", reason: "Tried", message: "" });
});
