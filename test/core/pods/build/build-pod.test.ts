import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { buildPod, type PodReplica } from "../../../../src/core/pods/build/build-pod.ts";
import { buildService } from "../../../../src/core/pods/build/build-service.ts";
import { requireNodeLabels } from "../../../../src/core/pods/build-affinity.ts";
import { nodeAllows } from "../../../../src/core/pods/node-match.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../../src/runtime/json.ts";

const ownership = {
  job: { uid: "u", name: "j", namespace: "ns" },
  operatorName: "pytorchjob-controller",
  admission: 3,
  config: { installation: "i" },
};
const replica: PodReplica = {
  name: "j-worker-1",
  role: "Worker",
  index: 1,
  attempt: 2,
  isMaster: false,
  template: { spec: { containers: [{ name: "main", image: "img", env: [{ name: "A", value: "1" }] }] } },
  restartPolicy: "OnFailure",
  restartScope: "REPLICA",
  interruptible: null,
  place: null,
  nodeLabels: {},
  identity: {},
  env: { main: [{ name: "RANK", value: "2" }] },
  defaultEnv: {},
  initContainers: [],
  volumes: [],
  volumeMounts: {},
  command: {},
  serviceAccount: null,
  placing: {},
  variables: {},
  annotations: {},
  inputs: {},
  port: { container: "main", name: "p", number: 1234 },
};

const labels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"));
const requirement = fc.record({
  key: fc.constantFrom("a", "b", "gpu"),
  operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist"),
  values: fc.array(fc.constantFrom("1", "2", "h100"), { minLength: 1 }),
});
const terms = fc.array(fc.record({ matchExpressions: fc.array(requirement, { maxLength: 2 }) }), {
  minLength: 1,
  maxLength: 3,
});

