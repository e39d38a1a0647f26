/** Law: a pod that is measured is at least as large as the pod that is built, and the measure builds nothing large. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { firstMembers } from "../../../src/core/job/roles.ts";
import { totalReplicas } from "../../../src/core/job/spec.ts";
import { PLAIN_POD_CONFIG } from "../../../src/core/pods/pod-config.ts";
import { POD_BYTES_MAX } from "../../../src/core/pods/pod-size.ts";
import { shapeTemplate } from "../../../src/core/pods/shape-template.ts";
import {
  type BuildTarget,
  createPod,
  podBytes,
  podReplica,
} from "../../../src/core/reconcile/objects/build-objects.ts";
import {
  choosePods,
  JOB_BYTES_MAX,
  STEP_BYTES_MAX,
  sizeErrors,
} from "../../../src/core/reconcile/objects/pod-sizes.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { JsonMeter } from "../../../src/runtime/json-bytes.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, jobOf, START_MS } from "../reconcile/world.ts";

const KINDS = { PyTorchJob: "pytorch", TFJob: "tensorflow", MPIJob: "mpi", PaddleJob: "paddle" } as const;

const word = fc.oneof(
  fc.constantFrom("{{ .Inputs.a }}", "{{.Annotations.k}}", "{{ .JobName }}", "{{.PodName}}", "{{ .OutputPrefix }}"),
  fc.constantFrom(
    "{{ .RawOutputDataPrefix }}",
    "{{ .PerRetryUniqueKey }}",
    "{{.None.x}}",
    "{{.Attempt",
    "/",
    "\\",
    '"',
  ),
  fc.constantFrom("é", "😀", "\ud83d", "\ude00", "\u2028", "\n"),
  fc.string({ maxLength: 90 }),
);
const text = fc.array(word, { maxLength: 8 }).map((words) => words.join(""));
const env = fc.array(fc.record({ name: fc.constantFrom("A", "GANGWAY_JOB_NAME"), value: text }), { maxLength: 2 });
const container = (name: string) => fc.record({ name: fc.constant(name), image: text, args: fc.array(text), env });
const jobs = fc
  .record({
    kind: fc.constantFrom(...(Object.keys(KINDS) as (keyof typeof KINDS)[])),
    others: fc.array(container("side"), { maxLength: 2 }),
    places: fc.dictionary(fc.constantFrom("gangway.dev/outputs", "gangway.dev/inputs", "own"), text),
    workers: fc.integer({ min: 1, max: 12 }),
    inputs: fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(text, fc.array(text, { maxLength: 3 }))),
    annotations: fc.dictionary(fc.constantFrom("k", "l"), text),
    args: fc.array(text, { maxLength: 4 }),
  })
  .map(({ kind, others, places, workers, inputs, annotations, args }) => {
    const main = { name: KINDS[kind], image: "i", args };
    const template = { metadata: { annotations: places }, spec: { containers: [main, ...others] } };
    const roles = kind === "MPIJob" ? { Launcher: 1 } : kind === "TFJob" ? { PS: 1 } : { Master: 1 };
    const counts = { ...roles, Worker: workers };
    const replicaSpecs = Object.fromEntries(
      Object.entries(counts).map(([role, replicas]) => [role, { replicas, template }]),
    );
    return jobOf({ kind, replicaSpecs, inputs }, { annotations });
  });

function targetOf(job: ReturnType<typeof jobOf>): BuildTarget {
  const members = firstMembers(job.spec, totalReplicas(job.spec));
  const kind = OWN_KINDS.kindOf(job.spec.kind);
  assert.ok(kind);
  const admission = { number: 1, cluster: "c", members, flavorLabels: {} };
  return { job, kind, admission, build: CONFIG.build, scheduler: null };
}

function slotsOf(job: ReturnType<typeof jobOf>) {
  return Object.entries(job.spec.replicaSpecs).flatMap(([role, { replicas }]) =>
    Array.from({ length: replicas }, (_, index) => ({ role, index, name: `j-${role}-${index}`, attempt: 1 })),
  );
}

function builtBytes(target: BuildTarget, slot: ReturnType<typeof slotsOf>[number]): number {
  const action = createPod(target, podReplica(target, slot));
  assert.ok(action.kind === "createPod");
  return Buffer.byteLength(JSON.stringify(action.manifest));
}

test("a pod is never larger than its measure, and by at most its slashes and halves of characters smaller", () => {
  fc.assert(
    fc.property(jobs, (job) => {
      const target = targetOf(job);
      const meter = new JsonMeter();
      for (const slot of slotsOf(job)) {
        const measured = podBytes(target, podReplica(target, slot), meter);
        const built = builtBytes(target, slot);
        assert.ok(measured >= built, `${measured} < ${built}`);
        const action = JSON.stringify(createPod(target, podReplica(target, slot)));
        if (!/[\ud800-\udfff]|\\ud|gangway.dev.outputs/.test(action)) assert.equal(measured, built);
      }
    }),
  );
});

test("JSON is measured to the byte, also if its parts are shared", () => {
  fc.assert(
    fc.property(fc.jsonValue(), text, (value, shared) => {
      const whole = { value, list: [value, value, undefined], shared, again: [shared, shared], none: undefined };
      assert.equal(new JsonMeter().bytesOf(whole), Buffer.byteLength(JSON.stringify(whole)));
    }),
  );
});

test("a job passes the intake only if all its pods are within the limits", () => {
  const bounded = jobs.chain((job) =>
    fc.integer({ min: 0, max: 60_000 }).map((repeats) => {
      const annotations = { k: "é".repeat(40) };
      const args = ["{{.Annotations.k}}".repeat(repeats)];
      const replicaSpecs = Object.fromEntries(
        Object.entries(job.spec.replicaSpecs).map(([role, replica]) => {
          const name = KINDS[job.spec.kind as keyof typeof KINDS];
          return [role, { ...replica, template: { spec: { containers: [{ name, image: "i", args }] } } }];
        }),
      );
      return { ...job, annotations, spec: { ...job.spec, replicaSpecs } };
    }),
  );
  fc.assert(
    fc.property(bounded, (job) => {
      const target = targetOf(job);
      const meter = new JsonMeter();
      const largest = Math.max(...slotsOf(job).map((slot) => podBytes(target, podReplica(target, slot), meter)));
      const refused = sizeErrors(job, target.kind, true).length > 0;
      if (largest > POD_BYTES_MAX) assert.ok(refused);
      if (largest < POD_BYTES_MAX - 4_096) assert.ok(!refused);
    }),
    { numRuns: 15 },
  );
});

function trainJob(
  of: { readonly args: readonly string[]; readonly annotations?: Record<string, string> } & Partial<SentSpec>,
) {
  const { args, annotations = {}, ...spec } = of;
  const template = { spec: { containers: [{ name: "main", image: "i", args }] } };
  return jobOf({ kind: "Job", replicaSpecs: { Worker: { replicas: 3, template } }, ...spec }, { annotations });
}

const large: Readonly<Record<string, { readonly job: ReturnType<typeof jobOf>; readonly at: string }>> = {
  "annotations in arguments": {
    job: trainJob({
      args: ["-v", ...Array.from({ length: 60 }, () => "{{.Annotations.k}}".repeat(400))],
      annotations: { k: "a".repeat(250 * 1024) },
    }),
    at: "spec.replicaSpecs.Worker.template.spec.containers[0].args[1]",
  },
  "inputs in arguments": {
    job: trainJob({ args: ["{{.Inputs.k}}".repeat(100_000)], inputs: { k: ["a".repeat(60_000)] } }),
    at: "spec.replicaSpecs.Worker.template.spec.containers[0].args[0]",
  },
  "annotations in the place of outputs, which is in arguments": {
    job: jobOf(
      {
        kind: "Job",
        replicaSpecs: {
          Worker: {
            replicas: 1,
            template: {
              metadata: { annotations: { "gangway.dev/outputs": "{{.Annotations.k}}".repeat(10_000) } },
              spec: { containers: [{ name: "main", image: "i", args: ["{{ .OutputPrefix }}".repeat(10_000)] }] },
            },
          },
        },
      },
      { annotations: { k: "a".repeat(250 * 1024) } },
    ),
    at: "spec.replicaSpecs.Worker.template.spec.containers[0].args[0]",
  },
  "the addresses of all workers in each": {
    job: jobOf({
      kind: "TFJob",
      replicaSpecs: {
        Worker: { replicas: 10_000, template: { spec: { containers: [{ name: "tensorflow", image: "i" }] } } },
      },
    }),
    at: "spec.replicaSpecs",
  },
};
for (const [name, { job, at }] of Object.entries(large)) {
  test(`refused when it is submitted, without being built: ${name}`, () => {
    const kind = OWN_KINDS.kindOf(job.spec.kind);
    assert.ok(kind);
    const [error, ...others] = sizeErrors(job, kind, true);
    assert.equal(error?.path, at);
    assert.match(error?.message ?? "", new RegExp(`: at most (${POD_BYTES_MAX}|${JOB_BYTES_MAX}) are allowed$`));
    assert.deepEqual(others, []);
  });
}

test("a job that was stored with such a template fails when its pods would be built, with the reason", () => {
  const cases = Object.values(large).filter(({ at }) => at !== "spec.replicaSpecs");
  for (const { job } of cases) {
    const admitted = admit(job, { cluster: "c", nowMs: START_MS, number: 1 });
    const seen = { cluster: "c", pods: [], services: [], configMaps: [] };
    const { record, actions } = reconcile(admitted, [seen], START_MS, CONFIG);
    assert.equal(record?.status.phase, "FAILED");
    assert.equal(record.status.failure?.code, "EntityTooLarge");
    assert.match(
      record.status.failure.message,
      /pod j-worker-0 would have \d+ bytes of JSON.*at most 3145728 are allowed/,
    );
    assert.deepEqual(
      actions.filter(({ kind }) => kind === "createPod"),
      [],
    );
  }
});

test("a step chooses the first pods that fit, and at least one", () => {
  const { Worker } = trainJob({ args: ["a".repeat(1024 ** 2)] }).spec.replicaSpecs;
  const many = jobOf({ kind: "Job", replicaSpecs: { Worker: { ...Worker, replicas: 100 } } });
  const chosen = choosePods(targetOf(many), slotsOf(many));
  assert.ok(chosen.kind === "create" && chosen.more);
  assert.equal(chosen.replicas.length, Math.floor(STEP_BYTES_MAX / (1024 ** 2 + 1_000)));
});

test("keys of secrets are counted before each container gets them", () => {
  const containers = Array.from({ length: 128 }, (_, at) => ({ name: `c${at}`, image: "i" }));
  const keys = Array.from({ length: 12_000 }, (_, at) => `s/${at}`).join(",");
  const annotated: JsonObject = { metadata: { annotations: { "gangway.dev/secrets": keys } }, spec: { containers } };
  const outcome = shapeTemplate(annotated, {
    config: PLAIN_POD_CONFIG,
    namespace: "n",
    interruptible: false,
    primaryContainer: "c0",
  });
  assert.ok(outcome.kind === "refused");
  assert.match(
    outcome.errors[0]?.message ?? "",
    /^has 12000 keys, which are \d+ bytes of JSON in 128 containers: at most/,
  );
});
