import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import { readPodConfig } from "../../src/core/pods/read-pod-config.ts";
import type { Json, JsonObject } from "../../src/runtime/json.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-pods-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function fromFile(text: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(directory, "pods.yaml");
  writeFileSync(file, text);
  return readConfig(directory, { ...env, GANGWAY_POD_CONFIG: file }).podConfig;
}

test("without a file the platform gives nothing to pods", () => {
  assert.equal(readConfig(directory, {}).podConfig, PLAIN_POD_CONFIG);
  assert.deepEqual(fromFile(""), PLAIN_POD_CONFIG);
});

test("a file says what the platform gives, some of it out of the environment", () => {
  const config = fromFile(
    `
resources:
  defaults: { cpu: 2, gpu: 1, ephemeralStorage: 0 }
  limits: { memory: 64Gi, ephemeral-storage: 1Ti }
defaultTolerations: [{ key: ml, operator: Exists }]
defaultEnvVarsFromEnv: { REGION: SERVICE_REGION }
defaultEnvVars: { A: b }
podTemplates:
  - apiVersion: v1
    kind: PodTemplate
    metadata: { name: base, namespace: ml }
    template: { spec: { containers: [] } }
coPilot: { image: copier, command: [cp, "{{ .From }}", "{{ .To }}"], timeoutSeconds: 9 }
namespaces: { team: { serviceAccount: trainer } }
`,
    { SERVICE_REGION: "eu" },
  );
  assert.deepEqual(config.resources, {
    defaults: { cpu: "2", "nvidia.com/gpu": "1" },
    limits: { memory: "64Gi", "ephemeral-storage": "1Ti" },
  });
  assert.deepEqual(config.defaultEnvVars, { REGION: "eu", A: "b" });
  assert.deepEqual(config.podTemplates, [{ name: "base", namespace: "ml", template: { spec: { containers: [] } } }]);
  assert.equal(config.coPilot?.inputPath, "/var/inputs");
  assert.equal(config.coPilot?.timeoutSeconds, 9);
  assert.deepEqual(config.namespaces, { team: { serviceAccount: "trainer" } });
  assert.equal(config.gpuDeviceNodeLabel, PLAIN_POD_CONFIG.gpuDeviceNodeLabel);
});

test("the file that shows what there is can be read", () => {
  const file = new URL("../../deploy/pods.yaml", import.meta.url).pathname;
  const { podConfig } = readConfig(directory, { GANGWAY_POD_CONFIG: file, CLUSTER_REGION: "eu" });
  assert.equal(podConfig.resources?.limits["nvidia.com/gpu"], "8");
  assert.deepEqual(podConfig.defaultEnvVars, { NCCL_DEBUG: "WARN", REGION: "eu" });
});

test("a file that cannot be read is refused by name", () => {
  assert.throws(
    () => readConfig(directory, { GANGWAY_POD_CONFIG: join(directory, "none.yaml") }),
    /^Error: GANGWAY_POD_CONFIG names .*none\.yaml, which cannot be read: ENOENT/,
  );
  assert.throws(() => fromFile("a: [1"), /pods\.yaml, which cannot be read: /);
  assert.throws(() => fromFile("schedulerName: 3"), /pods\.yaml, where schedulerName must be text$/);
});

const readable: Record<string, { readonly value: JsonObject; readonly config: Partial<PodConfig> }> = {
  "no member at all": { value: {}, config: {} },
  "members that are null": {
    value: { schedulerName: null, coPilot: null, resources: { limits: null } },
    config: { resources: { defaults: {}, limits: {} } },
  },
  "each requirement that a scheduler knows": {
    value: { interruptibleNodeSelectorRequirement: { key: "spot", operator: "Exists" } },
    config: { interruptibleNodeSelectorRequirement: { key: "spot", operator: "Exists" } },
  },
  "texts, lists and switches": {
    value: {
      schedulerName: "gang",
      enableHostNetworkingPod: false,
      defaultEnvFromSecrets: ["a", "b"],
      defaultNodeSelector: { pool: "gpu", empty: "" },
      resourceTolerations: { "nvidia.com/gpu": [{ key: "gpu" }] },
      logs: [{ name: "a", uri: "u" }],
    },
    config: {
      schedulerName: "gang",
      enableHostNetworkingPod: false,
      defaultEnvFromSecrets: ["a", "b"],
      defaultNodeSelector: { pool: "gpu", empty: "" },
      resourceTolerations: { "nvidia.com/gpu": [{ key: "gpu" }] },
      logs: [{ name: "a", uri: "u" }],
    },
  },
  "amounts as texts or numbers": {
    value: { defaultCPURequest: 2, defaultMemoryRequest: "0" },
    config: { defaultCPURequest: "2", defaultMemoryRequest: "0" },
  },
  "the platform's own name of its GPUs": {
    value: { gpuResourceName: "amd.com/gpu", resources: { limits: { gpu: 4 } } },
    config: { gpuResourceName: "amd.com/gpu", resources: { defaults: {}, limits: { "amd.com/gpu": "4" } } },
  },
  "resources of one namespace": {
    value: { namespaces: { team: { resources: { defaults: { cpu: 1 } } } } },
    config: { namespaces: { team: { resources: { defaults: { cpu: "1" }, limits: {} } } } },
  },
  "a co-pilot with an image and a command alone": {
    value: { coPilot: { image: "copier", command: ["cp"] } },
    config: {
      coPilot: {
        image: "copier",
        command: ["cp"],
        env: [],
        envFrom: [],
        inputPath: "/var/inputs",
        outputPath: "/var/outputs",
        cpu: "500m",
        memory: "128Mi",
        timeoutSeconds: 300,
      },
    },
  },
};
for (const [name, { value, config }] of Object.entries(readable)) {
  test(`read: ${name}`, () => {
    assert.deepEqual(
      readPodConfig(value, () => undefined),
      { kind: "read", config: { ...PLAIN_POD_CONFIG, ...config } },
    );
  });
}

