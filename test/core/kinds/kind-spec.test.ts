import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { schemaErrors } from "../../../src/core/kinds/check-schema.ts";
import { checkSent, ignoredMembers } from "../../../src/core/kinds/check-sent.ts";
import { KINDS } from "../../../src/core/kinds/registry.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { template } from "../reconcile/world.ts";

/** The smallest valid replica specs of a kind: every required type once, else one worker. */
function replicasOf(kindName: string, changed: JsonObject = {}) {
  const kind = OWN_KINDS.kindOf(kindName)!;
  const required = kind.roles?.filter(({ min }) => min > 0).map(({ name }) => name) ?? [];
  const roles = [...new Set([...required, "Worker"])];
  const specs = roles.map((role) => [role, { replicas: 1, template: template(kind.defaultContainer ?? "main") }]);
  return { ...Object.fromEntries(specs), ...changed };
}

function errorsOf(kindName: string, sent: { kindSpec?: JsonObject; replicas?: JsonObject } = {}): string[] {
  const { kindSpec = {}, replicas = {} } = sent;
  const spec = { kind: kindName, replicaSpecs: replicasOf(kindName, replicas), kindSpec };
  return checkSent(OWN_KINDS.kindOf(kindName)!, spec).map(
    ({ path, message }) => `${path.replace(/^spec\./, "")} ${message}`,
  );
}

const elastic = (policy: JsonObject) => ({ kindSpec: { elasticPolicy: policy } });
const POLICY = "kindSpec.elasticPolicy";
const one = (container: string, replicas = 1) => ({ replicas, template: template(container) });

