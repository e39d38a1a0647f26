import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedMessage } from "../../../../src/core/plan/apply/recorded-message.ts";
import type { QuotaRefusal } from "../../../../src/core/plan/model/plan-types.ts";

const quota = (heldBy: readonly string[]) => ({ heldBy }) as unknown as QuotaRefusal;

const cases: Record<
  string,
  { readonly message: string; readonly held?: readonly (readonly string[])[]; readonly says: string }
> = {
  "no holder": {
    message: "needs 8 of gpu/h100; queue a uses 5 of 8",
    held: [[]],
    says: "needs 8 of gpu/h100; queue a uses 5 of 8",
  },
  "holders of two flavors": {
    message:
      "needs 8 of x; queue a uses 5 of 8 (held by n/a, n/b); needs 8 of y; pool y uses 1 of 8 (held by caller (odd))",
    held: [["n/a", "n/b"], ["caller (odd)"]],
    says: "needs 8 of x; queue a uses 5 of 8; needs 8 of y; pool y uses 1 of 8",
  },
  "a pool that keeps tokens for others": {
    message: "needs 8 of x; pool x uses 1 of 8, and keeps 7 for n/first",
    held: [["n/first"]],
    says: "needs 8 of x; pool x uses 1 of 8, and keeps 7 for others",
  },
  "a name with signs of patterns": { message: "uses 1 (held by caller $&.*)", held: [["caller $&.*"]], says: "uses 1" },
  "gangs that are preempted": {
    message: "it is nominated, and waits until the gangs that are preempted for it have ended: n/a, n/b (2 of 4 pods)",
    says: "it is nominated, and waits until the gangs that are preempted for it have ended",
  },
};
for (const [name, { message, held = [], says }] of Object.entries(cases)) {
  test(`a recorded message names no job that comes and goes: ${name}`, () => {
    assert.equal(recordedMessage({ message, quotas: held.map(quota) }), says);
  });
}
