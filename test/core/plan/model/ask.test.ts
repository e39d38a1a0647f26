import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../../src/core/job/job.ts";
import type { TopologyWish } from "../../../../src/core/job/placement/topology-wish.ts";
import type { JobSpec, ReplicaSpec } from "../../../../src/core/job/spec.ts";
import { type Ask, type AskRole, askOf, hashedAsk, podClassOf } from "../../../../src/core/plan/model/ask.ts";
import { gangChange, gangOf } from "../../../../src/core/plan/model/plan-gang.ts";
import { type NodeFacts, nodeAllows } from "../../../../src/core/pods/node-match.ts";
import { podRequests } from "../../../../src/core/pods/resources.ts";
import { canonicalJson, type JsonObject } from "../../../../src/runtime/json.ts";
import { kindsWith, OWN_KINDS } from "../../../support/kinds.ts";
import { ETL, etlEntry } from "../../kinds/plugin-world.ts";
import { anyResources } from "../../pods/pod-arbitraries.ts";
import { admission, job } from "../plan-world.ts";

const askOfJob = (made: Job) => askOf(made, OWN_KINDS);
const GPU = { "nvidia.com/gpu": 8000, pods: 1000 };
const GPUS = { requests: { "nvidia.com/gpu": 8 } };

function changed(made: Job, spec: Partial<JobSpec>, status: Partial<Job["status"]> = {}): Job {
  return { ...made, spec: { ...made.spec, ...spec }, status: { ...made.status, ...status } };
}

const mixed = job({
  name: "mixed",
  roles: { Worker: { replicas: 3, gpus: 8 }, Evaluator: { replicas: 1, cpu: 2 }, Master: { replicas: 1, gpus: 8 } },
  minAvailable: 3,
  gpuModels: ["h100"],
  clusters: ["west", "east"],
  clusterSelector: { zone: "a", area: "b" },
});

test("an ask has roles in the order of admission, each pod class once, and the fewest members", () => {
  assert.deepEqual(askOfJob(mixed), {
    roles: [
      { role: "Master", replicas: 1, first: 1, podClass: 0 },
      { role: "Evaluator", replicas: 1, first: 1, podClass: 1 },
      { role: "Worker", replicas: 3, first: 1, podClass: 2 },
    ],
    podClasses: [
      { requests: GPU, scheduling: {} },
      { requests: { cpu: 2000, pods: 1000 }, scheduling: {} },
      // With the init container of workers, which waits for the master.
      { requests: { "nvidia.com/gpu": 8000, cpu: 50, memory: 10 * 2 ** 20 * 1000, pods: 1000 }, scheduling: {} },
    ],
    placement: { clusters: ["west", "east"], clusterSelector: { area: "b", zone: "a" }, gpuModels: ["h100"] },
    elastic: false,
    service: false,
  } satisfies Ask);
});

const slices = [{ level: "rack", size: 2 }];
test("the hash of an ask without a wish is that of earlier versions", () => {
  assert.equal(hashedAsk(mixed, OWN_KINDS).hash, "eELO9sbepLEeIyDB18bdsuYHWVGMdM7P4y324ggDn1o");
});

type Wishes = { readonly job?: TopologyWish; readonly worker?: TopologyWish };
const wishCases: Record<string, { readonly roles: number; readonly sent: Wishes; readonly asked: Wishes }> = {
  "no wish": { roles: 2, sent: {}, asked: {} },
  "a wish of the job alone": { roles: 2, sent: { job: { required: "block" } }, asked: { job: { required: "block" } } },
  "a wish of one replica type": {
    roles: 2,
    sent: { worker: { preferred: "rack", slices } },
    asked: { worker: { preferred: "rack", slices } },
  },
  "slices of the job as those of its only replica type": {
    roles: 1,
    sent: { job: { required: "block", slices } },
    asked: { job: { required: "block" }, worker: { slices } },
  },
  "slices of the job alone": { roles: 1, sent: { job: { slices } }, asked: { worker: { slices } } },
  "slices of the job beside the wish of its only replica type": {
    roles: 1,
    sent: { job: { slices }, worker: { required: "rack" } },
    asked: { worker: { required: "rack", slices } },
  },
};
for (const [name, { roles, sent, asked }] of Object.entries(wishCases)) {
  test(`an ask has ${name}, and nothing else changes`, () => {
    const plain = job({
      name: "a",
      roles: { Worker: { replicas: 4 }, ...(roles === 2 && { Master: { replicas: 1 } }) },
    });
    const { placement, replicaSpecs } = plain.spec;
    const { Worker } = replicaSpecs;
    assert.ok(Worker);
    const wishing = changed(plain, {
      placement: { ...placement, ...(sent.job && { topology: sent.job }) },
      replicaSpecs: { ...replicaSpecs, Worker: { ...Worker, ...(sent.worker && { topology: sent.worker }) } },
    });
    const { topology, ...ask } = askOfJob(wishing);
    assert.deepEqual(topology, asked.job);
    assert.deepEqual(ask.roles.find(({ role }) => role === "Worker")?.topology, asked.worker);
    const roleOf = ({ topology: _wish, ...role }: AskRole) => role;
    assert.deepEqual({ ...ask, roles: ask.roles.map(roleOf) }, askOfJob(plain));
  });
}