type Case = readonly [string, Parameters<typeof errorsOf>[1], readonly string[]];
const refused: Readonly<Record<string, Case>> = {
  "processes per node that are not a number": [
    "PyTorchJob",
    { kindSpec: { nprocPerNode: "many" } },
    ['kindSpec.nprocPerNode must be auto, cpu, gpu or a positive number, not "many"'],
  ],
  "zero processes per node": [
    "PyTorchJob",
    { kindSpec: { nprocPerNode: 0 } },
    ["kindSpec.nprocPerNode must be auto, cpu, gpu or a positive number, not 0"],
  ],
  "a list of processes per node": [
    "PyTorchJob",
    { kindSpec: { nprocPerNode: [1] } },
    ["kindSpec.nprocPerNode must be auto, cpu, gpu or a positive number, not a list"],
  ],
  "an elastic policy that is a flag": [
    "PyTorchJob",
    { kindSpec: { elasticPolicy: true } },
    [`${POLICY} must be an object, not true`],
  ],
  "an elastic policy's numbers, each at its place": [
    "PyTorchJob",
    elastic({ minReplicas: 0, maxReplicas: 1.5, maxRestarts: -1, rdzvPort: 70_000, nProcPerNode: "4" }),
    [
      `${POLICY}.minReplicas must be at least 1, not 0`,
      `${POLICY}.maxReplicas must be a whole number, not 1.5`,
      `${POLICY}.maxRestarts must be at least 0, not -1`,
      `${POLICY}.rdzvPort must be from 1 to 65535, not 70000`,
      `${POLICY}.nProcPerNode must be a whole number, not "4"`,
    ],
  ],
  "an elastic policy's words": [
    "PyTorchJob",
    elastic({ rdzvBackend: "zeus", rdzvHost: "", rdzvId: 7, standalone: "yes" }),
    [
      `${POLICY}.rdzvBackend must be one of c10d, etcd, etcd-v2, not "zeus"`,
      `${POLICY}.rdzvHost must not be empty`,
      `${POLICY}.rdzvId must be text, not 7`,
      `${POLICY}.standalone must be true or false, not "yes"`,
    ],
  ],
  "settings of a rendezvous without a key": [
    "PyTorchJob",
    elastic({
      rdzvConf: [
        { key: "a", value: "b" },
        { value: "c", other: 1 },
      ],
    }),
    [`${POLICY}.rdzvConf[1].key is required`, `${POLICY}.rdzvConf[1].other is not a field of rdzvConf`],
  ],
  "an unknown member of an elastic policy": [
    "PyTorchJob",
    elastic({ min: 1 }),
    [`${POLICY}.min is not a field of elasticPolicy`],
  ],
  "bounds that exclude each other": [
    "PyTorchJob",
    elastic({ minReplicas: 3, maxReplicas: 2 }),
    [`${POLICY}.maxReplicas must be at least minReplicas, 3`],
  ],
  "fewer workers than its bounds allow": [
    "PyTorchJob",
    elastic({ minReplicas: 2 }),
    ["replicaSpecs.Worker.replicas must be at least minReplicas, 2"],
  ],
  "more workers than its bounds allow": [
    "PyTorchJob",
    { ...elastic({ maxReplicas: 2 }), replicas: { Worker: one("pytorch", 3) } },
    ["replicaSpecs.Worker.replicas must be at most maxReplicas, 2"],
  ],
  "the same bounds of PaddlePaddle": [
    "PaddleJob",
    elastic({ minReplicas: 3, maxReplicas: 2 }),
    [`${POLICY}.maxReplicas must be at least minReplicas, 3`],
  ],
  "processes per node in both places": [
    "PyTorchJob",
    { kindSpec: { nprocPerNode: "2", elasticPolicy: { nProcPerNode: 2 } } },
    [`${POLICY}.nProcPerNode must not be set together with nprocPerNode`],
  ],
  "an unknown success policy": [
    "TFJob",
    { kindSpec: { successPolicy: "Most" } },
    ['kindSpec.successPolicy must be one of "", AllWorkers, not "Most"'],
  ],
  "a member of another kind": [
    "TFJob",
    { kindSpec: { slotsPerWorker: 1 } },
    ["kindSpec.slotsPerWorker is not a field of TFJob"],
  ],
  "zero slots per worker": [
    "MPIJob",
    { kindSpec: { slotsPerWorker: 0 } },
    ["kindSpec.slotsPerWorker must be at least 1, not 0"],
  ],
  "more slots than 32 bits can hold": [
    "MPIJob",
    { kindSpec: { slotsPerWorker: 2 ** 31 } },
    ["kindSpec.slotsPerWorker must be from 1 to 2147483647, not 2147483648"],
  ],
  "two launchers": [
    "MPIJob",
    { replicas: { Launcher: one("mpi", 2) } },
    ["replicaSpecs.Launcher.replicas must be exactly 1"],
  ],
  "no launcher among the replicas": [
    "MPIJob",
    { replicas: { Launcher: one("mpi", 0) } },
    ["replicaSpecs.Launcher.replicas must be exactly 1"],
  ],
  "two masters of XGBoost": [
    "XGBoostJob",
    { replicas: { Master: one("xgboost", 2) } },
    ["replicaSpecs.Master.replicas must be exactly 1"],
  ],
  "two masters of PyTorch": [
    "PyTorchJob",
    { replicas: { Master: one("pytorch", 2) } },
    ["replicaSpecs.Master.replicas must be at most 1"],
  ],
  "no worker of JAX": [
    "JAXJob",
    { replicas: { Worker: one("jax", 0) } },
    ["replicaSpecs.Worker.replicas must be at least 1", "replicaSpecs must have at least one replica"],
  ],
  "a master of JAX": [
    "JAXJob",
    { replicas: { Master: one("jax") } },
    ["replicaSpecs.Master is not a replica type of JAXJob; types are: Worker"],
  ],
  "a backend that Caffe2 does not know": [
    "Caffe2Job",
    { kindSpec: { backend: "gloo" } },
    ['kindSpec.backend must be one of none, redis, nfs, not "gloo"'],
  ],
  "another container than the kind's": [
    "PaddleJob",
    { replicas: { Worker: one("main") } },
    ["replicaSpecs.Worker.template.spec.containers must have a container named paddle: PaddleJob requires it"],
  ],
};
for (const [name, [kind, sent, errors]] of Object.entries(refused)) {
  test(`${kind}: ${name}`, () => assert.deepEqual(errorsOf(kind, sent), errors));
}

test("errors name the missing replica types", () => {
  const missed = (kind: string, role: string) =>
    checkSent(OWN_KINDS.kindOf(kind)!, {
      kind,
      replicaSpecs: { [role]: one(OWN_KINDS.kindOf(kind)!.defaultContainer ?? "main") },
    });
  assert.deepEqual(missed("MPIJob", "Worker"), [
    { path: "spec.replicaSpecs.Launcher", message: "is required: every MPIJob has exactly 1" },
  ]);
  assert.deepEqual(missed("XGBoostJob", "worker"), [
    { path: "spec.replicaSpecs.Master", message: "is required: every XGBoostJob has exactly 1" },
  ]);
  assert.deepEqual(
    checkSent(OWN_KINDS.kindOf("PyTorchJob")!, {
      kind: "PyTorchJob",
      replicaSpecs: { Master: one("pytorch") },
      kindSpec: { elasticPolicy: {} },
    }),
    [{ path: "spec.kindSpec.elasticPolicy", message: "needs the replica type Worker" }],
  );
});

