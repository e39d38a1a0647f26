import assert from "node:assert/strict";
import { test } from "node:test";
import { describeNeed } from "../../../../src/core/plan/explain/message-parts.ts";
import { memberGroups } from "../../../../src/core/plan/model/gang.ts";
import type { Resources } from "../../../../src/core/pods/resources.ts";
import { job, planGang } from "../plan-world.ts";

const GPU = "nvidia.com/gpu";
const H100 = { [GPU]: "gpu/h100" };
/** Amounts are in thousandths. */
const of = (requests: Resources, count = 1) => ({ role: "Worker", scheduling: {}, requests, count });
const memory = (bytes: number) => [of({ memory: bytes * 1000 })];

const needs: Record<string, { groups: Parameters<typeof describeNeed>[0]; choice?: typeof H100; words: string }> = {
  "no pod": { groups: [], words: "0 pods" },
  "a pod that requests nothing": { groups: [of({ pods: 1000 })], words: "1 pod" },
  "processors and memory": {
    groups: [of({ cpu: 4000, memory: 2 ** 33 * 1000, pods: 1000 }, 2)],
    words: "2 pods of 4 cpu and 8Gi memory",
  },
  "many processors": { groups: [of({ cpu: 1_024_000 })], words: "1 pod of 1024 cpu" },
  "amounts of zero": { groups: [of({ cpu: 500, memory: 0 })], words: "1 pod of 0.5 cpu" },
  "devices of a flavor, which say enough": {
    groups: [of({ [GPU]: 8000, cpu: 4000 }, 4)],
    choice: H100,
    words: "4 pods of 8 nvidia.com/gpu (gpu/h100)",
  },
  "a flavor that only other pods request": {
    groups: [of({ [GPU]: 0, cpu: 4000 })],
    choice: H100,
    words: "1 pod of 4 cpu",
  },
  "pods of two sorts": {
    groups: [of({ cpu: 1000 }), of({ [GPU]: 8000 }, 2), of({ cpu: 1000 }, 3)],
    choice: H100,
    words: "6 pods (4 of 1 cpu, 2 of 8 nvidia.com/gpu (gpu/h100))",
  },
  "less than a KiB": { groups: memory(1023), words: "1 pod of 1023 memory" },
  "one KiB": { groups: memory(1024), words: "1 pod of 1Ki memory" },
  "a fraction of a KiB": { groups: memory(1025), words: "1 pod of 1025 memory" },
  "a fraction of a MiB": { groups: memory(1536 * 1024), words: "1 pod of 1536Ki memory" },
  "whole MiB": { groups: memory(3 * 2 ** 20), words: "1 pod of 3Mi memory" },
  "more than the largest unit": { groups: memory(2 ** 50), words: "1 pod of 1024Ti memory" },
};
for (const [name, { groups, choice = {}, words }] of Object.entries(needs)) {
  test(`a request in words: ${name}`, () => assert.equal(describeNeed(groups, choice as typeof H100), words));
}

test("a replica type without a member is no group", () => {
  const roles = { Master: { replicas: 1 }, PS: { replicas: 1 }, Worker: { replicas: 2 } };
  const groups = memberGroups(planGang(job({ name: "a", roles })).ask, { Master: 0, Worker: 2 });
  assert.deepEqual(
    groups.map(({ role, count }) => [role, count]),
    [["Worker", 2]],
  );
});
