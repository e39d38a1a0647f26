import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FieldError } from "../../../../src/core/job/request/sent.ts";
import { judgePod } from "../../../../src/core/pods/judge/judge-pod.ts";
import { knownTemplate } from "../../../../src/core/pods/judge/pod-types.ts";
import { checkTemplate } from "../../../../src/core/pods/judge/validate-template.ts";
import { findingErrors } from "../../../../src/core/pods/judge/words.ts";
import { arrayAt, type Json, type JsonObject, objectAt } from "../../../../src/runtime/json.ts";

const good: JsonObject = { name: "main", image: "img" };
const withSpec = (spec: JsonObject): JsonObject => ({ spec: { containers: [good], ...spec } });
const withContainer = (container: JsonObject): JsonObject => ({ spec: { containers: [{ ...good, ...container }] } });

/** The errors of a template: of its types and of what Gangway forbids, else of the pod that it makes. */
function errorsOf(template: JsonObject): readonly FieldError[] {
  const { errors } = checkTemplate(template);
  const metadata = { ...objectAt(template, "metadata"), name: "pod" };
  return errors.length > 0 ? errors : findingErrors(judgePod({ ...template, metadata }));
}

test("the check of any JSON returns findings and never throws", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.jsonValue({ maxDepth: 4 }), (spec, containers) => {
      for (const template of [
        { spec: spec as Json },
        { spec: { containers: containers as Json } },
        { spec: { containers: [containers as Json] } },
      ]) {
        const { errors, warnings } = checkTemplate(template as JsonObject);
        const judged = findingErrors(judgePod(template as JsonObject));
        assert.ok([...errors, ...warnings, ...judged].every(({ path, message }) => path !== "" && message !== ""));
      }
    }),
  );
});

const typos = {
  "a misspelt list of containers": [{ spec: { contianers: [], containers: [good] } }, "spec.contianers", "containers"],
  "a misspelt node selector": [withSpec({ nodeSelctor: {} }), "spec.nodeSelctor", "nodeSelector"],
  "a misspelt pull policy": [
    withContainer({ imagePullPolcy: "x" }),
    "spec.containers[0].imagePullPolcy",
    "imagePullPolicy",
  ],
  "a misspelt list of resources": [withContainer({ resorces: {} }), "spec.containers[0].resorces", "resources"],
  "a limit in the singular": [
    withContainer({ resources: { limit: {} } }),
    "spec.containers[0].resources.limit",
    "limits",
  ],
  "a misspelt mount": [
    withContainer({ volumeMounts: [{ name: "v", mountpth: "/" }] }),
    "spec.containers[0].volumeMounts[0].mountpth",
    "mountPath",
  ],
} as const;
for (const [name, [template, path, meant]] of Object.entries(typos)) {
  test(`${name} is a warning with the probable name`, () => {
    const { errors, warnings } = checkTemplate(template);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      warnings.map((warning) => warning.path),
      [path],
    );
    assert.ok(warnings[0]?.message.endsWith(`did you mean ${meant}?`), warnings[0]?.message);
  });
}

