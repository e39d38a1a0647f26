import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { specNow } from "../../src/core/job/interruptible.ts";
import type { CreateOutcome, NewJob, OutdatedCheck, Submission } from "../../src/core/job/request/requests.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import type { PodPolicy } from "../../src/core/pods/policy/pod-policy.ts";
import { describeDifference } from "../../src/intake/describe-difference.ts";
import { createIntake } from "../../src/intake/intake.ts";
import type { IntakeStore } from "../../src/intake/ports.ts";
import { arrayAt, canonicalJson, type JsonObject, objectAt } from "../../src/runtime/json.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { uuidV7 } from "../../src/runtime/uuid-v7.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

/** Namespaces with pod policies of their own. */
const POLICIES: Readonly<Record<string, { readonly podPolicy: PodPolicy }>> = {
  free: { podPolicy: { level: "privileged", allow: [], limits: {} } },
};

const NOW_MS = 1_700_000_000_123;

function sentJob(change: Partial<SentJob> = {}): SentJob {
  const template = { spec: { containers: [{ name: "pytorch", image: "x" }] } };
  return {
    namespace: "default",
    name: "mnist",
    generateName: "",
    labels: {},
    annotations: {},
    spec: { kind: "PyTorchJob", replicaSpecs: { Master: { template }, Worker: { replicas: 3, template } } },
    ...change,
  };
}

function submission(job: SentJob, change: Partial<Submission> = {}): Submission {
  return { job, requestId: "", validateOnly: false, strict: false, createdBy: "alice", ...change };
}

/** An intake over a store that answers creates with the given outcomes, in turn. */
function startIntake(
  outcomes: readonly (Exclude<CreateOutcome, { kind: "created" }> | OutdatedCheck | "created")[] = ["created"],
  podConfig: PodConfig = PLAIN_POD_CONFIG,
  classes = NO_CLASSES,
) {
  const created: NewJob[] = [];
  const asked: string[] = [];
  const woken: string[] = [];
  let bytes = 0;
  const store: IntakeStore = {
    facts: async ({ namespace }) => {
      asked.push(namespace);
      const known = { project: "vision", defaultQueue: "team-a", ...POLICIES[namespace] };
      return {
        namespace: namespace === "nowhere" ? null : namespace === "fresh" ? "open" : known,
        priorityClasses: classes,
        queueExists: async (queue) => ["team-a", "team-b", "default"].includes(queue),
        nodeResources: async () => null,
      };
    },
    earlierRequest: async ({ requestId }) => {
      const earlier = created.find((job) => job.requestId === requestId);
      return earlier === undefined ? null : { kind: "replayed", job: earlier.job };
    },
    createJob: async (job) => {
      if (job.job.name === "poison") throw new Error("the database refuses this one");
      const outcome = outcomes[Math.min(created.length, outcomes.length - 1)]!;
      created.push(job);
      return outcome === "created" ? { kind: "created", job: job.job } : outcome;
    },
    createJobs: async (jobs) => {
      if (jobs.some(({ job }) => job.name === "poison")) throw new Error("the database refuses one of these");
      if (jobs.some(({ job }) => job.name === "away")) throw new UnavailableError("the store is away");
      return jobs.map((job) => {
        if (job.requestId === "used") return null;
        created.push(job);
        return { kind: "created", job: job.job };
      });
    },
    changeJob: async () => ({ kind: "notFound" }),
    requestCancel: async () => ({ kind: "notFound" }),
    requestDelete: async () => ({ kind: "notFound" }),
  };
  const intake = createIntake({
    clock: { nowMs: () => NOW_MS, monotonicMs: () => 0, sleep: async () => {} },
    kinds: OWN_KINDS,
    store,
    podConfig: () => podConfig,
    randomBytes: (count) => new Uint8Array(count).fill(bytes++),
    wakePlanner: () => void woken.push("planner"),
    wakeJob: (uid) => void woken.push(uid),
  });
  return { intake, created, asked, woken };
}

test("a repeated call gets the answer of the first one, although its queue was deleted since", async () => {
  const { intake, created } = startIntake();
  const { created: before, intake: earlier } = startIntake();
  const gone = sentJob({ spec: { ...sentJob({}).spec, runPolicy: { schedulingPolicy: { queue: "gone" } } } });
  await earlier.submit(submission(sentJob({}), { requestId: "r1" }));
  assert.equal((await intake.submit(submission(gone, { requestId: "r1" }))).kind, "invalid");
  created.push(...before);
  assert.equal((await intake.submit(submission(gone, { requestId: "r1" }))).kind, "replayed");
});

