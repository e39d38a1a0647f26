import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { checkSent, ignoredMembers } from "../../../src/core/kinds/check-sent.ts";
import type { Kind } from "../../../src/core/kinds/kind.ts";
import { KINDS } from "../../../src/core/kinds/registry.ts";
import { kindsWith } from "../../support/kinds.ts";
import { template } from "../reconcile/world.ts";
import { ETL, etlEntry } from "./plugin-world.ts";

const SERVED = kindsWith(etlEntry);
const AVAILABLE = "spec.runPolicy.schedulingPolicy.minAvailable";
const RESOURCES = "spec.runPolicy.schedulingPolicy.minResources";

const two = { Worker: { replicas: 2, template: template("pytorch") } };
const withPolicy = (schedulingPolicy: NonNullable<SentSpec["runPolicy"]>["schedulingPolicy"]): Partial<SentSpec> => ({
  runPolicy: schedulingPolicy === undefined ? {} : { schedulingPolicy },
});

type Case = { readonly kind?: string; readonly sent: Partial<SentSpec>; readonly errors: readonly string[] };

const cases: Record<string, Case> = {
  "a minimum of all members": { sent: withPolicy({ minAvailable: 2 }), errors: [] },
  "a minimum of one": { sent: withPolicy({ minAvailable: 1 }), errors: [] },
  "a minimum of none": { sent: withPolicy({ minAvailable: 0 }), errors: [`${AVAILABLE} must be at least 1`] },
  "a minimum above the members": {
    sent: withPolicy({ minAvailable: 3 }),
    errors: [`${AVAILABLE} must be at most the number of replicas, 2`],
  },
  "a minimum above the members, of which some are one by default": {
    sent: { ...withPolicy({ minAvailable: 4 }), replicaSpecs: { Master: {}, ...two } },
    errors: [`${AVAILABLE} must be at most the number of replicas, 3`],
  },
  "minimum resources": { sent: withPolicy({ minResources: { cpu: "1", memory: "0" } }), errors: [] },
  "negative minimum resources": {
    sent: withPolicy({ minResources: { cpu: "-1", memory: "1Gi" } }),
    errors: [`${RESOURCES} has "-1" for cpu: must be a quantity of at least 0, such as 64Gi`],
  },
  "minimum resources that are no quantity, of a long text": {
    sent: withPolicy({ minResources: { cpu: "x".repeat(50) } }),
    errors: [`${RESOURCES} has "${"x".repeat(40)}" for cpu: must be a quantity of at least 0, such as 64Gi`],
  },
  "negative replicas": {
    sent: { replicaSpecs: { Worker: { replicas: -1 }, Master: {} } },
    errors: ["spec.replicaSpecs.Worker.replicas must not be negative"],
  },
  "no replicas": {
    sent: { replicaSpecs: { Worker: { replicas: 0 } } },
    errors: ["spec.replicaSpecs must have at least one replica"],
  },
  "negative replicas beside others, which do not count against them": {
    kind: "Job",
    sent: { replicaSpecs: { A: { replicas: 1 }, B: { replicas: -1 } } },
    errors: ["spec.replicaSpecs.B.replicas must not be negative"],
  },
  "a missing replica type, and no replicas": {
    kind: "MPIJob",
    sent: { replicaSpecs: { Worker: { replicas: 0 } } },
    errors: ["spec.replicaSpecs.Launcher is required: every MPIJob has exactly 1"],
  },
  "any replica types of a plain job": { kind: "Job", sent: { replicaSpecs: { "Driver-1": {}, x: {} } }, errors: [] },
  "a replica type of a plain job that is no name": {
    kind: "Job",
    sent: { replicaSpecs: { "1a": {}, ["x".repeat(31)]: {} } },
    errors: ["1a", "x".repeat(31)].map(
      (role) => `spec.replicaSpecs.${role} must be a letter, then up to 29 letters, digits and dashes`,
    ),
  },
  "a replica type of a job without pods": {
    kind: "EtlJob",
    sent: { replicaSpecs: { Worker: {} } },
    errors: ["spec.replicaSpecs.Worker is not allowed: a EtlJob has no replicas"],
  },
  "no replica type of a job without pods": { kind: "EtlJob", sent: { replicaSpecs: {} }, errors: [] },
  "as many workers as both bounds of an elastic policy": {
    sent: { kindSpec: { elasticPolicy: { minReplicas: 2, maxReplicas: 2 } } },
    errors: [],
  },
  "an elastic policy whose bounds exclude each other": {
    sent: { kindSpec: { elasticPolicy: { minReplicas: 3, maxReplicas: 2 } } },
    errors: ["spec.kindSpec.elasticPolicy.maxReplicas must be at least minReplicas, 3"],
  },
  "fewer workers than an elastic policy allows": {
    sent: { kindSpec: { elasticPolicy: { minReplicas: 3 } } },
    errors: ["spec.replicaSpecs.Worker.replicas must be at least minReplicas, 3"],
  },
  "more workers than an elastic policy allows": {
    sent: { kindSpec: { elasticPolicy: { maxReplicas: 1 } } },
    errors: ["spec.replicaSpecs.Worker.replicas must be at most maxReplicas, 1"],
  },
  "a master beyond the bounds of an elastic policy, which are for workers": {
    sent: { replicaSpecs: { Master: {}, ...two }, kindSpec: { elasticPolicy: { minReplicas: 2 } } },
    errors: [],
  },
  "a container of another name beside the kind's own": {
    sent: { replicaSpecs: { Worker: { template: { spec: { containers: [{ name: "a" }, { name: "pytorch" }] } } } } },
    errors: [],
  },
  "no container yet": { sent: { replicaSpecs: { Worker: { template: { spec: {} } } } }, errors: [] },
  "containers of other names alone": {
    sent: { replicaSpecs: { Worker: { template: { spec: { containers: [{ name: "a" }, { name: "b" }] } } } } },
    errors: [
      "spec.replicaSpecs.Worker.template.spec.containers must have a container named pytorch: PyTorchJob requires it",
    ],
  },
};
for (const [name, { kind = "PyTorchJob", sent, errors }] of Object.entries(cases)) {
  test(`${kind}: ${name}: ${errors.length === 0 ? "accepted" : "refused"}`, () => {
    const found = checkSent(SERVED.kindOf(kind)!, { kind, replicaSpecs: two, ...sent });
    assert.deepEqual(
      found.map(({ path, message }) => `${path} ${message}`),
      errors,
    );
  });
}