test("the environment gives a variable its value, or an empty one, and a value of the file wins", () => {
  const names = { A: "FROM_A", B: "FROM_B", C: "FROM_C" };
  const outcome = readPodConfig({ defaultEnvVarsFromEnv: names, defaultEnvVars: { C: "file" } }, (name) =>
    name === "FROM_B" ? undefined : `value of ${name}`,
  );
  assert.ok(outcome.kind === "read");
  assert.deepEqual(outcome.config.defaultEnvVars, { A: "value of FROM_A", B: "", C: "file" });
});

const refusals: Readonly<Record<string, { value: Json; errors: readonly string[] }>> = {
  "another shape": { value: [], errors: ["must be an object"] },
  "members that are not known": {
    value: { logs: [{ name: "a", uri: "u", scheme: "x" }] },
    errors: ["logs[0].scheme is unknown; known are name, uri"],
  },
  "amounts that are no quantities": {
    value: { resources: { limits: { cpu: "many" } }, defaultCPURequest: "-1" },
    errors: [
      'resources.limits.cpu is "many": must be a quantity such as 500m, 2 or 8Gi',
      'defaultCPURequest is "-1": must be a quantity such as 500m, 2 or 8Gi',
    ],
  },
  "members of another type": {
    value: {
      gpuResourceName: "",
      schedulerName: "",
      serviceAccount: 1,
      enableHostNetworkingPod: "yes",
      defaultAffinity: [],
      defaultTolerations: { key: "a" },
      interruptibleTolerations: ["a"],
      defaultNodeSelector: { pool: 1 },
      defaultEnvFromSecrets: ["a", ""],
      defaultCPURequest: true,
      namespaces: { a: { serviceAccount: 1, quota: 1 } },
    },
    errors: [
      "gpuResourceName must be text",
      "schedulerName must be text",
      "serviceAccount must be text",
      "enableHostNetworkingPod must be true or false",
      "defaultAffinity must be an object",
      "defaultTolerations must be a list",
      "interruptibleTolerations[0] must be an object",
      "defaultNodeSelector.pool must be text",
      "defaultEnvFromSecrets[1] must be text",
      "defaultCPURequest is true: must be a quantity such as 500m, 2 or 8Gi",
      "namespaces.a.serviceAccount must be text",
      "namespaces.a.quota is unknown; known are resources, serviceAccount",
    ],
  },
  "logs without an address": { value: { logs: [{ name: "a" }] }, errors: ["logs[0].uri is required"] },
  "a requirement whose key is empty": {
    value: { nonInterruptibleNodeSelectorRequirement: { key: "", operator: 1 } },
    errors: [
      "nonInterruptibleNodeSelectorRequirement.key is required",
      "nonInterruptibleNodeSelectorRequirement.operator must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
    ],
  },
  "a template whose name is no text": {
    value: { podTemplates: [{ metadata: { name: 1, namespace: "" }, template: {}, spec: {} }] },
    errors: [
      "podTemplates[0].spec is unknown; known are metadata, template",
      "podTemplates[0].metadata.name is required",
      "podTemplates[0].metadata.namespace is required",
    ],
  },
  "a co-pilot with half a second and no words": {
    value: { coPilot: { image: "i", command: [], timeoutSeconds: 0.5 } },
    errors: [
      "coPilot.timeoutSeconds must be a whole number of 1 or more",
      "coPilot.command is required: a command that copies {{ .From }} to {{ .To }}",
    ],
  },
  "requirements that no scheduler knows": {
    value: { interruptibleNodeSelectorRequirement: { operator: "Like" } },
    errors: [
      "interruptibleNodeSelectorRequirement.key is required",
      "interruptibleNodeSelectorRequirement.operator must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
    ],
  },
  "templates without a name": {
    value: { podTemplates: [{ metadata: { namespace: "a" }, template: {} }, {}] },
    errors: [
      "podTemplates[0].metadata.name is required",
      "podTemplates[1].metadata is required",
      "podTemplates[1].template is required",
      "podTemplates[1].metadata.name is required",
      "podTemplates[1].metadata.namespace is required",
    ],
  },
  "a co-pilot that copies nothing": {
    value: { coPilot: { timeoutSeconds: 0 } },
    errors: [
      "coPilot.timeoutSeconds must be a whole number of 1 or more",
      "coPilot.image is required",
      "coPilot.command is required: a command that copies {{ .From }} to {{ .To }}",
    ],
  },
};
for (const [name, { value, errors }] of Object.entries(refusals)) {
  test(`refused: ${name}`, () => {
    assert.deepEqual(
      readPodConfig(value, () => undefined),
      { kind: "refused", errors },
    );
  });
}
