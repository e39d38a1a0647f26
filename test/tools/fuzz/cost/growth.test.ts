/**
 * A seeded share of the grown requests, in this process and without a clock: what the service does for a request is
 * counted at three sizes, and must not grow faster than the request.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startFixture } from "../../../api/fixture.ts";
import { Caller, framed } from "../caller.ts";
import { methodsNamed } from "../plan.ts";
import { methodNamed, pathOf } from "../surface.ts";
import { operationsProblem, type SizeCount } from "./judge.ts";
import { OperationsCounter } from "./operations.ts";
import { answerSize, type CostInput, namedInput, planInput, sizeOf } from "./plan.ts";

const INPUTS = Number(process.env["GANGWAY_COST_INPUTS"] ?? 40);
const SHARES = [0.25, 0.5, 1];
const STREAM_MS = 50;

/** Inputs that stopped the service for seconds to minutes once. */
const STOPPED: readonly (readonly [method: string, place: string, size: number, unit: string])[] = [
  ["JobService.CreateJob", "replica types{}", 1_600, "!n"],
  ["JobService.CreateJob", "template containers[] that use secrets", 800, "a"],
  ["JobService.CreateJob", "job.metadata.labels{}", 8_000, "!"],
  ["JobService.CreateJob", "job.spec.kind_spec members", 4_000, "a"],
  ["JobService.CreateJob", "template spec unknown members{}", 4_000, "containe"],
  ["JobService.CreateJob", "args that use a long annotation", 4_000, "a"],
  ["JobService.CreateJob", "args that use a long input", 2_000, "a"],
  ["JobService.ListJobs", "filter.labels{}", 6_000, "!"],
  ["JobService.CreateJob", "job.spec.placement.cluster_selector{}", 6_000, "!"],
  ["ResourceManager.RenewAllocations", "lines[]", 6_000, "a"],
  ["ResourceManager.BatchAllocateResources", "lines[]", 1_000, "a"],
];

async function counting(t: TestContext) {
  const counter = new OperationsCounter();
  const { api } = await startFixture(t);
  const caller = new Caller(api.address, 1);
  t.after(() => {
    caller.close();
    counter.close();
  });
  return async ({ method, small, shrunk, items }: CostInput): Promise<string | null> => {
    const options = method.methodKind === "unary" ? {} : { messagesMax: 5, leaveAfterMs: STREAM_MS };
    const countOf = async (request: Buffer): Promise<SizeCount> => {
      let answered = 0;
      const operations = await counter.count(async () => {
        const { messages } = await caller.call(pathOf(method), framed(request), options);
        answered = messages.length === 0 ? 0 : answerSize(method, messages);
      });
      return { bytes: Math.max(sizeOf(method, request), answered), operations };
    };
    // The first call of a kind makes what later ones find.
    await countOf(small);
    const smallest = await countOf(small);
    const sizes: SizeCount[] = [];
    for (const share of SHARES) sizes.push(await countOf(shrunk(share)));
    return operationsProblem({ ...smallest, operations: smallest.operations * items }, sizes);
  };
}

test("requests that once stopped the service cost no more than their size allows, in operations", async (t) => {
  const problemOf = await counting(t);
  const findings: string[] = [];
  for (const [method, place, size, unit] of STOPPED) {
    const input = namedInput(methodNamed(method), place, size, unit);
    const problem = await problemOf(input);
    if (problem !== null) findings.push(`${input.what}: ${problem}`);
  }
  assert.deepEqual(findings, []);
});

test(`${INPUTS} grown requests cost no more than their size allows, in operations`, async (t) => {
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
  t.diagnostic(`GANGWAY_SEED=${seed} GANGWAY_COST_INPUTS=${INPUTS} npm test -- test/tools/fuzz/cost/growth.test.ts`);
  const problemOf = await counting(t);
  const plan = { seed, methods: methodsNamed([]), bytesMin: 20_000, bytesMax: 120_000 };
  const findings: string[] = [];
  for (let number = 0; number < INPUTS; number += 1) {
    const input = planInput(plan, number);
    const problem = await problemOf(input);
    if (problem !== null) findings.push(`input ${number}: ${input.what}: ${problem}`);
  }
  assert.deepEqual(findings, []);
});