const accepted: Readonly<Record<string, Case>> = {
  "processes per node as a number": ["PyTorchJob", { kindSpec: { nprocPerNode: 4 } }, []],
  "an elastic policy in full": [
    "PyTorchJob",
    elastic({
      minReplicas: 1,
      maxReplicas: 3,
      rdzvBackend: "etcd-v2",
      rdzvConf: [{ key: "k", value: "v" }],
      metrics: [{ type: "Resource" }],
    }),
    [],
  ],
  "containers of an MPIJob by any name": [
    "MPIJob",
    { replicas: { Launcher: one("mpi-launcher"), Worker: one("mpi-worker", 0) } },
    [],
  ],
  "several masters of PaddlePaddle, which are its parameter servers": [
    "PaddleJob",
    { replicas: { Master: one("paddle", 2) } },
    [],
  ],
  "null for omitted members": ["TFJob", { kindSpec: { successPolicy: null, slotsPerWorker: null } }, []],
};
for (const [name, [kind, sent, errors]] of Object.entries(accepted)) {
  test(`${kind} accepts ${name}`, () => assert.deepEqual(errorsOf(kind, sent), errors));
}

test("members that are accepted but ignored are reported", () => {
  const spec = { kind: "PyTorchJob", replicaSpecs: {}, kindSpec: { elasticPolicy: { metrics: [{}] } } };
  assert.deepEqual(ignoredMembers(OWN_KINDS.kindOf("PyTorchJob")!, spec), [
    { path: "spec.kindSpec.elasticPolicy.metrics", message: "is ignored: Gangway creates no autoscaler" },
  ]);
});

/** Values that a schema allows, as far as kinds use schemas. */
function allowedBy(schema: JsonObject): fc.Arbitrary<Json> {
  const choices = schema["enum"];
  if (Array.isArray(choices)) return fc.constantFrom(...(choices as Json[]));
  const minimum = Number(schema["minimum"] ?? 0);
  switch (Array.isArray(schema["type"]) ? schema["type"][1] : schema["type"]) {
    case "integer":
      return fc.integer({ min: minimum, max: Number(schema["maximum"] ?? 1000) });
    case "boolean":
      return fc.boolean();
    case "string":
      return fc.string({ minLength: 1 });
    case "array":
      return fc.array(allowedBy(schema["items"] as JsonObject), {
        minLength: Number(schema["minItems"] ?? 0),
        maxLength: 3,
      });
    default: {
      const members = Object.entries((schema["properties"] ?? {}) as JsonObject);
      const arbitraries = members.map(([name, inner]) => [name, allowedBy(inner as JsonObject)] as const);
      const requiredKeys = (schema["required"] ?? []) as string[];
      return fc.record(Object.fromEntries(arbitraries), { requiredKeys }) as fc.Arbitrary<Json>;
    }
  }
}

for (const kind of KINDS) {
  test(`${kind.name}: its schema accepts allowed values, and refuses unknown members and wrong types`, () => {
    const names = Object.keys((kind.kindSpecSchema["properties"] ?? {}) as JsonObject);
    fc.assert(
      fc.property(allowedBy(kind.kindSpecSchema), fc.nat(), (value, at) => {
        assert.deepEqual(schemaErrors(kind.kindSpecSchema, value, "k"), []);
        const odd = { ...(value as JsonObject), surely_unknown: 1 };
        assert.equal(schemaErrors(kind.kindSpecSchema, odd, "k").length, 1);
        const name = names[at % Math.max(names.length, 1)];
        if (name === undefined) return;
        // No member of any kind is a list of lists.
        const wrong = { ...(value as JsonObject), [name]: [[]] };
        const found = schemaErrors(kind.kindSpecSchema, wrong, "k").map(({ path }) => path);
        assert.ok(found.length > 0 && found.every((path) => path.startsWith(`k.${name}`)));
      }),
    );
  });
}
