/** However many mistakes a job has, an answer names the first ones and says how many more there are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { invalidFields } from "../../src/api/rpc/rpc-error.ts";
import { NAMESPACE_RULES } from "../../src/core/admin/namespace.ts";
import { NOTES_MAX } from "../../src/core/job/request/notes.ts";
import type { FieldNote } from "../../src/core/job/request/sent.ts";
import { checkSent } from "../../src/core/kinds/check-sent.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { policyInForce } from "../../src/core/pods/policy/pod-policy.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { checkTemplates } from "../../src/intake/check-templates.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchJob } from "../api/jobs.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const RULES = {
  kinds: OWN_KINDS,
  podConfig: PLAIN_POD_CONFIG,
  podPolicy: policyInForce(null, NAMESPACE_RULES.podPolicyDefault),
  isNew: false,
  isReserved: () => false,
};
const many = (count: number) => Array.from({ length: count }, (_, at) => at);
const record = <T>(count: number, value: T) =>
  Object.fromEntries(many(count).map((at) => [`x${at.toString(36)}`, value]));
const container = { name: "pytorch", image: "x" };

function jobOf(spec: object) {
  const replicaSpecs = { Worker: { template: { spec: { containers: [container], ...spec } } } };
  return {
    namespace: "a",
    name: "a",
    generateName: "",
    labels: {},
    annotations: {},
    spec: { kind: "PyTorchJob", replicaSpecs },
  };
}

test("45,000 unknown fields are 100 warnings and how many more there are", () => {
  const { warnings } = checkTemplates(jobOf(record(45_000, 1)), RULES);
  assert.deepEqual([warnings.length, rest(warnings)], [NOTES_MAX + 1, "and 44,900 more"]);
});

test("45,000 wrong values are 100 errors and how many more there are", () => {
  const { violations } = checkTemplates(
    jobOf({ tolerations: 1, containers: [{ ...container, env: many(45_000).map(() => 0) }] }),
    RULES,
  );
  assert.deepEqual([violations.length, rest(violations)], [NOTES_MAX + 1, "and 44,901 more"]);
});

test("a kind spec with 200,000 wrong members has 100 errors and how many more there are", () => {
  const kind = OWN_KINDS.kindOf("PyTorchJob");
  assert.ok(kind);
  const replicaSpecs = { Worker: {} };
  const errors = checkSent(kind, { kind: "PyTorchJob", replicaSpecs, kindSpec: record(200_000, 1) });
  assert.deepEqual([errors.length, rest(errors)], [NOTES_MAX + 1, "and 199,900 more"]);
});

test("a status of many violations counts those that it does not name", () => {
  const { message } = invalidFields(many(131_156).map((at) => ({ field: `f${at}`, message: "is wrong" })));
  assert.match(message, /; and 131,151 more$/);
});

test("a manifest with 200,000 wrong members has 100 errors and how many more there are", () => {
  const replicaSpecs = Object.fromEntries(many(200_000).map((at) => [`k${at}`, 1]));
  const read = readManifest(
    { apiVersion: "gangway.dev/v1", kind: "PyTorchJob", metadata: { name: "a" }, spec: { replicaSpecs } },
    { kinds: OWN_KINDS, namespace: { name: "default", isExplicit: false } },
  );
  const errors = read.kind === "invalid" ? read.errors : [];
  assert.deepEqual([errors.length, rest(errors)], [NOTES_MAX + 1, "and 199,900 more"]);
});

test("a client gets at most 100 warnings, and is told of the others; with strict they are errors", async (t) => {
  const { call, internal } = await startFixture(t);
  const job = pytorchJob();
  const template = { spec: { containers: [container], ...record(38_000, 1) } };
  const request = {
    job: { ...job, spec: { kind: "PyTorchJob", replicaSpecs: { Worker: { replicas: 1, template } } } },
  };
  const { ok } = await call(JobService.method.createJob, { ...request, validateOnly: true });
  assert.deepEqual([ok?.warnings.length, ok?.warnings.at(-1)?.message], [NOTES_MAX + 1, "and 37,900 more"]);
  const { error } = await call(JobService.method.createJob, { ...request, strict: true });
  assert.deepEqual([error?.code, error?.metadata["violations"]], ["INVALID_ARGUMENT", "38000"]);
  assert.match(error?.message ?? "", /; and 37,995 more$/);
  assert.deepEqual(internal, []);
});

function rest(notes: readonly Pick<FieldNote, "message">[]): string | undefined {
  return notes.at(-1)?.message;
}