const wrong = {
  "no template at all": [{}, "spec.containers"],
  "no containers": [{ spec: { containers: [] } }, "spec.containers"],
  "a container without a name": [{ spec: { containers: [{ image: "i" }] } }, "spec.containers[0].name"],
  "a container without an image": [{ spec: { containers: [{ name: "a" }] } }, "spec.containers[0].image"],
  "two containers of one name": [{ spec: { containers: [good, good] } }, "spec.containers[1].name"],
  "an init container with a container's name": [withSpec({ initContainers: [good] }), "spec.initContainers[0].name"],
  "a limit that is not a quantity": [
    withContainer({ resources: { limits: { cpu: "2 cores" } } }),
    "spec.containers[0].resources.limits.cpu",
  ],
  "a negative request": [
    withContainer({ resources: { requests: { cpu: -1 } } }),
    "spec.containers[0].resources.requests.cpu",
  ],
  "a request above its limit": [
    withContainer({ resources: { limits: { memory: "1Gi" }, requests: { memory: "2Gi" } } }),
    "spec.containers[0].resources.requests.memory",
  ],
  "GPUs that are requested without a limit": [
    withContainer({ resources: { requests: { "nvidia.com/gpu": 1 } } }),
    'spec.containers[0].resources.requests["nvidia.com/gpu"]',
  ],
  "a request that is no quantity": [
    withContainer({ resources: { limits: { cpu: 1 }, requests: { cpu: "all" } } }),
    "spec.containers[0].resources.requests.cpu",
  ],
  "GPUs with a limit above the request": [
    withContainer({ resources: { limits: { "nvidia.com/gpu": 2 }, requests: { "nvidia.com/gpu": 1 } } }),
    'spec.containers[0].resources.requests["nvidia.com/gpu"]',
  ],
  "half a GPU": [
    withContainer({ resources: { limits: { "nvidia.com/gpu": "500m" } } }),
    'spec.containers[0].resources.limits["nvidia.com/gpu"]',
  ],
  "an amount that is too long to read": [
    withContainer({ resources: { limits: { cpu: "1".repeat(41) } } }),
    "spec.containers[0].resources.limits.cpu",
  ],
  "a limit of an init container that is no quantity": [
    withSpec({ initContainers: [{ name: "init", image: "i", resources: { limits: { cpu: true } } }] }),
    "spec.initContainers[0].resources.limits.cpu",
  ],
  "a container's name in upper case": [withContainer({ name: "Main" }), "spec.containers[0].name"],
  "a container's name of 64 letters": [withContainer({ name: "a".repeat(64) }), "spec.containers[0].name"],
  "an image of spaces": [withContainer({ image: "  " }), "spec.containers[0].image"],
  "a container that is text": [withSpec({ containers: [good, "main"] }), "spec.containers[1]"],
  "resources that are a list": [withContainer({ resources: [] }), "spec.containers[0].resources"],
  "an ephemeral container": [withSpec({ ephemeralContainers: [{ name: "debug" }] }), "spec.ephemeralContainers"],
  "a chosen node": [withSpec({ nodeName: "n" }), "spec.nodeName"],
  "scheduling gates": [withSpec({ schedulingGates: [{ name: "g" }] }), "spec.schedulingGates"],
  "a group of pods": [withSpec({ schedulingGroup: { podGroupName: "g" } }), "spec.schedulingGroup"],
  "a node that is chosen by its field": [
    withSpec({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] }],
          },
        },
      },
    }),
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields",
  ],
  "a node that is preferred by its field": [
    withSpec({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] } },
          ],
        },
      },
    }),
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields",
  ],
  "a path of the host that leads upwards": [
    withSpec({ volumes: [{ name: "v", hostPath: { path: "/dev/shm/../../etc" } }] }),
    "spec.volumes[0].hostPath.path",
  ],
  "a grace period of more than an hour": [
    withSpec({ terminationGracePeriodSeconds: 3601 }),
    "spec.terminationGracePeriodSeconds",
  ],
  "a negative grace period": [withSpec({ terminationGracePeriodSeconds: -1 }), "spec.terminationGracePeriodSeconds"],
  "a grace period that is text": [
    withSpec({ terminationGracePeriodSeconds: "forever" }),
    "spec.terminationGracePeriodSeconds",
  ],
  "a grace period of a probe": [
    withContainer({ livenessProbe: { terminationGracePeriodSeconds: 1e9 } }),
    "spec.containers[0].livenessProbe.terminationGracePeriodSeconds",
  ],
  "containers that are not a list": [{ spec: { containers: good, initContainers: [] } }, "spec.containers"],
} as const;
for (const [name, [template, path]] of Object.entries(wrong)) {
  test(`${name}: an error at its path`, () => {
    const paths = errorsOf(template).map((error) => error.path);
    assert.deepEqual([...new Set(paths)], [path]);
  });
}

const metadata = {
  finalizers: ["example.com/never"],
  ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }],
  resourceVersion: "1",
  uid: "u",
  name: "pod",
  namespace: "kube-system",
};
test("of a template's metadata only labels and annotations stay, with a warning for each other member", () => {
  const template = { ...withSpec({}), metadata: { ...metadata, labels: { a: "b" }, annotations: { c: "d" } } };
  const { errors, warnings } = checkTemplate(template);
  assert.deepEqual(errors, []);
  assert.deepEqual(
    warnings.map(({ path }) => path),
    Object.keys(metadata).map((name) => `metadata.${name}`),
  );
  assert.deepEqual(objectAt(knownTemplate(template), "metadata"), { labels: { a: "b" }, annotations: { c: "d" } });
});

test("a template keeps the members that are known, and no other", () => {
  const known: JsonObject = {
    containers: [{ ...good, lifecycle: { preStop: { exec: { command: ["x"] } } }, securityContext: { runAsUser: 1 } }],
    volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["a"] } } } }],
    nodeSelector: { any: "label" },
    tolerations: [{ key: "k", operator: "Exists" }],
  };
  assert.deepEqual(knownTemplate({ spec: known }), { spec: known });
  const more = { ...known, hostRoot: true, securityContext: { hostKeys: "all", fsGroup: 1 } };
  assert.deepEqual(knownTemplate({ spec: more, extra: 1 }), { spec: { ...known, securityContext: { fsGroup: 1 } } });
});

