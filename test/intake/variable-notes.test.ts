import assert from "node:assert/strict";
import { test } from "node:test";
import { NAMESPACE_RULES } from "../../src/core/admin/namespace.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { policyInForce } from "../../src/core/pods/policy/pod-policy.ts";
import { TemplateJudge } from "../../src/intake/judged-templates.ts";
import { newJob } from "../../src/intake/new-job.ts";
import { variableNotes } from "../../src/intake/variable-notes.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { OWN_KINDS } from "../support/kinds.ts";

type Shape = {
  readonly kind?: string;
  readonly container?: string;
  readonly roles?: Readonly<Record<string, number>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly podConfig?: typeof PLAIN_POD_CONFIG;
};

/** The notes about a job whose containers have these variables, as `field: message` below the container. */
function notesOf(env: readonly JsonObject[], shape: Shape = {}) {
  const { kind = "PyTorchJob", container = "pytorch", roles = { Master: 1, Worker: 3 }, annotations = {} } = shape;
  const template = { metadata: { annotations }, spec: { containers: [{ name: container, image: "x", env }] } };
  const replicaSpecs = Object.fromEntries(
    Object.entries(roles).map(([role, replicas]) => [role, { replicas, template }]),
  );
  const sent: SentJob = {
    namespace: "default",
    name: "mnist",
    generateName: "",
    labels: {},
    annotations: {},
    spec: { kind, replicaSpecs },
  };
  const podPolicy = policyInForce(null, NAMESPACE_RULES.podPolicyDefault);
  const rules = { kinds: OWN_KINDS, podPolicy, podConfig: shape.podConfig ?? PLAIN_POD_CONFIG };
  const { made } = new TemplateJudge().judge(sent, { ...rules, isNew: false, isReserved: () => false }, true);
  const job = newJob(sent, {
    kind: OWN_KINDS.kindOf(kind)!,
    project: "p",
    namespaceQueue: null,
    priorityClass: null,
    uid: "u",
    name: "mnist",
    createdBy: "alice",
    templates: made?.templates ?? {},
    nowMs: 0,
  });
  const { ignored, kept } = variableNotes(sent, job, OWN_KINDS);
  const short = (notes: typeof ignored) =>
    notes.map(
      ({ field, message }) =>
        `${field.replace(/^job\.spec\.replica_specs|\.template\.spec|containers/g, "")}: ${message}`,
    );
  return { ignored: short(ignored), kept: short(kept) };
}

const cases: Readonly<
  Record<string, { env: readonly JsonObject[]; shape?: Shape; ignored?: string[]; kept?: string[] }>
> = {
  "a variable by which members find each other is the kind's": {
    env: [
      { name: "A", value: "1" },
      { name: "MASTER_PORT", value: "29500" },
    ],
    shape: { roles: { Master: 1 } },
    ignored: ["[Master].[0].env[1]: is ignored: the kind PyTorchJob sets MASTER_PORT=23456, not MASTER_PORT=29500"],
  },
  "a variable that differs from pod to pod is shown with its first values": {
    env: [{ name: "RANK", value: "0" }],
    shape: { roles: { Worker: 4, Master: 1 } },
    ignored: ["[Worker].[0].env[0]: is ignored: the kind PyTorchJob sets RANK=1, RANK=2 and so on, not RANK=0"],
  },
  "the same value as the kind's is no news": { env: [{ name: "WORLD_SIZE", value: "4" }] },
  "a value from another source is shown by its source": {
    env: [{ name: "WORLD_SIZE", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } }],
    shape: { roles: { Master: 1 } },
    ignored: [
      "[Master].[0].env[0]: is ignored: the kind PyTorchJob sets WORLD_SIZE=1, not WORLD_SIZE from configMapKeyRef",
    ],
  },
  "PYTHONUNBUFFERED is the template's": {
    env: [{ name: "PYTHONUNBUFFERED", value: "0" }],
    shape: { roles: { Master: 1 } },
    kept: ["[Master].[0].env[0]: keeps PYTHONUNBUFFERED=0, in place of Gangway's PYTHONUNBUFFERED=1"],
  },
  "facts about the pod are the template's, if it sets them": {
    env: [{ name: "GANGWAY_JOB_NAME", value: "mine" }],
    shape: { kind: "Job", container: "main", roles: { Worker: 1 } },
    kept: ["[Worker].[0].env[0]: keeps GANGWAY_JOB_NAME=mine, in place of Gangway's GANGWAY_JOB_NAME=mnist"],
  },
  "a key of a secret that the template asks for is the annotation's": {
    env: [{ name: "GANGWAY_SECRET_DB_PASSWORD", value: "x" }],
    shape: {
      kind: "Job",
      container: "main",
      roles: { Worker: 1 },
      annotations: { "gangway.dev/secrets": "db/password" },
    },
    ignored: [
      "[Worker].[0].env[0]: is ignored: the platform sets GANGWAY_SECRET_DB_PASSWORD from secretKeyRef, " +
        "not GANGWAY_SECRET_DB_PASSWORD=x",
    ],
  },
  "a default of the platform is no news": {
    env: [{ name: "HTTP_PROXY", value: "mine" }],
    shape: { roles: { Master: 1 }, podConfig: { ...PLAIN_POD_CONFIG, defaultEnvVars: { HTTP_PROXY: "theirs" } } },
  },
  "a long value is cut": {
    env: [{ name: "TF_CONFIG", value: "y".repeat(100) }],
    shape: { kind: "TFJob", container: "tensorflow", roles: { Worker: 2 } },
    ignored: [
      `[Worker].[0].env[0]: is ignored: the kind TFJob sets ${["0", "1"]
        .map((index) => `TF_CONFIG=${tfConfig(index).slice(0, 80)}…`)
        .filter((text, at, all) => all.indexOf(text) === at)
        .join(", ")}, not TF_CONFIG=${"y".repeat(80)}…`,
    ],
  },
};

function tfConfig(index: string): string {
  const worker = [0, 1].map((one) => `mnist-worker-${one}.default.svc:2222`);
  return JSON.stringify({ cluster: { worker }, task: { type: "worker", index: Number(index) }, environment: "cloud" });
}

for (const [name, { env, shape, ignored = [], kept = [] }] of Object.entries(cases)) {
  test(`variables that Gangway sets too: ${name}`, () => assert.deepEqual(notesOf(env, shape), { ignored, kept }));
}