test("Kueue's label names the priority class, unless the job names a class or a priority", async () => {
  const high = { name: "high", value: 7, preemptionPolicy: "NEVER" } as const;
  const low = { name: "low", value: 1, preemptionPolicy: "LOWER_PRIORITY" } as const;
  const known = [high, low];
  const classes: typeof NO_CLASSES = {
    default: low,
    find: async (name) => known.find((one) => one.name === name) ?? null,
    names: async () => known.map(({ name }) => name),
  };
  const { intake, created } = startIntake(["created"], PLAIN_POD_CONFIG, classes);
  const submit = async (label: string, spec: Partial<SentJob["spec"]> = {}) => {
    const job = sentJob({ labels: { "kueue.x-k8s.io/priority-class": label }, spec: { ...sentJob({}).spec, ...spec } });
    const outcome = await intake.submit(submission(job));
    const { priority, priorityClassName } = created.at(-1)?.job.spec ?? assert.fail("no job was created");
    return {
      kind: outcome.kind,
      as: [priority, priorityClassName],
      warnings: "warnings" in outcome && outcome.warnings,
    };
  };
  assert.deepEqual(await submit("high"), { kind: "created", as: [7, "high"], warnings: [] });
  assert.deepEqual((await submit("high", { priority: 3 })).as, [3, undefined]);
  assert.deepEqual((await submit("high", { priorityClassName: "low" })).as, [1, "low"]);
  const field = "job.metadata.labels[kueue.x-k8s.io/priority-class]";
  const message = "is ignored: priority class hihg does not exist; there are: high, low";
  assert.deepEqual(await submit("hihg"), { kind: "created", as: [1, "low"], warnings: [{ field, message }] });
});

test("a job whose namespace or queue was deleted after the check is checked again", async () => {
  const { intake, created, asked } = startIntake([{ kind: "outdated" }, "created"]);
  assert.equal((await intake.submit(submission(sentJob({})))).kind, "created");
  assert.equal(created.length, 2);
  assert.equal(asked.length, 2);
});

test("a job whose namespace or queue is deleted again and again is answered UNAVAILABLE", async () => {
  const { intake, created } = startIntake([{ kind: "outdated" }]);
  await assert.rejects(intake.submit(submission(sentJob({}))), UnavailableError);
  assert.equal(created.length, 5);
});

test("a new job has its uid, project, queue, defaults, and the condition Created", async () => {
  const { intake, created, woken } = startIntake();
  const sent = sentJob({ labels: { team: "a" } });
  const outcome = await intake.submit(submission(sent, { requestId: "r1" }));
  assert.equal(outcome.kind, "created");
  const [{ job, requestId, sent: kept }] = created as [NewJob];
  assert.deepEqual([requestId, kept], ["r1", sent]);
  assert.deepEqual([job.project, job.createdBy, job.version, job.createTimeMs], ["vision", "alice", 1, NOW_MS]);
  assert.deepEqual([job.cancel, job.deleteTimeMs, job.admissions], [null, null, []]);
  assert.equal(job.spec.runPolicy.schedulingPolicy.queue, "team-a");
  assert.equal(job.spec.runPolicy.schedulingPolicy.minAvailable, 4);
  assert.equal(job.spec.replicaSpecs["Master"]?.replicas, 1);
  const [condition] = job.status.conditions;
  assert.deepEqual([condition?.type, condition?.status, condition?.reason], ["Created", "True", "PyTorchJobCreated"]);
  assert.equal(job.status.phase, "WAITING");
  assert.deepEqual(woken, ["planner"]);
});

test("a member that Gangway does not know reaches no cluster, unless no control holds in the namespace", async () => {
  const template = { spec: { hostKeys: "all", containers: [{ name: "pytorch", image: "x", hostRoot: true }] } };
  for (const [namespace, keeps] of [
    ["default", false],
    ["free", true],
  ] as const) {
    const { intake, created } = startIntake();
    const sent = sentJob({ namespace, spec: { kind: "PyTorchJob", replicaSpecs: { Master: { template } } } });
    const outcome = await intake.submit(submission(sent));
    assert.equal(outcome.kind === "created" && outcome.warnings.length, 2);
    const spec = objectAt(created[0]?.job.spec.replicaSpecs["Master"]?.template, "spec");
    assert.equal(JSON.stringify(spec).includes("host"), keeps);
    assert.deepEqual(created[0]?.sent, sent);
  }
});

