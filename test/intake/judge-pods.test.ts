/** Pods that API servers would refuse are refused in every way into Gangway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { podKind } from "../../src/core/kinds/plugin.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import { changedPodNotes } from "../../src/intake/judge-pods.ts";
import { newJob } from "../../src/intake/new-job.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { kindsWith } from "../support/kinds.ts";
import { bareIntake } from "./bare-intake.ts";

/** A kind from outside whose pods mount a volume that they do not have. */
const wrongKind = podKind({
  name: "WrongJob",
  description: "a test's",
  clusterSpec: () => ({
    env: {},
    initContainers: [],
    volumeMounts: { main: [{ name: "gone", mountPath: "/gone" }] },
  }),
});
const KINDS = kindsWith({ id: "wrong", kinds: [wrongKind] });

const main: JsonObject = { name: "main", image: "x" };
const bad: JsonObject = { spec: { containers: [{ ...main, env: [{ name: "EPOCHS", value: 3 }] }] } };
const good: JsonObject = { spec: { containers: [main] } };

function sentJob(template: JsonObject, change: Partial<SentJob> & { readonly kind?: string } = {}): SentJob {
  const { kind = "Job", ...more } = change;
  const spec = { kind, replicaSpecs: { Worker: { replicas: 2, template } } };
  return { namespace: "team", name: "train", generateName: "", labels: {}, annotations: {}, spec, ...more };
}

const startIntake = (podConfig?: PodConfig) => bareIntake(KINDS, podConfig);

const submission = (job: SentJob) => ({ job, requestId: "", validateOnly: false, strict: false, createdBy: "a" });

const NOTE = {
  field: "job.spec.replica_specs[Worker].template.spec.containers[0].env[0].value",
  message: 'is 3: must be text, so write "3" in quotes',
};

test("submit, dry run, can-run and batch refuse a pod that no cluster would take, alike", async () => {
  const intake = startIntake();
  const wrong = submission(sentJob(bad));
  const answers = [
    await intake.submit(wrong),
    await intake.submit({ ...wrong, validateOnly: true }),
    await intake.make(wrong).then((made) => (made.kind === "refused" ? made.answer : made)),
    ...(await intake.submitAll([wrong])),
    ...(await intake.submitAll([{ ...wrong, validateOnly: true }])),
  ];
  for (const answer of answers) assert.deepEqual(answer.kind === "invalid" && answer.violations, [NOTE]);
});

const ways: Readonly<Record<string, readonly [sent: SentJob, field: string, message: RegExp, config?: PodConfig]>> = {
  "a rule of Kubernetes beside an unknown queue": [
    sentJob({ spec: { containers: [{ ...main, imagePullPolicy: "always" }] } }),
    "containers[0].imagePullPolicy",
    /^is "always": must be Always, IfNotPresent or Never$/,
  ],
  "an error of the platform's own template, which says so": [
    sentJob(good),
    'containers[0].resources.requests["x.io/y"]',
    /^is required: must have a limit of the same amount \(in the pod that the platform builds from the template\)$/,
    {
      ...PLAIN_POD_CONFIG,
      defaultPodTemplateName: "t",
      podTemplates: [
        {
          name: "t",
          namespace: "team",
          template: { spec: { containers: [{ name: "default", resources: { requests: { "x.io/y": "1" } } }] } },
        },
      ],
    },
  ],
  "a part that a kind from outside adds": [
    sentJob(good, { kind: "WrongJob" }),
    "containers[0].volumeMounts[0].name",
    /^is "gone": must be the name of a volume of the pod \(in the pod that the platform builds from the template\)$/,
  ],
  "a port of the node that Gangway's own port takes": [
    sentJob(
      { spec: { hostNetwork: true, containers: [{ name: "pytorch", image: "x", ports: [{ containerPort: 23456 }] }] } },
      { kind: "PyTorchJob" },
    ),
    "containers[0].ports[1].hostPort",
    /must be unique: another port of the pod takes this port of the node \(in the pod/,
  ],
};
for (const [name, [sent, field, message, config]] of Object.entries(ways)) {
  test(`refused: ${name}`, async () => {
    const outcome = await startIntake(config).submit(submission(sent));
    assert.ok(outcome.kind === "invalid", outcome.kind);
    const note = outcome.violations.find((one) => one.field.endsWith(`template.spec.${field}`));
    assert.match(note?.message ?? JSON.stringify(outcome.violations), message);
  });
}

test("the name of a job that needs services begins with a letter; other names may begin with a digit", async () => {
  const template = { spec: { containers: [{ name: "pytorch", image: "x" }] } };
  const named = sentJob(template, { kind: "PyTorchJob", name: "7b-pretrain" });
  const outcome = await startIntake().submit(submission(named));
  assert.deepEqual(outcome.kind === "invalid" && outcome.violations, [
    {
      field: "job.metadata.name",
      message: 'is "7b-pretrain": must begin with a letter, because services get this name',
    },
  ]);
  assert.equal((await startIntake().submit(submission(sentJob(good, { name: "7b-pretrain" })))).kind, "created");
});

test("a launcher's name has no number, so the name of an MPIJob may be two characters longer", async () => {
  const template = { spec: { containers: [{ name: "mpi", image: "x" }] } };
  const spec = { kind: "MPIJob", replicaSpecs: { Launcher: { template }, Worker: { replicas: 0, template } } };
  const submitted = (length: number) =>
    startIntake().submit(submission(sentJob(good, { name: "a".repeat(length), spec })));
  assert.equal((await submitted(54)).kind, "created");
  assert.equal((await submitted(55)).kind, "invalid");
});

test("a job that exists is judged when it asks for more", () => {
  const sent = sentJob(bad);
  const kind = KINDS.kindOf("Job");
  assert.ok(kind !== undefined);
  const facts = { project: "p", namespaceQueue: null, priorityClass: null, uid: "u", name: "train", createdBy: "a" };
  const job = newJob(sent, { ...facts, kind, templates: {}, nowMs: 0 });
  assert.deepEqual(changedPodNotes(job, KINDS), [NOTE]);
});
