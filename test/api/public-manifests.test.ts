/**
 * Manifests of other projects, as they are, in a namespace that allows what they use. GANGWAY_MANIFESTS_2026 names a
 * folder with folders of manifests by kind; runtimes of a file are created before its jobs.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { QUEUE_LABEL } from "../../src/core/job/labels.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService, PodSecurityLevel } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { RuntimeService } from "../../src/gen/gangway/v1/runtime_service_pb.ts";
import { type JsonObject, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { readYamlDocuments } from "../../src/runtime/yaml.ts";
import { startFixture } from "./fixture.ts";

const FOLDER = process.env["GANGWAY_MANIFESTS_2026"] ?? "";
const KINDS = ["Job", "JobSet", "TrainJob"];
const LIMITS = { bytesMax: 4 * 1024 * 1024, depthMax: 64, tokensMax: 500_000, referencesMax: 1_000 };

/** Manifests that Gangway refuses: the member, and the sentence that a user gets. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  "Job/10-x.yaml": ["manifest.metadata.name: is required"],
  // Its authors replace ${WORKLOAD_NAME} before they apply it.
  "JobSet/01-workload-name.yaml": [
    "manifest.metadata.name: must be a DNS label that begins with a letter: at most 63 lower-case letters, digits " +
      "and '-', and a letter or digit at the end",
  ],
  "TrainJob/07-mpi-ddp-sft.yaml": [
    "manifest.spec.runtimePatches[0].manager: must be a domain and a path, such as acme.io/portal",
  ],
  // Trainer refuses it too: its initializer has nowhere to put the dataset.
  "TrainJob/10-multi-step-example.yaml": [
    "runtime.spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts: must mount " +
      "the volume initializer: the step dataset-initializer fills it",
    "manifest.spec.runtimeRef.name: is torch-with-dataset-init: there is no TrainingRuntime of this name in this " +
      "namespace; gangway runtime apply -f FILE makes one",
  ],
};

function documentsIn(path: string): readonly JsonObject[] {
  const read = [...readYamlDocuments(readFileSync(path, "utf8"), LIMITS)].filter((one) => one !== null);
  return read.map((document) => {
    assert.equal(document.kind, "value", path);
    return (document as { readonly value: JsonObject }).value;
  });
}

test("public manifests are taken as they are, but for those that are listed here", async (t) => {
  if (!existsSync(FOLDER)) return t.skip("set GANGWAY_MANIFESTS_2026 to a folder of manifests");
  const { call } = await startFixture(t);
  const podPolicy = { level: PodSecurityLevel.PRIVILEGED, allow: [] };
  const refused: Record<string, readonly string[]> = {};
  let taken = 0;
  for (const kind of KINDS) {
    for (const file of readdirSync(join(FOLDER, kind)).sort()) {
      const documents = documentsIn(join(FOLDER, kind, file));
      const namespace = `${kind.toLowerCase()}-${file.slice(0, 2)}`;
      await call(NamespaceService.method.createNamespace, { namespace: { name: namespace, podPolicy } });
      const wrong: string[] = [];
      for (const document of documents) {
        const isRuntime = /TrainingRuntime$/.test(stringAt(document, "kind") ?? "");
        if (!isRuntime) continue;
        const metadata = objectAt(document, "metadata");
        const isShared = document["kind"] === "ClusterTrainingRuntime";
        const runtime = { name: stringAt(metadata, "name") ?? "", labels: stringMapAt(metadata, "labels") };
        const spec = objectAt(document, "spec") as Record<string, never>;
        const made = await call(RuntimeService.method.createRuntime, {
          runtime: { ...runtime, namespace: isShared ? "" : namespace, spec },
        });
        for (const { field, description } of made.error?.fields ?? []) wrong.push(`${field}: ${description}`);
      }
      const jobs = documents.filter((document) => document["kind"] === kind);
      assert.ok(jobs.length > 0, file);
      for (const document of jobs) {
        const queue = stringMapAt(objectAt(document, "metadata"), "labels")[QUEUE_LABEL];
        if (queue !== undefined) await call(QueueService.method.createQueue, { queue: { name: queue } });
        const metadata = { ...objectAt(document, "metadata"), namespace };
        const manifest = { ...document, metadata } as unknown as Record<string, never>;
        const { error } = await call(JobService.method.createJob, { job: { metadata: { namespace } }, manifest });
        for (const { field, description } of error?.fields ?? []) wrong.push(`${field}: ${description}`);
        if (error !== null && error.fields.length === 0) wrong.push(error.message);
      }
      if (wrong.length === 0) taken += 1;
      else refused[`${kind}/${file}`] = wrong;
    }
  }
  assert.deepEqual(refused, REFUSED);
  t.diagnostic(`${taken} taken`);
});
