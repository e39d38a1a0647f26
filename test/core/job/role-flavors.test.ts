/** Maps of flavors: for all replica types, or for each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { recordOf, toProtoJob } from "../../../src/api/job/convert-job.ts";
import { flavorWords, ofRole, shownFlavors } from "../../../src/core/job/flavor-labels.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { amountsOfMembers } from "../../../src/core/plan/model/flavors.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { JobSchema } from "../../../src/gen/gangway/v1/job_pb.ts";
import { arrayAt, objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, jobOf, START_MS } from "../reconcile/world.ts";

const GPU = "nvidia.com/gpu";
const NIC = "rdma/hca";
const together = { [GPU]: "gpu/h100", [NIC]: "nic/ib" };
const apart = { [`Master:${GPU}`]: "gpu/h100", [`Worker:${GPU}`]: "gpu/a100", [NIC]: "nic/ib" };

const cases = {
  "one list for all types": {
    flavors: together,
    worker: together,
    shown: { flavors: together, roleFlavors: {} },
    words: "gpu/h100, nic/ib",
    amounts: { "gpu/h100": 18, "nic/ib": 4 },
  },
  "a list for each type": {
    flavors: apart,
    worker: { [GPU]: "gpu/a100", [NIC]: "nic/ib" },
    shown: {
      flavors: together,
      roleFlavors: {
        Master: { flavors: together },
        Worker: { flavors: { [GPU]: "gpu/a100", [NIC]: "nic/ib" } },
      },
    },
    words: "gpu/a100 (Worker), gpu/h100 (Master), nic/ib",
    amounts: { "gpu/h100": 2, "gpu/a100": 16, "nic/ib": 4 },
  },
  "no flavors": { flavors: {}, worker: {}, shown: { flavors: {}, roleFlavors: {} }, words: "", amounts: {} },
};
for (const [name, { flavors, worker, shown, words, amounts }] of Object.entries(cases)) {
  test(`${name}: a type has its own, answers and words show all, and members hold tokens of their own pools`, () => {
    assert.deepEqual(ofRole(flavors, "Worker"), worker);
    assert.deepEqual(shownFlavors(flavors), shown);
    assert.equal(flavorWords(flavors), words);
    const groups = [
      { role: "Master", count: 1, requests: { [GPU]: 1500 }, scheduling: {} },
      { role: "Worker", count: 4, requests: { [GPU]: 4000, [NIC]: 1000 }, scheduling: {} },
    ];
    assert.deepEqual(Object.fromEntries(amountsOfMembers(groups, flavors)), amounts);
  });
}

const labels = { [`Master:${GPU}`]: { gpu: "h100" }, [`Worker:${GPU}`]: { gpu: "a100" } };
const flavors = { [`Master:${GPU}`]: "gpu/h100", [`Worker:${GPU}`]: "gpu/a100" };

function admitted(changed: Partial<Admission>): Job {
  const spec = {
    template: { spec: { containers: [{ name: "pytorch", image: "img", resources: { limits: { [GPU]: 1 } } }] } },
  };
  const job = admit(jobOf({ kind: "PyTorchJob", replicaSpecs: { Master: spec, Worker: spec } }), {
    ...{ cluster: "c", nowMs: START_MS, number: 1 },
  });
  return { ...job, admissions: job.admissions.map((one) => ({ ...one, ...changed })) };
}

test("pods are built with the labels of the flavors of their own type, and equal templates do not change that", () => {
  const seen = { cluster: "c", pods: [], services: [], configMaps: [] };
  const { actions } = reconcile(admitted({ flavors, flavorLabels: labels }), [seen], START_MS, CONFIG);
  const terms = actions.flatMap((action) => {
    if (action.kind !== "createPod") return [];
    const required = objectAt(objectAt(objectAt(action.manifest, "spec"), "affinity"), "nodeAffinity");
    const list = arrayAt(objectAt(required, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
    const own = stringMapAt(objectAt(action.manifest, "metadata"), "labels");
    const values = list.flatMap((term) => arrayAt(term, "matchExpressions")).flatMap((one) => arrayAt(one, "values"));
    return [`${own["training.kubeflow.org/replica-type"]} ${values.join()}`];
  });
  assert.deepEqual(terms, ["master h100", "worker a100"]);
});

test("an answer shows the flavors of types that differ, and nothing more of those that do not", () => {
  const shownOf = (job: Job) => {
    const { flavors: first, roleFlavors } =
      create(JobSchema, toProtoJob(recordOf(job), { view: "BASIC", kinds: OWN_KINDS })).status?.admission ?? {};
    return [first, Object.entries(roleFlavors ?? {}).map(([role, own]) => [role, own.flavors])];
  };
  assert.deepEqual(shownOf(admitted({ flavors })), [
    { [GPU]: "gpu/h100" },
    [
      ["Master", { [GPU]: "gpu/h100" }],
      ["Worker", { [GPU]: "gpu/a100" }],
    ],
  ]);
  assert.deepEqual(shownOf(admitted({ flavors: { [GPU]: "gpu/h100" } })), [{ [GPU]: "gpu/h100" }, []]);
});
