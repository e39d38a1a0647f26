import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../plan.ts";
import { METHODS, shortName } from "../surface.ts";
import { planInput } from "./plan.ts";
import { GROWING, placesOfMethod } from "./requests.ts";

const names = (method: string) => {
  const found = METHODS.find((one) => shortName(one) === method);
  return found === undefined ? [] : placesOfMethod(found).map(({ name }) => name);
};

test("every list, map, text and document of a request can grow, at any depth", () => {
  const create = names("JobService.CreateJob");
  for (const name of [
    "request_id",
    "job.metadata.labels{}",
    "job.metadata.annotations{}",
    "job.spec.replica_specs{}",
    "job.spec.kind_spec members",
    "job.spec.inputs text",
    "job.spec.run_policy.scheduling_policy.queue",
    "template spec.tolerations[]",
    "template metadata.annotations[gangway.dev/secrets]",
  ]) {
    assert.ok(create.includes(name), `${name} is not among ${create.join(", ")}`);
  }
  assert.ok(names("ResourceManager.RenewAllocations").includes("lines[]"));
  assert.ok(names("JobService.ListJobs").includes("filter.labels{}"));
});

test("an input depends on its seed and number alone, decodes, and is about as large as asked for", () => {
  const methods = GROWING.map(({ method }) => method);
  const plan = { seed: 3, methods, bytesMin: 1_000, bytesMax: 100_000 };
  let total = 0;
  for (let number = 0; number < 500; number += 1) {
    const input = planInput(plan, number);
    assert.deepEqual(planInput(plan, number).request, input.request);
    // Nothing decodes documents that are as deep as these grow.
    assert.ok(decode(input) !== null || /deep|depth/.test(input.what), input.what);
    assert.ok(input.shrunk(0.5).length <= input.request.length + 16, input.what);
    assert.ok(input.request.length < 3_000_000, `${input.what} has ${input.request.length} bytes`);
    total += input.request.length;
  }
  assert.ok(total > 500 * 5_000, `500 inputs have ${total} bytes`);
});
