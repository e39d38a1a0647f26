import assert from "node:assert/strict";
import { test } from "node:test";
import { keepAudit } from "../../src/access/audit-retention.ts";

const HOUR_MS = 3_600_000;

test("each hour makes partitions, drops old ones and deletes old entries, also after a step has failed", async () => {
  const stop = new AbortController();
  const left = { partitions: 2, entries: 3 };
  let nowMs = 10 * HOUR_MS;
  const steps: string[] = [];
  const errors: string[] = [];
  const ports = {
    clock: {
      nowMs: () => nowMs,
      sleep: async (ms: number) => {
        steps.push("sleep");
        nowMs += ms;
        if (nowMs === 12 * HOUR_MS) stop.abort();
      },
    },
    makePartitions: async (keptMs: number) => void steps.push(`make for ${keptMs / HOUR_MS}`),
    dropPartition: async (beforeMs: number) => {
      if (nowMs === 10 * HOUR_MS) throw new Error("a lock is not free");
      steps.push(`drop before ${beforeMs / HOUR_MS}`);
      left.partitions -= 1;
      return left.partitions >= 0;
    },
    prune: async (beforeMs: number) => {
      steps.push(`prune before ${beforeMs / HOUR_MS}`);
      const deleted = Math.min(left.entries, 2);
      left.entries -= deleted;
      return deleted;
    },
    onError: (error: unknown) => void errors.push(String(error)),
  };
  await keepAudit(ports, 8 * HOUR_MS, stop.signal);
  assert.deepEqual(errors, ["Error: a lock is not free"]);
  assert.deepEqual(steps, [
    ...["make for 8", "prune before 2", "prune before 2", "prune before 2", "sleep"],
    ...["make for 8", "drop before 3", "drop before 3", "drop before 3", "prune before 3", "sleep"],
  ]);
});