const etl = kindsWith(etlEntry);
const oneOf = (kind: string) => changed(job({ name: "a", roles: { Worker: { replicas: 1 } } }), { kind });
const kindCases: Record<string, { readonly made: Job; readonly elastic: boolean; readonly service: boolean }> = {
  "a gang of fixed size": { made: oneOf("PyTorchJob"), elastic: false, service: false },
  "a gang of an elastic kind": { made: oneOf("MPIJob"), elastic: true, service: false },
  "a job without pods": { made: oneOf(ETL.name), elastic: false, service: true },
  "a job of a kind that is not served": { made: oneOf("Unknown"), elastic: false, service: false },
};
for (const [name, { made, ...facts }] of Object.entries(kindCases)) {
  test(`the ask of ${name}`, () => {
    const { elastic, service } = askOf(made, etl);
    assert.deepEqual({ elastic, service }, facts);
  });
}

test("the ask of an interruptible job has the templates for its new pods", () => {
  const worker = {
    replicas: 1,
    restartPolicy: "Never",
    template: { spec: { nodeSelector: { spot: "yes" } } },
    uninterruptedTemplate: { spec: { nodeSelector: { spot: "no" } } },
  } satisfies ReplicaSpec;
  const spot = changed(mixed, {
    replicaSpecs: { Worker: worker },
    runPolicy: { ...mixed.spec.runPolicy, interruptible: true },
  });
  const failed = changed(spot, {}, { attempts: { ...spot.status.attempts, system: 1 } });
  const selectorOf = (made: Job) => askOfJob(made).podClasses.map(({ scheduling }) => scheduling["nodeSelector"]);
  assert.deepEqual(selectorOf(spot), [{ spot: "yes" }]);
  assert.deepEqual(selectorOf(failed), [{ spot: "no" }]);
});