const platform: PodConfig = {
  ...PLAIN_POD_CONFIG,
  resources: { defaults: { cpu: "2", memory: "4Gi" }, limits: { cpu: "8" } },
  interruptibleTolerations: [{ key: "spot", operator: "Exists" }],
};

test("a job's templates have the platform's settings; the sent job stays unchanged", async () => {
  const { intake, created } = startIntake(["created"], platform);
  const { spec } = sentJob();
  const sent = sentJob({ spec: { ...spec, runPolicy: { interruptible: true } } });
  assert.equal((await intake.submit(submission(sent))).kind, "created");
  const [{ job, sent: kept }] = created as [NewJob];
  assert.deepEqual(kept, sent);
  const podSpec = objectAt(job.spec.replicaSpecs["Worker"]?.template, "spec");
  const interrupted = { ...job, status: { ...job.status, attempts: { ...job.status.attempts, system: 1 } } };
  const later = objectAt(specNow(interrupted).replicaSpecs["Worker"]?.template, "spec");
  assert.deepEqual([specNow(job), later["tolerations"]], [job.spec, undefined], "the next attempt is not interrupted");
  assert.deepEqual(podSpec["tolerations"], [{ key: "spot", operator: "Exists" }]);
  const amounts = { cpu: "2", memory: "4Gi" };
  assert.deepEqual(podSpec["containers"], [
    { name: "pytorch", image: "x", resources: { requests: amounts, limits: amounts } },
  ]);
});

test("a replica type says itself whether its pods are interruptible, in place of the run policy", async () => {
  const { intake, created } = startIntake(["created"], platform);
  const template = (interruptible: string | null) => ({
    metadata: { annotations: interruptible === null ? {} : { "gangway.dev/interruptible": interruptible } },
    spec: { containers: [{ name: "pytorch", image: "x" }] },
  });
  const replicaSpecs = { Master: { template: template("false") }, Worker: { template: template(null), replicas: 1 } };
  const sent = sentJob({ spec: { kind: "PyTorchJob", replicaSpecs, runPolicy: { interruptible: true } } });
  assert.equal((await intake.submit(submission(sent))).kind, "created");
  const tolerationsOf = (spec: NewJob["job"]["spec"], role: string) =>
    arrayAt(objectAt(spec.replicaSpecs[role]?.template, "spec"), "tolerations").length;
  const [{ job }] = created as [NewJob];
  assert.deepEqual([tolerationsOf(job.spec, "Master"), tolerationsOf(job.spec, "Worker")], [0, 1]);
  const failed = { ...job, status: { ...job.status, attempts: { ...job.status.attempts, system: 1 } } };
  assert.deepEqual([tolerationsOf(specNow(failed), "Master"), tolerationsOf(specNow(failed), "Worker")], [0, 0]);

  const alone = { Master: { template: template("true") }, Worker: { template: template(null), replicas: 1 } };
  await intake.submit(submission(sentJob({ spec: { kind: "PyTorchJob", replicaSpecs: alone } })));
  const other = created[1]?.job.spec as NewJob["job"]["spec"];
  assert.deepEqual([tolerationsOf(other, "Master"), tolerationsOf(other, "Worker")], [1, 0]);
});

test("a request above its limit is lowered by the platform's settings, with a warning", async () => {
  const { intake, created } = startIntake(["created"], platform);
  const resources = { requests: { cpu: "6", memory: "1Gi", gpu: 4 }, limits: { cpu: "4", memory: "2Gi", gpu: 2 } };
  const template = { spec: { containers: [{ name: "pytorch", image: "x", resources }] } };
  const outcome = await intake.submit(
    submission(sentJob({ spec: { kind: "PyTorchJob", replicaSpecs: { Master: { template } } } })),
  );
  assert.ok(outcome.kind === "created", JSON.stringify(outcome));
  const at = "job.spec.replica_specs[Master].template.spec.containers[0].resources.requests";
  assert.deepEqual(
    outcome.warnings.filter(({ field }) => field.startsWith(at)),
    [
      { field: `${at}["cpu"]`, message: "is 6, above the limit 4: pods request 4" },
      { field: `${at}["gpu"]`, message: "is 4, above the limit 2: pods request 2" },
    ],
  );
  const [main] = arrayAt(objectAt(created[0]?.job.spec.replicaSpecs["Master"]?.template, "spec"), "containers");
  assert.deepEqual(objectAt(objectAt(main, "resources"), "requests"), {
    cpu: "4",
    memory: "1Gi",
    "nvidia.com/gpu": "2",
  });
});

