/** What many groups of a JobSet cost, counted without a clock: no more than as many pods in few groups. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { validateJobSet } from "../../../../src/core/kinds/jobset/validate-jobset.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { Scene } from "../../../core/reconcile/scene.ts";
import { submit } from "../../conformance/kinds/submit.ts";
import { OperationsCounter } from "./operations.ts";

const PODS = 400;
/** Each pod finds its group by name among all. Reading all groups for each pod made it 25 times as much. */
const GROWTH_MAX = 8;

const counter = new OperationsCounter(/\/src\//);
after(() => counter.close());

const groups = (count: number, job: JsonObject, more: (at: number) => JsonObject = () => ({})): readonly JsonObject[] =>
  Array.from({ length: count }, (_, at) => ({ name: `g${at}`, ...more(at), template: { spec: job } }));

function jobSetOf(count: number): Scene {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } };
  const job = { parallelism: PODS / count, completions: PODS / count, template };
  const manifest = {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name: "j" },
    spec: { replicatedJobs: groups(count, job) },
  };
  const submitted = submit(manifest, "ns");
  if (submitted.kind === "refused") throw new Error(submitted.fields.join(", "));
  return new Scene(submitted.sent.spec, "main");
}

async function stepCost(count: number): Promise<number> {
  const scene = jobSetOf(count);
  scene.rest();
  assert.equal(scene.podNames.length, PODS);
  return counter.count(async () => void scene.step());
}

test(`a step of ${PODS} pods in 100 groups costs little more than one of ${PODS} pods in 4 groups`, async () => {
  const [few, many] = [await stepCost(4), await stepCost(100)];
  assert.ok(few > PODS, `${few} operations`);
  assert.ok(many <= GROWTH_MAX * few, `${many} operations for 100 groups, ${few} for 4`);
});

test("the check of a JobSet grows as its groups do, also if each depends on the one before", async () => {
  const dependent = (at: number): JsonObject =>
    at === 0 ? {} : { dependsOn: [{ name: `g${at - 1}`, status: "Ready" }] };
  const costOf = (count: number) =>
    counter.count(async () => {
      const kindSpec = { replicatedJobs: groups(count, {}, dependent) };
      const errors = validateJobSet({ kind: "JobSet", replicaSpecs: {}, kindSpec });
      assert.equal(errors.length, count, "each group lacks its replica type");
    });
  const [few, many] = [await costOf(500), await costOf(4_000)];
  assert.ok(many <= 8 * 1.5 * few, `${many} operations for 4,000 groups, ${few} for 500`);
});
