import assert from "node:assert/strict";
import { test } from "node:test";
import { KINDS } from "../../src/core/kinds/registry.ts";
import { JobService, Verdict } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { shippedRuntimeOf } from "../support/shipped-runtimes.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

type Manifest = NonNullable<Parameters<typeof withName>[0]>;

function withName(manifest: { readonly [key: string]: never } | JsonObject, metadata: JsonObject): never {
  return { ...manifest, metadata } as never;
}

function batch(spec: JsonObject = {}, metadata: JsonObject = { name: "b" }): never {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } };
  const manifest: Manifest = { apiVersion: "batch/v1", kind: "Job", spec: { template, ...spec } };
  return withName(manifest, metadata);
}

test("a manifest makes the job that the command line would make of it, for every kind", async (t) => {
  const { call } = await startFixture(t);
  for (const [at, { name, example, runs }] of KINDS.entries()) {
    if (runs === "service") continue;
    const manifest = withName(example, { name: `j${at}` });
    const { ok, error } = await call(method.createJob, { job: {}, manifest });
    assert.equal(error, null, name);
    assert.equal(ok?.job?.spec?.kind, name);
    assert.equal(ok?.job?.metadata?.name, `j${at}`);
    const read = readManifest(withName(example, { name: `k${at}` }), {
      kinds: OWN_KINDS,
      namespace: { name: "default", isExplicit: false },
      runtimeOf: shippedRuntimeOf,
    });
    assert.ok(read.kind === "job", name);
    const converted = await call(method.createJob, { job: read.job });
    assert.deepEqual(converted.ok?.job?.spec, ok?.job?.spec, name);
  }
});

test("a request may have a manifest without a job, also in a batch and in a simulation", async (t) => {
  const { call } = await startFixture(t);
  const alone = await call(method.createJob, { manifest: batch({ parallelism: 2, completions: 2 }) });
  assert.equal(alone.error, null);
  assert.equal(alone.ok?.job?.spec?.replicaSpecs["Worker"]?.replicas, 2);
  const many = await call(method.batchCreateJobs, {
    requests: [
      { manifest: batch({}, { name: "c" }) },
      { manifest: batch({ backofLimit: 1 }) },
      { job: pytorchJob("d") },
    ],
  });
  assert.deepEqual(
    many.ok?.results.map(({ result }) => result.case),
    ["response", "error", "response"],
  );
  const judged = await call(method.simulateJob, { manifest: batch({}, { name: "e" }) });
  assert.equal(judged.error, null);
  assert.ok(judged.ok !== null && judged.ok.verdict !== Verdict.UNSPECIFIED);
});

test("the namespace of the request, by which rights are judged, cannot be changed by the manifest", async (t) => {
  const { call } = await startFixture(t);
  const inTeam = batch({}, { name: "a", namespace: "team" });
  const { error } = await call(method.createJob, { manifest: inTeam });
  assert.deepEqual(error?.fields, [
    {
      field: "manifest.metadata.namespace",
      description: "must be default, which is job.metadata.namespace, or omitted",
    },
  ]);
  const { ok } = await call(method.createJob, { job: { metadata: { namespace: "team" } }, manifest: inTeam });
  assert.equal(ok?.job?.metadata?.namespace, "team");
});

const wrong: Readonly<Record<string, { readonly request: object; readonly fields: readonly string[] }>> = {
  "a member that is misspelt": {
    request: { manifest: batch({ backofLimit: 1 }) },
    fields: ["manifest.spec.backofLimit"],
  },
  "rules that contradict each other": {
    request: { manifest: batch({ completions: 1, maxFailedIndexes: 1 }) },
    fields: ["manifest.spec.maxFailedIndexes"],
  },
  "a template that no cluster takes": {
    request: {
      manifest: batch({ template: { spec: { restartPolicy: "Never", containers: [{ name: "Main", image: "i" }] } } }),
    },
    fields: ["manifest.spec.template.spec.containers[0].name"],
  },
  "a name that the constraints of the API refuse": {
    request: { manifest: batch({}, { name: "Wrong_Name" }) },
    fields: ["manifest.metadata.name"],
  },
  "a kind that is not served": {
    request: { manifest: { apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "a" }, spec: {} } },
    fields: ["manifest.apiVersion"],
  },
  "no name": { request: { manifest: batch({}, {}) }, fields: ["manifest.metadata.name"] },
  "an empty manifest": { request: { manifest: {} }, fields: ["manifest.apiVersion"] },
  "a job beside the manifest": {
    request: { job: pytorchJob("a"), manifest: batch() },
    fields: ["job.spec", "job.metadata.name"],
  },
  "neither job nor manifest": { request: {}, fields: ["job"] },
};

for (const [name, { request, fields }] of Object.entries(wrong)) {
  test(`a request is refused by its fields: ${name}`, async (t) => {
    const { call } = await startFixture(t);
    const { error } = await call(method.createJob, request as never);
    assert.equal(error?.code, "INVALID_ARGUMENT");
    assert.deepEqual(
      error?.fields.map(({ field }) => field),
      fields,
    );
    const list = await call(method.listJobs, {});
    assert.equal(list.ok?.jobs.length, 0);
  });
}

test("what a manifest has in vain is a warning, and with strict an error", async (t) => {
  const { call } = await startFixture(t);
  const manifest = batch({}, { name: "a", annotations: { "gangway.dev/queu": "x" } });
  const lenient = await call(method.createJob, { manifest, validateOnly: true });
  const field = "manifest.metadata.annotations.gangway.dev/queu";
  assert.deepEqual(
    lenient.ok?.warnings.map((warning) => warning.field).filter((one) => one.startsWith("manifest")),
    [field],
  );
  const strict = await call(method.createJob, { manifest, validateOnly: true, strict: true });
  assert.deepEqual(
    strict.error?.fields.map((one) => one.field),
    [field],
  );
});