test("with required node labels a pod runs only on nodes that its template allows and that have the labels", () => {
  fc.assert(
    fc.property(
      fc.option(terms, { nil: undefined }),
      labels,
      fc.constantFrom("h100", "a100"),
      (nodeSelectorTerms, extra, gpu) => {
        const podSpec: JsonObject =
          nodeSelectorTerms === undefined
            ? {}
            : { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
        const node = { name: "n", labels: { ...extra, gpu }, taints: [], unschedulable: false };
        const built = { ...podSpec, ...requireNodeLabels(podSpec, { gpu: "h100" }) };
        assert.equal(nodeAllows(built, node), nodeAllows(podSpec, node) && gpu === "h100");
      },
    ),
  );
});

test("a pod keeps labels, annotations and spec of its template except the restart policy", () => {
  const template = {
    metadata: { labels: { mine: "1" }, annotations: { note: "n" }, finalizers: ["f"], resourceVersion: "1", uid: "u" },
    spec: {
      serviceAccountName: "sa",
      restartPolicy: "Always",
      affinity: { podAffinity: { x: 1 } },
      initContainers: [{ name: "mine", image: "i" }],
      containers: [
        { name: "main", image: "img", env: [{ name: "A", value: "1" }], ports: [{ name: "mine", containerPort: 1 }] },
        { name: "side", image: "img" },
      ],
    },
  };
  const pod = buildPod(ownership, {
    ...replica,
    template,
    place: null,
    nodeLabels: { gpu: "h100" },
    initContainers: [{ name: "init" }],
  });
  const spec = objectAt(pod, "spec");
  const metadata = objectAt(pod, "metadata");
  assert.equal(metadata["name"], "j-worker-1");
  assert.deepEqual(metadata["annotations"], { note: "n" });
  assert.deepEqual(Object.keys(metadata).sort(), ["annotations", "labels", "name", "namespace"]);
  assert.deepEqual(metadata["labels"], {
    mine: "1",
    "training.kubeflow.org/job-name": "j",
    "training.kubeflow.org/operator-name": "pytorchjob-controller",
    "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "1",
    "gangway.dev/job-uid": "u",
    "gangway.dev/admission": "3",
    "gangway.dev/attempt": "2",
    "gangway.dev/installation": "i",
  });
  assert.equal(spec["restartPolicy"], "OnFailure");
  assert.equal(spec["serviceAccountName"], "sa");
  assert.deepEqual(objectAt(spec, "affinity")["podAffinity"], { x: 1 });
  assert.deepEqual(spec["initContainers"], [{ name: "mine", image: "i" }, { name: "init" }]);
  assert.deepEqual(spec["containers"], [
    {
      name: "main",
      image: "img",
      env: [
        { name: "A", value: "1" },
        { name: "RANK", value: "2" },
      ],
      ports: [
        { name: "mine", containerPort: 1 },
        { name: "p", containerPort: 1234 },
      ],
    },
    { name: "side", image: "img" },
  ]);
});

const policies = {
  "the pod has the policy of its replica": { restartPolicy: "Always", restartScope: "REPLICA", expected: "Always" },
  "under ExitCode Gangway decides, so the kubelet restarts nothing": {
    restartPolicy: "ExitCode",
    restartScope: "REPLICA",
    expected: "Never",
  },
  "with scope GANG Gangway restarts all pods, so the kubelet restarts nothing": {
    restartPolicy: "OnFailure",
    restartScope: "GANG",
    expected: "Never",
  },
} as const;
for (const [name, { expected, ...policy }] of Object.entries(policies)) {
  test(name, () => {
    assert.equal(objectAt(buildPod(ownership, { ...replica, ...policy }), "spec")["restartPolicy"], expected);
  });
}

test("a service selects only the pod of its job, admission and replica, also before the pod is ready", () => {
  const ports = [{ name: "p", port: 1234 }];
  const service = buildService(ownership, { name: "j-worker-1", role: "Worker", index: 1, ports });
  assert.deepEqual(service["spec"], {
    clusterIP: "None",
    publishNotReadyAddresses: true,
    selector: {
      "gangway.dev/job-uid": "u",
      "gangway.dev/admission": "3",
      "training.kubeflow.org/replica-type": "worker",
      "training.kubeflow.org/replica-index": "1",
    },
    ports: [{ name: "p", port: 1234, targetPort: 1234 }],
  });
});

test("a variable that template and kind set is in the pod once, in its place, with the kind's value", () => {
  const env = [
    { name: "RANK", value: "mine" },
    { name: "URL", value: "$(RANK)" },
    { name: "RANK", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  ];
  const template = { spec: { containers: [{ name: "main", image: "img", env }] } };
  assert.deepEqual(envOf(buildPod(ownership, { ...replica, template })), [
    { name: "RANK", value: "2" },
    { name: "URL", value: "$(RANK)" },
  ]);
});

test("a variable of the kind that refers to others comes after them, wherever the template sets it", () => {
  const env = [
    { name: "MEET", value: "mine" },
    { name: "A", value: "1" },
  ];
  const template = { spec: { containers: [{ name: "main", image: "img", env }] } };
  const ofKind = [
    { name: "IP", value: "x" },
    { name: "MEET", value: "$(IP):1" },
  ];
  assert.deepEqual(envOf(buildPod(ownership, { ...replica, template, env: { main: ofKind } })), [
    { name: "A", value: "1" },
    ...ofKind,
  ]);
});

test("a default variable of the kind gives way to the template's", () => {
  const template = { spec: { containers: [{ name: "main", image: "img", env: [{ name: "A", value: "1" }] }] } };
  const defaults = [
    { name: "A", value: "kind" },
    { name: "B", value: "kind" },
  ];
  assert.deepEqual(envOf(buildPod(ownership, { ...replica, template, env: {}, defaultEnv: { main: defaults } })), [
    { name: "A", value: "1" },
    { name: "B", value: "kind" },
  ]);
});

function envOf(pod: JsonObject) {
  return arrayAt(arrayAt(objectAt(pod, "spec"), "containers")[0], "env");
}
