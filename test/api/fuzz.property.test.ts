import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, type DescMethod, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { SERVICES } from "../../src/api/services.ts";
import { CreateJobRequestSchema, JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { startFixture } from "./fixture.ts";
import type { CreateInit } from "./jobs.ts";

type UnaryMethod = DescMethod & { input: DescMessage; output: DescMessage };

const unary: readonly UnaryMethod[] = SERVICES.flatMap((service): readonly UnaryMethod[] => service.methods).filter(
  (method) => method.methodKind === "unary",
);

/** Text that resembles valid values of fields, so that some requests pass the first check. */
const word = fc.oneof(
  fc.constantFrom(
    "default",
    "mnist",
    "Worker",
    "Master",
    "pytorch",
    "PyTorchJob",
    "Job",
    "TFJob",
    "MPIJob",
    "valueOf",
    "__proto__",
  ),
  fc.string({ maxLength: 12, unit: "binary" }),
);
const anyJson = fc.object({
  maxDepth: 4,
  key: word,
  values: [fc.double(), word, fc.boolean(), fc.constant(null)],
  withNullPrototype: false,
});
const container = fc.record(
  { name: fc.oneof(fc.constant("pytorch"), word), image: word, resources: anyJson, env: anyJson },
  { requiredKeys: ["name"] },
);
const template = fc.oneof(
  anyJson,
  fc.record({
    spec: fc.record({ containers: fc.array(fc.oneof(container, anyJson), { maxLength: 3 }) }),
    metadata: anyJson,
  }),
);
const enumNumber = fc.integer({ min: -1, max: 6 });
const int32 = fc.oneof(fc.integer({ min: -1, max: 4 }), fc.integer());
const texts = fc.dictionary(word, word, { maxKeys: 3 });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const request = fc.record({
  requestId: word,
  strict: fc.boolean(),
  validateOnly: fc.boolean(),
  job: optional(
    fc.record({
      metadata: optional(
        fc.record({ name: word, generateName: word, namespace: word, labels: texts, annotations: texts }),
      ),
      spec: optional(
        fc.record({
          kind: word,
          replicaSpecs: fc.dictionary(
            word,
            fc.record({ replicas: optional(int32), template: optional(template), restartPolicy: enumNumber }),
            { maxKeys: 3 },
          ),
          kindSpec: optional(anyJson),
          inputs: optional(anyJson),
          priority: optional(int32),
          placement: optional(
            fc.record({ clusters: fc.array(word), clusterSelector: texts, gpuModels: fc.array(word) }),
          ),
          runPolicy: optional(
            fc.record({
              cleanPodPolicy: enumNumber,
              restartScope: enumNumber,
              backoffLimit: optional(int32),
              activeDeadlineSeconds: optional(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
              schedulingPolicy: optional(fc.record({ minAvailable: optional(int32), queue: word })),
            }),
          ),
        }),
      ),
    }),
  ),
});

/** A job with at most one odd part. */
const nearlyValid = fc
  .record({
    name: fc.constantFrom("a", "b", "c"),
    part: fc.oneof(
      fc.constant({}),
      fc.record({ priority: int32 }),
      fc.record({ kindSpec: fc.record({ nprocPerNode: fc.constantFrom<string | number>("auto", "2", 3, -1) }) }),
      fc.record({
        runPolicy: fc.record({ backoffLimit: int32, schedulingPolicy: fc.record({ minAvailable: int32 }) }),
      }),
    ),
    replicas: fc.integer({ min: 0, max: 3 }),
    extra: fc.oneof(fc.constant({}), anyJson),
  })
  .map(({ name, part, replicas, extra }) => {
    const pods = { spec: { containers: [{ name: "pytorch", image: "x", ...extra }] } };
    const replicaSpecs = { Worker: { replicas, template: pods } };
    return { job: { metadata: { name }, spec: { kind: "PyTorchJob", replicaSpecs, ...part } } };
  });

const RUNS = { numRuns: 300 };

test("no bytes make a call answer INTERNAL", async (t) => {
  const { sendBytes, internal } = await startFixture(t);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...unary), fc.uint8Array({ maxLength: 200 }), async (method, bytes) => {
      const { error } = await sendBytes(method, bytes);
      assert.deepEqual(internal, []);
      assert.notEqual(error?.code, "INTERNAL");
      assert.notEqual(error?.code, "UNKNOWN");
    }),
    RUNS,
  );
});

test("no valid message with a byte changed makes CreateJob answer INTERNAL", async (t) => {
  const { sendBytes, internal } = await startFixture(t);
  const spec = { containers: [{ name: "pytorch", image: "x", resources: { limits: { cpu: 1 } } }] };
  const job = {
    metadata: { name: "mnist" },
    spec: { kind: "PyTorchJob", replicaSpecs: { Worker: { template: { spec } } } },
  };
  const bytes = toBinary(CreateJobRequestSchema, create(CreateJobRequestSchema, { job }));
  const at = fc.nat({ max: bytes.length - 1 });
  await fc.assert(
    fc.asyncProperty(at, fc.nat({ max: 255 }), async (position, value) => {
      const { error } = await sendBytes(JobService.method.createJob, bytes.with(position, value));
      assert.deepEqual(internal, []);
      assert.notEqual(error?.code, "INTERNAL");
    }),
    RUNS,
  );
});