test("a command may name the inputs of the job, and the job keeps them", async () => {
  const { intake, created } = startIntake();
  const template = { spec: { containers: [{ name: "pytorch", image: "x", args: ["--lr={{ .Inputs.lr }}"] }] } };
  const spec = { kind: "PyTorchJob", replicaSpecs: { Master: { template } } };
  const without = await intake.submit(submission(sentJob({ spec: { ...spec, inputs: { rate: 1 } } })));
  assert.deepEqual(without.kind === "invalid" && without.violations, [
    {
      field: "job.spec.replica_specs[Master].template.spec.containers[0].args[0]",
      message: "uses {{ .Inputs.lr }}, but the job's inputs are rate",
    },
  ]);
  const outcome = await intake.submit(submission(sentJob({ spec: { ...spec, inputs: { lr: 0.1 } } })));
  assert.equal(outcome.kind, "created");
  assert.deepEqual(created[0]?.job.spec.inputs, { lr: 0.1 });
});

test("a request for a platform setting that does not exist is refused by its path", async () => {
  const { intake, created } = startIntake(["created"], platform);
  const metadata = { annotations: { "gangway.dev/pod-template": "big" } };
  const template = { metadata, spec: { containers: [{ name: "pytorch", image: "x" }] } };
  const sent = sentJob({ spec: { kind: "PyTorchJob", replicaSpecs: { Master: { template } } } });
  const outcome = await intake.submit(submission(sent));
  assert.deepEqual(outcome.kind === "invalid" && outcome.violations, [
    {
      field: 'job.spec.replica_specs[Master].template.metadata.annotations["gangway.dev/pod-template"]',
      message: 'is "big": this namespace and the platform have no such pod template',
    },
  ]);
  assert.equal(created.length, 0);
});

test("all errors of a template are named at once, missing platform settings included", async () => {
  const { intake } = startIntake(["created"], platform);
  const metadata = { annotations: { primary_container_name: "trainer", "gangway.dev/pod-template": "big" } };
  const container = { name: "pytorch", args: ["{{ .Inputs.lr }}"], resources: { limits: { cpu: "5oom" } } };
  const template = { metadata, spec: { containers: [container] } };
  const sent = sentJob({ spec: { kind: "PyTorchJob", replicaSpecs: { Master: { template } } } });
  const outcome = await intake.submit(submission(sent));
  const at = "job.spec.replica_specs[Master].template";
  assert.deepEqual(outcome.kind === "invalid" && outcome.violations.map(({ field }) => field), [
    `${at}.spec.containers[0].resources.limits.cpu`,
    `${at}.spec.containers[0].image`,
    `${at}.spec.containers[0].args[0]`,
    `${at}.metadata.annotations["gangway.dev/pod-template"]`,
    `${at}.metadata.annotations["primary_container_name"]`,
  ]);
});

test("pods that placeholders make too large are refused in every way to submit", async () => {
  const args = ["-v", "{{ .Annotations.k }}".repeat(400)];
  const template = { spec: { containers: [{ name: "pytorch", image: "x", args }] } };
  const spec = { kind: "PyTorchJob", replicaSpecs: { Master: { template } } };
  const large = submission(sentJob({ spec, annotations: { k: "a".repeat(100_000) } }));
  const { intake, created } = startIntake();
  const answers = [
    await intake.submit(large),
    await intake.submit({ ...large, validateOnly: true }),
    await intake.make(large).then((made) => (made.kind === "refused" ? made.answer : made)),
    ...(await intake.submitAll([large, submission(sentJob({ name: "other" }))])),
  ];
  const [other] = answers.splice(-1);
  assert.equal(other?.kind, "created");
  for (const answer of answers) {
    const [violation] = answer.kind === "invalid" ? answer.violations : [];
    assert.equal(violation?.field, "job.spec.replica_specs[Master].template.spec.containers[0].args[1]");
    const bytes = /^makes pods of 4\d{7} bytes of JSON, 40000000 of them here, .*: at most 3145728 are allowed$/;
    assert.match(violation.message, bytes);
  }
  assert.equal(created.length, 1);
});

