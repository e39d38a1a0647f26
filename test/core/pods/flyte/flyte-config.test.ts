import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FLYTE_WORDS } from "../../../../src/core/pods/flyte/flyte-words.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../../../src/core/pods/pod-config.ts";
import { readPodConfig } from "../../../../src/core/pods/read-pod-config.ts";
import type { Json, JsonObject } from "../../../../src/runtime/json.ts";
import { readYaml } from "../../../../src/runtime/yaml.ts";

const read = (file: Json) => readPodConfig(file, (name) => `value of ${name}`);

function taken(file: Json): PodConfig {
  const outcome = read(file);
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  return outcome.config;
}

function refusedFor(file: Json): readonly string[] {
  const outcome = read(file);
  assert.ok(outcome.kind === "refused", "it was read");
  return outcome.errors;
}

function parsed(text: string): Json {
  const document = readYaml(text, { bytesMax: 100_000, depthMax: 64, tokensMax: 10_000, referencesMax: 10 });
  assert.ok(document.kind === "value");
  return document.value;
}

/** What Flyte itself prints as the defaults of its section `k8s`. */
const DEFAULTS = `
add-tolerations-for-extended-resources: []
co-pilot:
  cpu: 500m
  default-input-path: /var/flyte/inputs
  default-output-path: /var/flyte/outputs
  image: cr.flyte.org/flyteorg/flytecopilot:v0.0.15
  input-vol-name: flyte-inputs
  memory: 128Mi
  name: flyte-copilot-
  output-vol-name: flyte-outputs
  start-timeout: 1m40s
  storage: ""
create-container-config-error-grace-period: 0s
create-container-error-grace-period: 3m0s
default-annotations:
  cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
default-cpus: "1"
default-env-from-configmaps: null
default-env-from-secrets: null
default-env-vars: null
default-env-vars-from-env: null
default-labels: null
default-memory: 1Gi
default-node-selector: null
default-pod-dns-config: null
default-pod-security-context: null
default-pod-template-name: ""
default-pod-template-resync: 30s
default-security-context: null
default-tolerations: null
delete-resource-on-finalize: false
enable-distributed-error-aggregation: false
enable-host-networking-pod: null
gpu-device-node-label: k8s.amazonaws.com/accelerator
gpu-partition-size-node-label: k8s.amazonaws.com/gpu-partition-size
gpu-resource-name: nvidia.com/gpu
gpu-unpartitioned-node-selector-requirement: null
gpu-unpartitioned-toleration: null
image-pull-backoff-grace-period: 3m0s
image-pull-policy: ""
inject-finalizer: false
interruptible-node-selector: null
interruptible-node-selector-requirement: null
interruptible-tolerations: null
non-interruptible-node-selector-requirement: null
pod-pending-timeout: 0s
resource-tolerations: null
scheduler-name: ""
send-object-events: false
update-backoff-retries: 5
update-base-backoff-duration: 10
`;

test("the defaults that Flyte prints are read without a word about them, and mean what they mean in Flyte", () => {
  const config = taken(parsed(DEFAULTS));
  assert.deepEqual(config.notes, []);
  assert.deepEqual(config.resources, { defaults: {}, limits: {} }, "every container gets the defaults");
  assert.equal(config.defaultCPURequest, "1");
  assert.deepEqual(config.defaultAnnotations, { "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" });
  assert.equal(config.imagePullPolicy, undefined);
  assert.equal(config.coPilot?.inputPath, "/var/flyte/inputs");
  assert.equal(config.coPilot?.command[0], "/bin/flyte-copilot");
  assert.deepEqual(config.pending, {
    createContainerConfigErrorGraceMs: 0,
    createContainerErrorGraceMs: 180_000,
    imagePullBackoffGraceMs: 180_000,
    podPendingTimeoutMs: 0,
  });
});

test("the words stand alone, below plugins.k8s, or as in the values of Flyte's chart", () => {
  const inner = { "scheduler-name": "gang", "default-cpus": 2 };
  const expected = { ...PLAIN_POD_CONFIG, schedulerName: "gang", defaultCPURequest: "2" };
  const resources = { defaults: {}, limits: {} };
  for (const file of [inner, { plugins: { k8s: inner } }, { k8s: { plugins: { k8s: inner } } }]) {
    assert.deepEqual(taken(file), { ...expected, resources });
  }
});

test("words of ours beside those of Flyte complete them", () => {
  const config = taken({
    serviceAccount: "trainer",
    resources: { limits: { cpu: 8 } },
    plugins: { k8s: { "default-memory": "2Gi" }, logs: { "kubernetes-enabled": true } },
  });
  assert.equal(config.serviceAccount, "trainer");
  assert.deepEqual([config.resources?.limits, config.defaultMemoryRequest], [{ cpu: "8" }, "2Gi"]);
  assert.deepEqual(config.notes, ["plugins.logs has no effect: only k8s has"]);
});

