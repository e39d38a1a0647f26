import assert from "node:assert/strict";
import { test } from "node:test";
import { createTelemetry } from "../../src/telemetry/events.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { CONFIG } from "../core/reconcile/world.ts";
import { NO_PODS } from "../worker/harness.ts";
import { MemoryStore } from "../worker/memory-store.ts";

test("a worker counts the buckets that it takes, and those that leave it when it loses its membership", async () => {
  const prometheus = await createPrometheus();
  const telemetry = createTelemetry({ level: "silent", file: null, meter: prometheus });
  const shown = async () =>
    (await prometheus.scrape()).body.split("\n").filter((line) => /^gangway_bucket(s_held|_moves_total\{)/.test(line));
  const store = new MemoryStore(clock);
  let term: { readonly name: string; readonly signal: AbortSignal } | null = {
    name: "w/1",
    signal: new AbortController().signal,
  };
  const worker = createWorker(
    { clock, store: store.port(), clusters: NO_PODS, member: { term: () => term }, wakePlanner: () => undefined },
    {
      config: CONFIG,
      onBuckets: telemetry.bucketsHeld,
      onError: (error) => assert.fail(String(error)),
    },
  );
  await worker.runOnce();
  const taken = 'gangway_bucket_moves_total{change="taken"} 1024';
  assert.deepEqual(await shown(), ["gangway_buckets_held 1024", taken]);
  await worker.runOnce();
  assert.deepEqual(await shown(), ["gangway_buckets_held 1024", taken]);
  term = null;
  await worker.runOnce();
  assert.deepEqual(await shown(), ["gangway_buckets_held 0", taken, 'gangway_bucket_moves_total{change="left"} 1024']);
});