const queues = {
  "its scheduling policy's queue first": {
    sent: sentJob({
      labels: { "kueue.x-k8s.io/queue-name": "default" },
      spec: { ...sentJob().spec, runPolicy: { schedulingPolicy: { queue: "team-b" } } },
    }),
    queue: "team-b",
  },
  "its label before the namespace": {
    sent: sentJob({ labels: { "kueue.x-k8s.io/queue-name": "team-b" } }),
    queue: "team-b",
  },
  "its namespace's default": { sent: sentJob(), queue: "team-a" },
  "the queue default in a new namespace": { sent: sentJob({ namespace: "fresh" }), queue: "default" },
};
for (const [name, { sent, queue }] of Object.entries(queues)) {
  test(`a job is queued by ${name}`, async () => {
    const { intake, created } = startIntake();
    assert.equal((await intake.submit(submission(sent))).kind, "created");
    assert.equal(created[0]?.job.spec.runPolicy.schedulingPolicy.queue, queue);
  });
}

test("a generated name that is taken is replaced by another one, a bounded number of times", async () => {
  const taken = { kind: "nameTaken" as const, sent: sentJob() };
  const generated = sentJob({ name: "", generateName: "run-" });
  const second = startIntake([taken, "created"]);
  const outcome = await second.intake.submit(submission(generated));
  assert.equal(outcome.kind, "created");
  const names = second.created.map(({ job }) => job.name);
  assert.equal(new Set(names).size, 2);
  for (const name of names) assert.match(name, /^run-[b-z2-9]{6}$/);
  const never = startIntake([taken]);
  assert.equal((await never.intake.submit(submission(generated))).kind, "nameTaken");
  assert.equal(never.created.length, 5);
});

test("a name that the client chose is tried once", async () => {
  const { intake, created, woken } = startIntake([{ kind: "nameTaken", sent: sentJob({ annotations: { a: "1" } }) }]);
  const outcome = await intake.submit(submission(sentJob()));
  const difference = 'job.metadata.annotations[a] is "1" in the existing job and not set in this one';
  assert.deepEqual(outcome, { kind: "nameTaken", difference });
  assert.deepEqual([created.length, woken], [1, []]);
});

test("an invalid namespace never reaches the store, and a missing one is named", async () => {
  const { intake, asked, created } = startIntake();
  const wrong = await intake.submit(submission(sentJob({ namespace: "No\0pe" })));
  assert.equal(wrong.kind, "invalid");
  assert.deepEqual(asked, []);
  const missing = await intake.submit(submission(sentJob({ namespace: "nowhere" })));
  assert.deepEqual(missing, { kind: "unknownNamespace", namespace: "nowhere" });
  assert.deepEqual(created, []);
});

const base = sentJob();
const differences: Record<string, { readonly here: SentJob; readonly says: string }> = {
  "a replica count": {
    here: sentJob({
      spec: {
        ...base.spec,
        replicaSpecs: { ...base.spec.replicaSpecs, Worker: { ...base.spec.replicaSpecs["Worker"], replicas: 4 } },
      },
    }),
    says: "job.spec.replica_specs[Worker].replicas is 3 in the existing job and 4 in this one",
  },
  "an image deep in a template": {
    here: sentJob({
      spec: {
        ...base.spec,
        replicaSpecs: {
          ...base.spec.replicaSpecs,
          Master: { template: { spec: { containers: [{ name: "pytorch", image: "y" }] } } },
        },
      },
    }),
    says:
      "job.spec.replica_specs[Master].template.spec.containers[0].image " +
      'is "x" in the existing job and "y" in this one',
  },
  "a policy that was omitted": {
    here: sentJob({ spec: { ...base.spec, runPolicy: { ttlSecondsAfterFinished: 5 } } }),
    says: 'job.spec.run_policy is not set in the existing job and {"ttlSecondsAfterFinished":5} in this one',
  },
  "a field with a name that every object inherits": {
    here: sentJob({ spec: { ...base.spec, kindSpec: { valueOf: 1 } } }),
    says: 'job.spec.kind_spec is not set in the existing job and {"valueOf":1} in this one',
  },
  "more than three fields": {
    here: sentJob({ name: "b", generateName: "c", namespace: "d", labels: { e: "f" } }),
    says:
      'job.metadata.generate_name is "" in the existing job and "c" in this one; ' +
      'job.metadata.labels[e] is not set in the existing job and "f" in this one; ' +
      'job.metadata.name is "mnist" in the existing job and "b" in this one; and more',
  },
};
for (const [name, { here, says }] of Object.entries(differences)) {
  test(`a difference in ${name} is named by its path and both values`, () => {
    assert.equal(describeDifference(base, here), says);
  });
}

