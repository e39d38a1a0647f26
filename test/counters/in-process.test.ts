import assert from "node:assert/strict";
import { test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import { ceilings } from "../tokens/limits.ts";

const ANN = { kind: "caller", name: "ann" } as const;
const ALLOCATION = { pool: "gpu", amount: 4, project: "p", namespace: "n", queue: null, leaseMs: null };
const allocation = (token: string) => ({ ...ALLOCATION, token, caps: { project: null, namespace: null } });

test("a listener gets an offer after the call that made it, and none after it has stopped", async () => {
  const counters = inProcessCounters();
  const limits = ceilings([]);
  const pool = { pool: "gpu", quota: 4, projectDefault: null, namespaceDefault: null };
  await counters.open(1, { rows: [], limits: { ...limits, pools: [pool] } });
  const heard: string[] = [];
  const stops = [1, 2].map((each) => counters.onOffer((waiter) => void heard.push(`${each} ${waiter}`)));
  const first = await counters.grant({
    epoch: 1,
    holder: ANN,
    allocations: [allocation("a")],
    priority: 0,
    waiter: null,
  });
  assert.ok(first.kind === "granted");
  const stand = { epoch: 1, holder: ANN, priority: 0, sinceMs: 0, grants: true };
  for (const token of ["b", "c"]) await counters.stand({ ...stand, waiter: token, allocations: [allocation(token)] });
  await counters.free(1, [{ ...allocation("a"), fence: first.fence }]);
  await Promise.resolve();
  assert.deepEqual(heard, ["1 b", "2 b"]);
  stops[0]?.();
  await counters.free(1, [{ ...allocation("b"), fence: first.fence + 1n }]);
  await Promise.resolve();
  assert.deepEqual(heard, ["1 b", "2 b", "2 c"]);
});
