import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkTemplate } from "../../src/core/pods/validate-template.ts";
import type { Json, JsonObject } from "../../src/runtime/json.ts";

const good: JsonObject = { name: "main", image: "img" };
const withSpec = (spec: JsonObject): JsonObject => ({ spec: { containers: [good], ...spec } });
const withContainer = (container: JsonObject): JsonObject => ({ spec: { containers: [{ ...good, ...container }] } });

test("any JSON is answered with findings, never with an exception", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.jsonValue({ maxDepth: 4 }), (spec, containers) => {
      for (const template of [
        { spec: spec as Json },
        { spec: { containers: containers as Json } },
        { spec: { containers: [containers as Json] } },
      ]) {
        const { errors, warnings } = checkTemplate(template as JsonObject);
        assert.ok([...errors, ...warnings].every(({ path, message }) => path !== "" && message !== ""));
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
  test(`${name} is a warning that names what was meant`, () => {
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
  "a limit that is no quantity": [
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
  "a chosen node": [withSpec({ nodeName: "n" }), "spec.nodeName"],
  "scheduling gates": [withSpec({ schedulingGates: [{ name: "g" }] }), "spec.schedulingGates"],
  "the host's network": [withSpec({ hostNetwork: true }), "spec.hostNetwork"],
  "the host's processes": [withSpec({ hostPID: true }), "spec.hostPID"],
  "the host's IPC": [withSpec({ hostIPC: true }), "spec.hostIPC"],
  "a path of the host": [withSpec({ volumes: [{ name: "v", hostPath: { path: "/" } }] }), "spec.volumes[0].hostPath"],
  "a privileged container": [
    withContainer({ securityContext: { privileged: true } }),
    "spec.containers[0].securityContext.privileged",
  ],
  "containers that are no list": [{ spec: { containers: good, initContainers: [] } }, "spec.containers"],
} as const;
for (const [name, [template, path]] of Object.entries(wrong)) {
  test(`${name}: an error at its path`, () => {
    const paths = checkTemplate(template).errors.map((error) => error.path);
    assert.deepEqual([...new Set(paths)], [path]);
  });
}

test("host namespaces that are switched off, and a container that is not privileged, are no error", () => {
  const template = { spec: { hostNetwork: false, containers: [{ ...good, securityContext: { privileged: false } }] } };
  assert.deepEqual(checkTemplate(template), { errors: [], warnings: [] });
});