const words: Record<string, { readonly file: JsonObject; readonly config: Partial<PodConfig> }> = {
  "maps as maps, and as lists of maps with numbers and flags": {
    file: {
      "default-env-vars": [{ A: "1" }, { PORT: 8080 }, { DEBUG: true }],
      "default-node-selector": { pool: "gpu" },
      "default-labels": [{ team: "ml" }],
    },
    config: {
      defaultEnvVars: { A: "1", PORT: "8080", DEBUG: "true" },
      defaultNodeSelector: { pool: "gpu" },
      defaultLabels: { team: "ml" },
    },
  },
  "environment of the service": {
    file: { "default-env-vars-from-env": { REGION: "AWS_REGION" }, "default-env-from-secrets": ["s"] },
    config: { defaultEnvVars: { REGION: "value of AWS_REGION" }, defaultEnvFromSecrets: ["s"] },
  },
  "tolerations of resources, and those that follow from the names of resources": {
    file: {
      "resource-tolerations": [{ "nvidia.com/gpu": [{ key: "gpu", operator: "Exists" }] }],
      "add-tolerations-for-extended-resources": ["nvidia.com/gpu", "habana.ai/gaudi"],
    },
    config: {
      resourceTolerations: {
        "nvidia.com/gpu": [
          { key: "gpu", operator: "Exists" },
          { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" },
        ],
        "habana.ai/gaudi": [{ key: "habana.ai/gaudi", operator: "Exists", effect: "NoSchedule" }],
      },
    },
  },
  "interruptible pods": {
    file: {
      "interruptible-tolerations": [{ key: "spot" }],
      "interruptible-node-selector": { spot: "true" },
      "non-interruptible-node-selector-requirement": { key: "spot", operator: "DoesNotExist" },
    },
    config: {
      interruptibleTolerations: [{ key: "spot" }],
      interruptibleNodeSelector: { spot: "true" },
      nonInterruptibleNodeSelectorRequirement: { key: "spot", operator: "DoesNotExist" },
    },
  },
  "GPUs, images and the network": {
    file: { "gpu-resource-name": "amd.com/gpu", "image-pull-policy": "Always", "enable-host-networking-pod": true },
    config: { gpuResourceName: "amd.com/gpu", imagePullPolicy: "Always", enableHostNetworkingPod: true },
  },
};
for (const [name, { file, config }] of Object.entries(words)) {
  test(`read: ${name}`, () => assert.deepEqual(taken(file), { ...PLAIN_POD_CONFIG, ...config }));
}

const refused: Record<string, { readonly file: JsonObject; readonly errors: readonly string[] }> = {
  "a misspelt word of Flyte": {
    file: { "default-toleration": [], "gpu-resource-nam": "x" },
    errors: [
      "default-toleration is unknown: did you mean default-tolerations?",
      "gpu-resource-nam is unknown: did you mean gpu-resource-name?",
    ],
  },
  "a misspelt word where only Flyte's can stand": {
    file: { plugins: { k8s: { "image-pull-polic": "Always", "co-pilot": { imagee: "x" } } } },
    errors: [
      "plugins.k8s.image-pull-polic is unknown: did you mean image-pull-policy?",
      "plugins.k8s.co-pilot.imagee is unknown: did you mean image?",
      "plugins.k8s.co-pilot.image is required",
    ],
  },
  "a misspelt word of ours": {
    file: { defaultToleration: [] },
    errors: ["defaultToleration is unknown: did you mean defaultTolerations?"],
  },
  "wrong values, by the words of the file": {
    file: {
      plugins: {
        k8s: {
          "scheduler-name": 3,
          "default-cpus": "many",
          "image-pull-policy": "Sometimes",
          "pod-pending-timeout": "3 minutes",
          "default-labels": { "gangway.dev/job": "x", ok: "not a label!" },
          "interruptible-node-selector-requirement": { key: "spot", operator: "Is" },
          "add-tolerations-for-extended-resources": "gpu",
        },
      },
    },
    errors: [
      "plugins.k8s.add-tolerations-for-extended-resources must be a list of names of resources",
      "plugins.k8s.scheduler-name must be text",
      'plugins.k8s.default-cpus is "many": must be a quantity such as 500m, 2 or 8Gi',
      "plugins.k8s.image-pull-policy must be one of Always, IfNotPresent, Never",
      'plugins.k8s.pod-pending-timeout is "3 minutes": must be a duration such as 3m0s, at most 24h',
      "plugins.k8s.default-labels.gangway.dev/job must not be set: gangway.dev/ is Gangway's own",
      "plugins.k8s.default-labels.ok must be at most 63 letters, digits, '-', '_' and '.', " +
        "with a letter or digit at both ends, or empty",
      "plugins.k8s.interruptible-node-selector-requirement.operator must be one of " +
        "In, NotIn, Exists, DoesNotExist, Gt, Lt",
    ],
  },
  "a setting that is said twice": {
    file: { schedulerName: "a", "scheduler-name": "b" },
    errors: ["scheduler-name says the same as schedulerName: keep one of them"],
  },
  "a preference without a weight": {
    file: { preferredNodes: [{ matchExpressions: [{ key: "zone", operator: "Exists" }] }, { weight: 101 }] },
    errors: [
      "preferredNodes[0].weight is required: a whole number from 1 to 100",
      "preferredNodes[1].weight must be a whole number from 1 to 100",
      "preferredNodes[1].matchExpressions is required: requirements of labels of nodes",
    ],
  },
};
for (const [name, { file, errors }] of Object.entries(refused)) {
  test(`refused: ${name}`, () => assert.deepEqual(refusedFor(file), errors));
}

test("a word that has no effect here is one line, which says what has", () => {
  const { notes } = taken({
    "inject-finalizer": true,
    "delete-resource-on-finalize": true,
    "default-pod-template-resync": "10s",
    "accelerator-device-classes": { TPU: { "resource-name": "google.com/tpu" } },
    "co-pilot": {
      image: "i",
      name: "pilot-",
      "storage-config-override": {
        type: "s3",
        container: "bucket",
        connection: { region: "eu-west-1", "auth-type": "accesskey", "secret-key": "hidden" },
      },
    },
  });
  assert.deepEqual(notes, [
    "inject-finalizer has no effect: pods are followed without finalizers",
    "delete-resource-on-finalize has no effect: runPolicy.cleanPodPolicy of a job says which pods stay",
    "default-pod-template-resync has no effect: the file itself is looked at every two seconds",
    "accelerator-device-classes has no effect: name the resource in the template, its nodes by " +
      "gangway.dev/gpu-device, and its base by podTemplates",
    "co-pilot.name has no effect: the containers are gangway-downloader and gangway-uploader",
    "co-pilot.storage-config-override.connection.secret-key has no effect, because every pod would show it: " +
      "use coPilot.envFrom",
  ]);
});

test("flags tell Flyte's co-pilot about the storage, but no secret; a command of ours replaces its own", () => {
  const pilot = {
    image: "i",
    "finish-timeout": "1m30s",
    "storage-config-override": {
      "enable-multicontainer": true,
      container: "bucket",
      type: "stow",
      stow: { kind: "s3", config: { region: "eu-west-1", secret_key: "hidden", access_key_id: "id" } },
    },
  };
  const config = taken({ "co-pilot": pilot }).coPilot;
  assert.deepEqual(config?.command.slice(0, 9), [
    "/bin/flyte-copilot",
    "--storage.limits.maxDownloadMBs=0",
    "--storage.enable-multicontainer",
    "--storage.container=bucket",
    "--storage.type=stow",
    "--storage.stow.config",
    "region=eu-west-1",
    "--storage.stow.kind=s3",
    "download",
  ]);
  assert.doesNotMatch(JSON.stringify(config), /hidden/);
  assert.equal(config?.timeoutSeconds, 90);
  const ours = taken({ "co-pilot": pilot, coPilot: { command: ["cp", "{{ .From }}", "{{ .To }}"] } }).coPilot;
  assert.deepEqual([ours?.command, ours?.uploadCommand], [["cp", "{{ .From }}", "{{ .To }}"], undefined]);
});

test("whatever a file says, reading it ends with settings or with errors, one for each unknown word", () => {
  const word = fc.constantFrom(...Object.keys(FLYTE_WORDS), "plugins", "k8s", "resources", "schedulerName");
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom("3m", "1", [{ a: "b" }], {}, ["x"]));
  const file = fc.dictionary(word, value as fc.Arbitrary<Json>);
  fc.assert(
    fc.property(file, fc.constantFrom<"top" | "inner">("top", "inner"), (words, at) => {
      const outcome = read(at === "top" ? words : { plugins: { k8s: words } });
      if (outcome.kind === "refused") assert.ok(outcome.errors.length > 0);
      for (const line of outcome.kind === "read" ? outcome.config.notes : outcome.errors)
        assert.doesNotMatch(line, /\n/);
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,8}(-[a-z]{1,8}){0,3}$/), (unknown) => {
      fc.pre(!Object.hasOwn(FLYTE_WORDS, unknown) && unknown !== "resources" && unknown !== "logs");
      fc.pre(unknown !== "namespaces");
      const [error = "", ...others] = refusedFor({ [unknown]: true });
      assert.deepEqual(others, []);
      assert.ok(error.startsWith(`${unknown} is unknown`), error);
    }),
  );
});