test("describing the difference of any two jobs never throws, and different jobs have one", () => {
  const key = fc.oneof(fc.constantFrom("valueOf", "toString", "__proto__", "a"), fc.string({ maxLength: 3 }));
  const kindSpec = fc.object({
    maxDepth: 3,
    key,
    values: [fc.integer(), fc.string(), fc.boolean(), fc.constant(null)],
  });
  fc.assert(
    fc.property(kindSpec, kindSpec, (there, here) => {
      const of = (members: unknown) => sentJob({ spec: { ...base.spec, kindSpec: members as JsonObject } });
      const same = canonicalJson(there) === canonicalJson(here);
      assert.equal(describeDifference(of(there), of(here)) === "", same);
    }),
    { numRuns: 500 },
  );
});

test("no JSON makes validation throw, and no refused job reaches the store", async () => {
  const key = fc.oneof(
    fc.constantFrom("spec", "containers", "metadata", "labels", "valueOf", "toString"),
    fc.string({ maxLength: 6 }),
  );
  const json = fc.object({ maxDepth: 5, key, values: [fc.double(), fc.string(), fc.boolean(), fc.constant(null)] });
  const sent = fc.record({
    namespace: fc.oneof(fc.constant("default"), fc.string()),
    name: fc.oneof(fc.constant("mnist"), fc.string()),
    generateName: fc.string({ maxLength: 3 }),
    labels: fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
    annotations: fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
    spec: fc.record({
      kind: fc.constantFrom("PyTorchJob", "TFJob", "Job", "MPIJob", "Nothing"),
      replicaSpecs: fc.dictionary(
        fc.oneof(fc.constantFrom("Worker", "worker", "constructor"), fc.string()),
        fc.record({ replicas: fc.integer({ min: -2, max: 3 }), template: json }, { requiredKeys: [] }),
        { maxKeys: 3 },
      ),
      kindSpec: json,
    }),
  });
  await fc.assert(
    fc.asyncProperty(sent, fc.boolean(), async (job, strict) => {
      const { intake, created } = startIntake();
      const outcome = await intake.submit(submission(job as unknown as SentJob, { strict }));
      assert.equal(created.length, outcome.kind === "created" ? 1 : 0);
      if (outcome.kind === "invalid")
        for (const { message } of outcome.violations) assert.equal(typeof message, "string");
    }),
    { numRuns: 500 },
  );
});

test("a UUIDv7 holds its time, version and variant, and later ones sort later", () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2 ** 45 }),
      fc.nat({ max: 2 ** 45 }),
      fc.uint8Array({ minLength: 10, maxLength: 10 }),
      (a, b, random) => {
        const uuid = uuidV7(a, random);
        assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        assert.equal(Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16), a);
        if (a < b) assert.ok(uuid < uuidV7(b, random));
      },
    ),
  );
});

test("many submissions get their own answers in order, and each namespace is read once", async () => {
  const { intake, created, asked } = startIntake(["created"]);
  const answers = await intake.submitAll([
    submission(sentJob({ name: "a" })),
    submission(sentJob({ name: "b", labels: { "gangway.dev/mine": "" } })),
    submission(sentJob({ name: "b", namespace: "nowhere" })),
    submission(sentJob({ name: "c" }), { validateOnly: true }),
    submission(sentJob({ name: "d" }), { requestId: "used" }),
    submission(sentJob({ name: "e" })),
  ]);
  const kinds = answers.map(({ kind }) => kind);
  assert.deepEqual(kinds, ["created", "invalid", "unknownNamespace", "valid", "created", "created"]);
  assert.deepEqual(
    created.map(({ job }) => job.name),
    ["a", "c", "e", "d"],
  );
  assert.deepEqual(asked, ["default", "nowhere"]);
});

test("a job that the database refuses fails alone; while the store is away, all remaining jobs fail", async () => {
  const { intake, created } = startIntake(["created"]);
  const names = (...all: string[]) => all.map((name) => submission(sentJob({ name })));
  const poisoned = await intake.submitAll(names("a", "poison", "b"));
  assert.deepEqual(
    poisoned.map(({ kind }) => kind),
    ["created", "failed", "created"],
  );
  const before = created.length;
  const away = await intake.submitAll(names("c", "away", "d"));
  assert.ok(away.every((answer) => answer.kind === "failed" && answer.error instanceof UnavailableError));
  assert.equal(created.length, before);
});