test("a member that is unknown is left out unread, since there may be many thousands", () => {
  const spec = {
    containers: [good],
    get unknown(): Json {
      throw new Error("was read");
    },
  };
  assert.deepEqual(knownTemplate({ spec }), { spec: { containers: [good] } });
});

const allowed: Record<string, JsonObject> = {
  "a grace period of an hour": withSpec({ terminationGracePeriodSeconds: 3600 }),
  "metadata that is null": { ...withSpec({}), metadata: { creationTimestamp: null, labels: { a: "b" } } },
  "a node's name that is empty": withSpec({ nodeName: "", schedulingGates: null }),
  "a request that equals its limit": withContainer({
    resources: { limits: { cpu: "1", "nvidia.com/gpu": 2 }, requests: { cpu: "1000m", "nvidia.com/gpu": "2" } },
  }),
  "a request without a limit": withContainer({ resources: { requests: { cpu: "100m", memory: 0 } } }),
  "a fraction of a resource of Kubernetes' own": withContainer({
    resources: { limits: { "kubernetes.io/x": "500m" } },
  }),
  "a container's name of 63 letters": withContainer({ name: "a".repeat(63) }),
  "an amount of 40 digits": withContainer({ resources: { limits: { cpu: "1".repeat(40) } } }),
  "members that are null": withContainer({ resources: null, volumeMounts: null }),
};
for (const [name, template] of Object.entries(allowed)) {
  test(`${name}: no error and no warning`, () => {
    assert.deepEqual(checkTemplate(template), { errors: [], warnings: [] });
    assert.deepEqual(errorsOf(template), []);
  });
}

const volumes: Record<string, { readonly podSpec: JsonObject; readonly paths: readonly string[] }> = {
  "volumes that are mounted": {
    podSpec: {
      volumes: [{ name: "v" }, { name: "w" }],
      containers: [{ volumeMounts: [mount("v", "/v"), mount("w", "/w"), mount("v", "/x")] }],
      initContainers: [{ volumeMounts: [mount("v", "/v")] }],
    },
    paths: [],
  },
  "two volumes of one name": {
    podSpec: { volumes: [{ name: "v" }, { name: "w" }, { name: "v" }] },
    paths: ["spec.volumes[2].name"],
  },
  "two mounts at one path of a container": {
    podSpec: { volumes: [{ name: "v" }], containers: [{ volumeMounts: [mount("v", "/v"), mount("v", "/v")] }] },
    paths: ["spec.containers[0].volumeMounts[1].mountPath"],
  },
  "a mount of a volume that is not there": {
    podSpec: { volumes: [{ name: "v" }], initContainers: [{}, { volumeMounts: [mount("w", "/w")] }] },
    paths: ["spec.initContainers[1].volumeMounts[0].name"],
  },
  "mounts without a path": {
    podSpec: { volumes: [{ name: "v" }], containers: [{ volumeMounts: [{ name: "v" }, { name: "v" }] }] },
    paths: ["spec.containers[0].volumeMounts[0].mountPath", "spec.containers[0].volumeMounts[1].mountPath"],
  },
};
for (const [name, { podSpec, paths }] of Object.entries(volumes)) {
  test(`${name}: ${paths[0] ?? "no error"}`, () => {
    const named = (list: string) =>
      arrayAt(podSpec, list).map((container, index) => ({
        name: `${list.toLowerCase()}-${index}`,
        image: "i",
        ...objectAt({ container }, "container"),
      }));
    const spec = { ...podSpec, initContainers: named("initContainers"), containers: [...named("containers"), good] };
    assert.deepEqual(
      errorsOf({ spec }).map(({ path }) => path),
      paths,
    );
  });
}

test("a pod's containers may request the resources that Kubernetes and device plugins give them alone", () => {
  const known = ["cpu", "memory", "ephemeral-storage", "kubernetes.io/x", "nvidia.com/gpu"];
  const unknown = ["gpu", "hugepages-", "requests.nvidia.com/gpu", "a/b/c", "/gpu", "cpus", "xcpu"];
  const amounts = Object.fromEntries([...known, ...unknown].map((name) => [name, 1]));
  const podSpec = {
    containers: [good, { name: "b", image: "i", resources: { requests: amounts, limits: amounts } }],
  };
  const paths = [
    ...unknown.map((name) => `spec.containers[1].resources.limits${keyText(name)}`),
    ...unknown.map((name) => `spec.containers[1].resources.requests${keyText(name)}`),
  ];
  assert.deepEqual([...new Set(errorsOf({ spec: podSpec }).map(({ path }) => path))], paths);
});

function keyText(name: string): string {
  return /^[A-Za-z][A-Za-z0-9-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

function mount(name: string, mountPath: string): JsonObject {
  return { name, mountPath };
}
