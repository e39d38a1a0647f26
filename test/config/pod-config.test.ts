import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig } from "../../src/config.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { readPodConfig } from "../../src/core/pods/read-pod-config.ts";
import type { Json } from "../../src/runtime/json.ts";

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

const refusals: Readonly<Record<string, { value: Json; errors: readonly string[] }>> = {
  "another shape": { value: [], errors: ["must be an object"] },
  "members that are not known": {
    value: { logs: [{ name: "a", uri: "u", scheme: "x" }] },
    errors: ["logs[0].scheme is unknown; known are name, uri"],
  },
  "amounts that are no quantities": {
    value: { resources: { limits: { cpu: "many" } }, defaultCPURequest: "-1" },
    errors: [
      'resources.limits.cpu is "many": must be a quantity, like 500m, 2 or 8Gi',
      'defaultCPURequest is "-1": must be a quantity, like 500m, 2 or 8Gi',
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
      "coPilot.command is required: it copies {{ .From }} to {{ .To }}",
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