test("no odd job makes CreateJob answer INTERNAL, and a refused job leaves no record", async (t) => {
  const { call, internal, store } = await startFixture(t);
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.oneof(request, nearlyValid), async (odd) => {
      const before = store.jobs.size;
      const { ok, error } = await call(JobService.method.createJob, odd as CreateInit);
      assert.deepEqual(internal, []);
      seen.add(error?.code ?? "OK");
      assert.ok(ok !== null || ["INVALID_ARGUMENT", "ALREADY_EXISTS", "NOT_FOUND"].includes(error.code), error?.code);
      if (ok === null) assert.equal(store.jobs.size, before);
      if (error?.code === "INVALID_ARGUMENT") assert.ok(error.fields.length > 0 && error.detailBytes <= 4096);
    }),
    RUNS,
  );
  assert.deepEqual([...seen].sort(), ["ALREADY_EXISTS", "INVALID_ARGUMENT", "OK"]);
});

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "pool", "ex:pool", "default", "team") },
  fc.string({ maxLength: 8, unit: "binary" }),
);
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt({ min: 1n, max: 3n }) },
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
);
const duration = fc.oneof(
  { weight: 3, arbitrary: fc.record({ seconds: fc.bigInt({ min: 0n, max: 9n }), nanos: fc.constantFrom(0, 1) }) },
  fc.record({ seconds: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), nanos: fc.integer() }),
);
const cap = optional(fc.record({ value: amount }));
const poolSettings = fc.record(
  {
    resourceNamespace: text,
    quota: amount,
    projectDefault: optional(amount),
    namespaceDefault: optional(amount),
    queue: optional(text),
    domain: text,
    defaultLease: optional(duration),
    maxLease: optional(duration),
    durability: enumNumber,
    version: amount,
  },
  { requiredKeys: ["resourceNamespace", "quota"] },
);
const line = fc.record(
  {
    resourceNamespace: text,
    allocationToken: text,
    project: text,
    namespace: text,
    amount: optional(amount),
    resourceConstraints: optional(fc.record({ projectScope: cap, namespaceScope: cap })),
    holder: text,
    lease: optional(duration),
    priority: int32,
    queue: text,
  },
  { requiredKeys: ["resourceNamespace", "allocationToken"] },
);
/** A valid request whose amounts are sometimes invalid. */
const fineLine = fc.record({
  resourceNamespace: fc.constantFrom("pool", "ex:pool", "nowhere"),
  allocationToken: fc.constantFrom("a", "b", "c", "d", "e"),
  amount: fc.bigInt({ min: 1n, max: 3n }),
});
const someLine = fc.oneof({ weight: 4, arbitrary: fineLine }, line);
const batch = fc.oneof(
  fc.record({ lines: fc.array(fineLine, { minLength: 1, maxLength: 3 }) }),
  fc.record(
    { lines: fc.array(someLine, { maxLength: 4 }), holder: text, lease: duration, priority: int32 },
    { requiredKeys: ["lines"] },
  ),
);
const { method } = ResourceManager;
const tokenCall = fc.oneof(
  poolSettings.map((sent) => [method.registerResourceQuota, sent] as const),
  someLine.map((sent) => [method.allocateResource, sent] as const),
  someLine.map((sent) => [method.releaseResource, sent] as const),
  batch.map((sent) => [method.batchAllocateResources, sent] as const),
  batch.map((sent) => [method.batchReleaseResources, sent] as const),
  batch.map((sent) => [method.renewAllocations, sent] as const),
  fc.tuple(someLine, text).map(([sent, reason]) => [method.forceRelease, { ...sent, reason }] as const),
);
/** The codes that a caller may get. */
const MEANT = [
  "OK",
  "INVALID_ARGUMENT",
  "ALREADY_EXISTS",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "RESOURCE_EXHAUSTED",
];

test("no odd call about tokens answers INTERNAL or exceeds the quota of a pool", async (t) => {
  const { call, internal, resources } = await startFixture(t);
  const seen = new Set<string>();
  /** The highest quota that each pool ever had: a lower quota takes no token away. */
  const highest = new Map<string, number>();
  for (const resourceNamespace of ["pool", "ex:pool"]) {
    await call(method.registerResourceQuota, { resourceNamespace, quota: 3n });
  }
  await fc.assert(
    fc.asyncProperty(tokenCall, async ([rpc, sent]) => {
      const before = resources.held.length;
      const { error } = await (call as (rpc: unknown, sent: unknown) => ReturnType<typeof call>)(rpc, sent);
      assert.deepEqual(internal, []);
      const code = error?.code ?? "OK";
      seen.add(`${rpc.name} ${code}`);
      assert.ok(MEANT.includes(code), code);
      if (code === "INVALID_ARGUMENT") {
        assert.ok(error!.fields.length > 0 && error!.detailBytes <= 4096);
        assert.equal(resources.held.length, before);
      }
      for (const { name, quota } of resources.pools.values()) {
        const used = resources.held.filter(({ pool }) => pool === name).reduce((sum, held) => sum + held.amount, 0);
        highest.set(name, Math.max(quota ?? 0, highest.get(name) ?? 0));
        assert.ok(used <= (highest.get(name) ?? 0), `${name} uses ${used} of ${quota}`);
      }
    }),
    { numRuns: 1500 },
  );
  for (const name of ["AllocateResource OK", "AllocateResource INVALID_ARGUMENT", "BatchAllocateResources OK"]) {
    assert.ok(seen.has(name), `${name} is met`);
  }
});
