/**
 * Compares the objects that each kind creates with text that a reviewer has read: the first pod of each replica type,
 * and all that the kind itself makes. `GANGWAY_RECORD=transcripts` writes the files of `transcripts` again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import { KINDS } from "../../../src/core/kinds/registry.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { shippedRuntimeOf } from "../../support/shipped-runtimes.ts";
import { Transcript } from "../reconcile/transcript.ts";
import { admit, CONFIG, jobOf, START_MS, TinyCluster, template } from "../reconcile/world.ts";

function objectsOf(sent: SentSpec): Transcript {
  const job = admit(jobOf(sent), { cluster: "c1", nowMs: START_MS, number: 1 });
  const { actions } = reconcile(job, [new TinyCluster("c1").observe({ nowMs: START_MS, lagMs: 0 })], START_MS, CONFIG);
  const transcript = new Transcript();
  for (const action of actions) {
    if (!("manifest" in action) || action.kind === "createService" || /-[1-9]$/.test(nameOf(action.manifest))) continue;
    transcript.manifest(action.manifest);
  }
  return transcript;
}

function nameOf({ metadata }: JsonObject): string {
  return String((metadata as JsonObject)["name"]);
}

for (const { name, example } of KINDS) {
  test(`the objects of ${name}'s example are as they were reviewed`, () => {
    const outcome = fromManifest(example, OWN_KINDS, { runtimeOf: shippedRuntimeOf });
    assert.ok(outcome.kind === "read");
    objectsOf(outcome.manifest.spec).check(`objects of ${name}`);
  });
}

const gpus = { limits: { "nvidia.com/gpu": 2 } };
const more: Record<string, SentSpec> = {
  "an elastic PyTorchJob": {
    kind: "PyTorchJob",
    replicaSpecs: { Worker: { replicas: 2, template: template("pytorch") } },
    kindSpec: { nprocPerNode: "4", elasticPolicy: { minReplicas: 1, maxReplicas: 3, rdzvBackend: "c10d" } },
  },
  "an MPIJob whose launcher has GPUs": {
    kind: "MPIJob",
    replicaSpecs: {
      Launcher: {
        template: {
          spec: {
            containers: [
              { name: "main", image: "i", resources: gpus },
              { name: "side", image: "i" },
            ],
          },
        },
      },
      Worker: { replicas: 2, template: template("mpi") },
    },
    kindSpec: { slotsPerWorker: 2, mainContainer: "ma'in" },
  },
  "an MPIJob with its own account and no worker": {
    kind: "MPIJob",
    replicaSpecs: {
      Launcher: { template: { spec: { serviceAccountName: "mine", containers: [{ name: "main", image: "i" }] } } },
      Worker: { replicas: 0, template: template("mpi") },
    },
  },
};
for (const [name, sent] of Object.entries(more)) {
  test(`the objects of ${name} are as they were reviewed`, () => objectsOf(sent).check(`objects of ${name}`));
}