test("only members that are set are reported as ignored, at any depth", () => {
  const schema = {
    properties: {
      old: { "x-ignored": "it is old" },
      inner: { properties: { old: { "x-ignored": "it is old" } } },
      list: { type: "array" },
      any: true,
    },
  };
  const kind: Kind = { ...ETL, kindSpecSchema: schema };
  const ignored = (kindSpec: SentSpec["kindSpec"]) =>
    ignoredMembers(kind, { kind: "EtlJob", replicaSpecs: {}, ...(kindSpec && { kindSpec }) }).map(({ path }) => path);
  assert.deepEqual(ignored(undefined), []);
  assert.deepEqual(ignored({ old: null, inner: null, list: [1], any: {} }), []);
  assert.deepEqual(ignored({ old: false, inner: { old: 0 }, any: { old: 1 }, list: [{ old: 1 }] }), [
    "spec.kindSpec.old",
    "spec.kindSpec.inner.old",
  ]);
});

/** Which pods lead the gang, of members of each replica type. */
const leaders: Record<string, { members: Readonly<Record<string, number>>; master: readonly string[] }[]> = {
  PyTorchJob: [
    { members: { Master: 1, Worker: 2 }, master: ["Master/0"] },
    { members: { Master: 0, Worker: 2 }, master: ["Worker/0"] },
    { members: { Worker: 2 }, master: ["Worker/0"] },
  ],
  TFJob: [
    { members: { Chief: 1, PS: 1, Worker: 2 }, master: ["Chief/0"] },
    { members: { Chief: 0, PS: 2, Worker: 2 }, master: ["Worker/0"] },
    { members: { PS: 1, Worker: 2 }, master: ["Worker/0"] },
  ],
  XGBoostJob: [{ members: { Master: 1, Worker: 2 }, master: ["Master/0"] }],
  MPIJob: [{ members: { Launcher: 1, Worker: 2 }, master: ["Launcher/0"] }],
  Job: [{ members: { Driver: 1, Worker: 2 }, master: [] }],
};
for (const [name, gangs] of Object.entries(leaders)) {
  for (const { members, master } of gangs) {
    test(`${name}: of ${JSON.stringify(members)} the leader is ${master.join() || "none"}`, () => {
      const kind = KINDS.find((one) => one.name === name)!;
      const all = Object.entries(members).flatMap(([role, count]) =>
        Array.from({ length: count }, (_, index) => ({ role, index })),
      );
      const found = all.filter(({ role, index }) => kind.isMaster(members, role, index));
      assert.deepEqual(
        found.map(({ role, index }) => `${role}/${index}`),
        master,
      );
    });
  }
}