const LABELS = ["zone", "gpus", "rack"];
const VALUES = ["", "a", "b", "7", "8", "10"];
const someExpression = fc.record(
  {
    key: fc.constantFrom(...LABELS, ""),
    operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"),
    values: fc.array(fc.constantFrom(...VALUES), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const byName = fc.record({
  key: fc.constant("metadata.name"),
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.constantFrom(["node-a"], ["node-b"], ["node-b", "node-a"]),
});
const someTerm = fc.record(
  {
    matchExpressions: fc.array(someExpression, { maxLength: 2 }),
    matchFields: fc.array(byName, { maxLength: 1 }),
  },
  { requiredKeys: [] },
);
const someToleration = fc.record(
  {
    key: fc.constantFrom("", "spot", "gpu", "node.kubernetes.io/unschedulable"),
    operator: fc.constantFrom("", "Equal", "Exists"),
    value: fc.constantFrom("", "a"),
    effect: fc.constantFrom("", "NoSchedule", "NoExecute", "PreferNoSchedule"),
    tolerationSeconds: fc.nat(2),
  },
  { requiredKeys: [] },
);
const someAffinity = fc.record(
  {
    requiredDuringSchedulingIgnoredDuringExecution: fc.option(
      fc.record({ nodeSelectorTerms: fc.array(someTerm, { maxLength: 3 }) }, { requiredKeys: [] }),
    ),
    preferredDuringSchedulingIgnoredDuringExecution: fc.constantFrom([], [{ weight: 1 }]),
  },
  { requiredKeys: [] },
);
const somePodSpec = fc
  .record({
    containers: fc.array(
      anyResources.map((resources) => ({ name: "main", image: "i", resources })),
      { minLength: 1, maxLength: 2 },
    ),
    nodeSelector: fc.option(fc.dictionary(fc.constantFrom(...LABELS), fc.constantFrom(...VALUES))),
    nodeAffinity: fc.option(someAffinity),
    tolerations: fc.option(fc.array(someToleration, { maxLength: 3 })),
  })
  .map(({ nodeAffinity, ...spec }): JsonObject => ({ ...spec, affinity: { nodeAffinity } }));
const someNode: fc.Arbitrary<NodeFacts> = fc.record({
  name: fc.constantFrom("node-a", "node-b"),
  labels: fc.dictionary(fc.constantFrom(...LABELS), fc.constantFrom(...VALUES)),
  taints: fc.array(
    fc.record({
      key: fc.constantFrom("spot", "gpu"),
      value: fc.constantFrom("", "a"),
      effect: fc.constantFrom("NoSchedule", "NoExecute", "PreferNoSchedule"),
    }),
    { maxLength: 2 },
  ),
  unschedulable: fc.nat(4).map((n) => n === 0),
});

/** The same pod, written in another way. */
function rewritten(podSpec: JsonObject): JsonObject {
  const turn = (value: unknown, ordered = false): unknown => {
    if (Array.isArray(value)) return ordered ? value : [...value].reverse().map((one) => turn(one));
    if (typeof value !== "object" || value === null) return value;
    const isOrdered = ["Gt", "Lt"].includes(String((value as JsonObject)["operator"]));
    const members = Object.entries(value).map(([name, inner]) => [name, turn(inner, isOrdered)] as const);
    return Object.fromEntries(members.reverse());
  };
  const { containers, ...scheduling } = podSpec;
  return { ...(turn(scheduling) as JsonObject), containers, hostname: "other", priorityClassName: "high" };
}

describe("for any pod", () => {
  test("its class allows the nodes that the pod's spec allows, and requests the same", () => {
    fc.assert(
      fc.property(somePodSpec, fc.array(someNode, { minLength: 1, maxLength: 5 }), (podSpec, nodes) => {
        const { requests, scheduling } = podClassOf(podSpec);
        for (const node of nodes) assert.equal(nodeAllows(scheduling, node), nodeAllows(podSpec, node));
        for (const [name, amount] of Object.entries(podRequests(podSpec))) assert.equal(requests[name] ?? 0, amount);
        assert.ok(Object.values(requests).every((amount) => Number.isInteger(amount) && amount !== 0));
      }),
      { numRuns: 2_000 },
    );
  });

  test("its class does not depend on how the spec is written", () => {
    fc.assert(
      fc.property(somePodSpec, (podSpec) => {
        assert.equal(canonicalJson(podClassOf(rewritten(podSpec))), canonicalJson(podClassOf(podSpec)));
      }),
      { numRuns: 1_000 },
    );
  });

  test("an ask that is stored and read again is the same", () => {
    fc.assert(
      fc.property(somePodSpec, (pod) => {
        const ask = askOfJob(job({ name: "a", roles: { Worker: { replicas: 2, gpus: 1, pod } } }));
        assert.equal(JSON.stringify(JSON.parse(canonicalJson(ask))), canonicalJson(ask));
        assert.deepEqual(JSON.parse(canonicalJson(ask)), ask);
      }),
    );
  });
});

const runs = admission({ cluster: "east", members: { Worker: 3 }, flavors: { "nvidia.com/gpu": "gpu/h100" } });
const withAdmission = { ...mixed, admissions: [runs] };
const policy = mixed.spec.runPolicy;
const attempts = mixed.status.attempts;
const changes: Record<string, { readonly before?: Job; readonly after: Job; readonly changes: boolean }> = {
  "its version": { after: { ...mixed, version: 9 }, changes: false },
  "its labels": { after: { ...mixed, labels: { team: "a" } }, changes: false },
  "its conditions": { after: changed(mixed, {}, { startTimeMs: 5 }), changes: false },
  "why it waits": {
    after: changed(mixed, {}, { waiting: { reason: "NoCapacity", message: "m", sinceMs: 1 } }),
    changes: false,
  },
  "the image of its pods": {
    after: changed(mixed, {
      replicaSpecs: { ...mixed.spec.replicaSpecs, Worker: withImage(mixed.spec.replicaSpecs["Worker"]!) },
    }),
    changes: false,
  },
  "failures of an uninterruptible job": {
    after: changed(mixed, {}, { attempts: { ...attempts, system: 1 } }),
    changes: false,
  },
  "since when few members run": {
    before: withAdmission,
    after: { ...withAdmission, admissions: [{ ...runs, belowMinSinceMs: 5 }] },
    changes: false,
  },
  "its priority": { after: changed(mixed, { priority: 1 }), changes: true },
  "its suspension": { after: changed(mixed, { runPolicy: { ...policy, suspend: true } }), changes: true },
  "its minimum": {
    after: changed(mixed, {
      runPolicy: { ...policy, schedulingPolicy: { ...policy.schedulingPolicy, minAvailable: 2 } },
    }),
    changes: true,
  },
  "its phase, so that it no longer waits": { after: changed(mixed, {}, { phase: "CANCELLED" }), changes: true },
  "its cancellation": { after: { ...mixed, cancel: { reason: "", atMs: 1 } }, changes: true },
  "its deletion": { after: { ...mixed, deleteTimeMs: 1 }, changes: true },
  "its backoff": {
    after: changed(mixed, {}, { backoff: { undone: 1, notBeforeMs: 5, lastCluster: "east" } }),
    changes: true,
  },
  "its cache key": { after: changed(mixed, { runPolicy: { ...policy, cacheKey: "k" } }), changes: true },
  "a new admission": { after: withAdmission, changes: true },
  "the members of its admission": {
    before: withAdmission,
    after: { ...withAdmission, admissions: [{ ...runs, members: { Worker: 2 } }] },
    changes: true,
  },
  "the release of its tokens": {
    before: withAdmission,
    after: { ...withAdmission, admissions: [{ ...runs, state: "ended", tokensReleasedMs: 3 }] },
    changes: true,
  },
};
for (const [name, { before = mixed, after, changes: expected }] of Object.entries(changes)) {
  test(`a change of ${name} ${expected ? "changes" : "does not change"} a job's gang`, () => {
    assert.equal(gangChange(before, after, OWN_KINDS).changed, expected);
  });
}

function withImage(replica: ReplicaSpec): ReplicaSpec {
  const spec = replica.template["spec"] as JsonObject;
  return {
    ...replica,
    template: { spec: { ...spec, containers: [{ name: "main", image: "other", resources: GPUS }] } },
  };
}

test("a change of a job has the new ask only if it changes", () => {
  const smaller = changed(mixed, {
    replicaSpecs: { ...mixed.spec.replicaSpecs, Worker: { ...mixed.spec.replicaSpecs["Worker"]!, replicas: 2 } },
  });
  assert.deepEqual(gangChange(mixed, smaller, OWN_KINDS).ask, askOfJob(smaller));
  assert.equal(gangChange(mixed, changed(mixed, { priority: 1 }), OWN_KINDS).ask, null);
});

test("a gang names the admissions that are not history, and the number of the last one", () => {
  const history = admission({ cluster: "east", number: 1, state: "undone", tokensReleasedMs: 1, goneMs: 2 });
  const drains = admission({ cluster: "west", number: 2, state: "undone", tokensReleasedMs: 1 });
  const waiting = { ...mixed, admissions: [history, drains] };
  const gang = gangOf(waiting, OWN_KINDS, { generation: 4, lastAdmission: 2 });
  assert.deepEqual(
    gang.admissions.map(({ number }) => number),
    [2],
  );
  assert.deepEqual([gang.waits, gang.ends, gang.generation, gang.lastAdmission], [true, false, 4, 2]);
});

test("a gang that waits for a result says whose", () => {
  const key = changed(mixed, { runPolicy: { ...policy, cacheKey: "k" } });
  const found = changed(key, {}, { waiting: { reason: "WaitingForCache", message: "ml/a may", sinceMs: 1 } });
  const awaitsOf = (made: Job) => gangOf(made, OWN_KINDS, { generation: 1, lastAdmission: 0 }).awaitsResult;
  assert.deepEqual([mixed, key, found].map(awaitsOf), [null, "earlier results are looked for", "ml/a may"]);
});
