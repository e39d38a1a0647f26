import assert from "node:assert/strict";
import { test } from "node:test";
import { documentedFacts } from "../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { branchesOf } from "../../../src/core/plan/usage/branches.ts";
import { isProtected } from "../../../src/core/plan/victims/protection.ts";
import { job, queue } from "./plan-world.ts";

type Case = {
  readonly preempted: number;
  readonly asked?: number;
  readonly own?: number;
  readonly above?: number;
  readonly spared: boolean;
};

const cases: Record<string, Case> = {
  "nobody has a limit": { preempted: 1000, spared: false },
  "a job that asks for none is spared at once": { preempted: 0, asked: 0, spared: true },
  "a job is not spared before its number": { preempted: 1, asked: 2, spared: false },
  "a job is spared from its number on": { preempted: 2, asked: 2, spared: true },
  "a queue spares its jobs": { preempted: 2, own: 2, spared: true },
  "the queue above counts where the own one says nothing": { preempted: 1, above: 1, spared: true },
  "the nearest queue counts": { preempted: 1, own: 2, above: 1, spared: false },
  "a job that asks for more than its queue allows is spared with the others": {
    preempted: 2,
    asked: 5,
    own: 2,
    spared: true,
  },
  "a job may ask for less than its queue allows": { preempted: 1, asked: 1, own: 5, spared: true },
};
for (const [name, { preempted, asked, own = null, above = null, spared: protection }] of Object.entries(cases)) {
  test(name, () => {
    const of = (maxPreemptions: number | null) => ({ policy: { ...DEFAULT_POLICY, maxPreemptions } });
    const queues = [queue("all", {}, of(above)), queue("q", {}, { ...of(own), parent: "all" })];
    const leaf = branchesOf(queues, () => 0).leaf("q");
    assert.ok(leaf);
    const plain = job({ name: "a", roles: {} });
    const { runPolicy } = plain.spec;
    const schedulingPolicy = {
      ...runPolicy.schedulingPolicy,
      ...(asked === undefined ? {} : { maxPreemptions: asked }),
    };
    const spec = { ...plain.spec, runPolicy: { ...runPolicy, schedulingPolicy } };
    const status = { ...plain.status, attempts: { ...plain.status.attempts, preemptions: preempted } };
    assert.equal(isProtected(documentedFacts({ ...plain, spec, status }), leaf), protection);
  });
}
