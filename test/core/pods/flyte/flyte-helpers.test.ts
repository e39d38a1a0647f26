/**
 * Walks the exported names of Flyte's package of helpers for pods, in their order: what stands for each here, what was
 * done, and what was seen. A name without a counterpart has its reason in docs/migrating.md.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { preferOfNodes, requireOfNodes } from "../../../../src/core/pods/build-affinity.ts";
import { storageOf } from "../../../../src/core/pods/co-pilot.ts";
import { storageFlags } from "../../../../src/core/pods/flyte/flyte-co-pilot.ts";
import { selectGpus } from "../../../../src/core/pods/gpu-selectors.ts";
import { mergePodSpecs } from "../../../../src/core/pods/merge-pod-specs.ts";
import {
  adjustOrDefault,
  customizeResources,
  mergeResources,
  toResourceList,
} from "../../../../src/core/pods/platform-resources.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../../../src/core/pods/pod-config.ts";
import { podFailure } from "../../../../src/core/pods/read/failure.ts";
import { podView } from "../../../../src/core/pods/read/pod-view.ts";
import { PENDING_LIMITS, readPending } from "../../../../src/core/pods/read/read-pending.ts";
import { readPrimary, readSuccess } from "../../../../src/core/pods/read/read-pod.ts";
import { readPodConfig } from "../../../../src/core/pods/read-pod-config.ts";
import { loadOrDefault, shapeTemplate } from "../../../../src/core/pods/shape-template.ts";
import { platformTolerations, requireInterruptible, updatePod } from "../../../../src/core/pods/update-pod.ts";
import { environmentOf, podVariables } from "../../../../src/core/pods/variables.ts";
import { arrayAt, type Json, type JsonObject, objectAt, stringAt } from "../../../../src/runtime/json.ts";
import { type FlyteName, isExplained, namesOfPage } from "../../../support/flyte-pages.ts";

const migrating = readFileSync(new URL("../../../../docs/migrating.md", import.meta.url), "utf8");

const FLYTE: JsonObject = {
  "default-cpus": "500m",
  "default-memory": "1Gi",
  "default-env-vars": { REGION: "eu" },
  "default-tolerations": [{ key: "ml", operator: "Exists" }],
  "co-pilot": { image: "copilot", timeout: "60s" },
};

function configOf(file: JsonObject): PodConfig {
  const outcome = readPodConfig(file, () => undefined);
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  return outcome.config;
}

const ANNOTATIONS = {
  "gangway.dev/inputs": "s3://b/in",
  "gangway.dev/outputs": "s3://b/out",
  "gangway.dev/input-interface": "x=integer",
  "gangway.dev/output-interface": "y=float",
};

/** The pod spec of a template on a platform with Flyte's file. */
function shaped(annotations: JsonObject = {}, container: JsonObject = {}): JsonObject {
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "i", ...container }] } };
  const of = { namespace: "team", interruptible: false, primaryContainer: "main", config: configOf(FLYTE) };
  const outcome = shapeTemplate(template, of);
  assert.ok(outcome.kind === "shaped", JSON.stringify(outcome));
  return objectAt(outcome.template, "spec");
}

const mainOf = (spec: JsonObject) => objectAt({ main: arrayAt(spec, "containers")[0] }, "main");
const initOf = (spec: JsonObject, name: string) => {
  const found = arrayAt(spec, "initContainers").find((one) => stringAt(one, "name") === name);
  return objectAt({ found }, "found");
};
const demand = { key: "zone", operator: "In", values: ["a"] };
const nodeAffinity = (affinity: JsonObject) => Object.keys(objectAt(affinity, "nodeAffinity"));
const gpuSpec = { containers: [{ name: "main", resources: { limits: { "nvidia.com/gpu": 1 } } }] };
const spot: PodConfig = { ...PLAIN_POD_CONFIG, interruptibleNodeSelectorRequirement: demand };
const explained = (name: string) => () => isExplained(migrating, name);
const view = (status: JsonObject) => podView({ metadata: { name: "pod" }, status });
const ended = (exitCode: number) => ({
  containerStatuses: [
    { name: "main", state: { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error" } } },
  ],
});
const variables = podVariables({
  job: { uid: "u", name: "j", namespace: "team", project: "p" },
  admission: 1,
  attempt: 1,
  role: "Worker",
  index: 0,
  podName: "j-worker-0",
});

const NAMES: readonly FlyteName[] = [
  [
    "AddCoPilotToContainer",
    "mounts of the primary container",
    () => arrayAt(mainOf(shaped(ANNOTATIONS)), "volumeMounts").map((one) => stringAt(one, "name")),
    ["gangway-outputs", "gangway-inputs"],
  ],
  [
    "AddCoPilotToPod",
    "`withCoPilot`",
    () => arrayAt(shaped(ANNOTATIONS), "initContainers").map((one) => stringAt(one, "name")),
    ["gangway-uploader", "gangway-downloader"],
  ],
  [
    "AddFlyteCustomizationsToContainer",
    "resources and environment of `shapeTemplate`",
    () => {
      const { resources, env } = mainOf(shaped());
      return [resources, env];
    },
    [
      { requests: { cpu: "500m", memory: "1Gi" }, limits: { cpu: "500m", memory: "1Gi" } },
      [{ name: "REGION", value: "eu" }],
    ],
  ],
  [
    "AddPreferredNodeSelectorRequirements",
    "`preferredNodes` of the file",
    () => nodeAffinity(preferOfNodes({}, 5, [demand])),
    ["preferredDuringSchedulingIgnoredDuringExecution"],
  ],
  [
    "AddRequiredNodeSelectorRequirements",
    "`requireOfNodes`",
    () => nodeAffinity(requireOfNodes({}, [demand])),
    ["requiredDuringSchedulingIgnoredDuringExecution"],
  ],
  [
    "ApplyGPUNodeSelectors",
    "the annotations `gangway.dev/gpu-…`",
    () => {
      const accelerator = { device: "a100", partitionSize: "", unpartitioned: false };
      return arrayAt(selectGpus(gpuSpec, accelerator, PLAIN_POD_CONFIG), "tolerations").map((one) =>
        stringAt(one, "value"),
      );
    },
    ["a100"],
  ],
  [
    "ApplyInterruptibleNodeAffinity",
    "`requireInterruptible`",
    () => nodeAffinity(objectAt(requireInterruptible(true, {}, spot), "affinity")),
    ["requiredDuringSchedulingIgnoredDuringExecution"],
  ],
  [
    "ApplyInterruptibleNodeSelectorRequirement",
    "the same, for pods that are not interruptible",
    () => requireInterruptible(false, {}, spot),
    {},
  ],
  [
    "ApplyFlytePodConfiguration",
    "`shapeTemplate`",
    () => arrayAt(shaped(), "tolerations"),
    [{ key: "ml", operator: "Exists" }],
  ],
  [
    "ApplyResourceOverrides",
    "`customizeResources`",
    () =>
      customizeResources(
        { requests: { cpu: "8", storage: "1Gi" } },
        { defaults: {}, limits: { cpu: "4" } },
        { mode: "assign", config: PLAIN_POD_CONFIG },
      ),
    { requests: { cpu: "4", memory: "1024Mi" }, limits: { cpu: "4", memory: "1024Mi" } },
  ],
  ["BuildIdentityPod", "docs/migrating.md", explained("BuildIdentityPod"), true],
  ["BuildRawContainer", "the container of the template", () => stringAt(mainOf(shaped()), "image"), "i"],
  ["BuildRawPod", "the template of a replica type", () => Object.keys(mainOf(shaped())).includes("name"), true],
  [
    "CalculateStorageSize",
    "`storageOf`",
    () => [
      storageOf({ resources: { limits: { storage: "2Gi" }, requests: { storage: "1Gi" } } }),
      storageOf({ resources: { requests: { storage: "1Gi" } } }),
      storageOf({}),
    ],
    ["2Gi", "1Gi", ""],
  ],
  [
    "CopilotCommandArgs",
    "`storageFlags`, without secrets",
    () => storageFlags({ type: "s3", connection: { region: "eu", "secret-key": "hidden" } }).flags,
    ["--storage.type=s3", "--storage.connection.region=eu"],
  ],
  [
    "DataVolume",
    "the volumes of the co-pilot",
    () => arrayAt(shaped(ANNOTATIONS, { resources: { limits: { storage: "2Gi" } } }), "volumes")[0] as Json,
    { name: "gangway-outputs", emptyDir: { sizeLimit: "2Gi" } },
  ],
  [
    "DecorateEnvVars",
    "`defaultEnvVars`; those of a container come first",
    () => mainOf(shaped({}, { env: [{ name: "REGION", value: "us" }] }))["env"],
    [{ name: "REGION", value: "us" }],
  ],
  [
    "DemystifyFailure",
    "`podFailure`",
    () => podFailure(view({ phase: "Failed", reason: "Evicted", message: "m" }), null).kind,
    "SYSTEM",
  ],
  [
    "DemystifyPending",
    "`readPending`",
    () => readPending(view({ phase: "Pending" }), { nowMs: 0, limits: PENDING_LIMITS }).kind,
    "queued",
  ],
  ["DemystifySuccess", "`readSuccess`", () => readSuccess(view(ended(0))).kind, "succeeded"],
  [
    "DeterminePrimaryContainerPhase",
    "`readPrimary`",
    () => [readPrimary(view(ended(0)), "main").kind, readPrimary(view(ended(1)), "main").kind],
    ["succeeded", "failed"],
  ],
  [
    "DownloadCommandArgs",
    "the command of the downloader",
    () => arrayAt(initOf(shaped(ANNOTATIONS), "gangway-downloader"), "command").slice(2, 5),
    ["download", "--from-remote", "s3://b/in"],
  ],
  ["GetContainer", "docs/migrating.md", explained("GetContainer"), true],
  ["GetContextEnvVars", "docs/migrating.md", explained("GetContextEnvVars"), true],
  [
    "GetExecutionEnvVars",
    "`GANGWAY_JOB_NAME` and others",
    () => environmentOf(variables)[0],
    { name: "GANGWAY_JOB_NAME", value: "j" },
  ],
  ["GetLastTransitionOccurredAt", "docs/migrating.md", explained("GetLastTransitionOccurredAt"), true],
  [
    "GetMessageAfterGracePeriod",
    "the message of a pod that was pending for too long",
    () => {
      const waiting = { state: { waiting: { reason: "ImagePullBackOff", message: "no such image" } } };
      const conditions = [
        {
          type: "Ready",
          status: "False",
          reason: "ContainersNotReady",
          lastTransitionTime: "1970-01-01T00:00:00Z",
        },
      ];
      const status = { phase: "Pending", conditions, containerStatuses: [{ name: "main", ready: false, ...waiting }] };
      const at = (nowMs: number) => readPending(view(status), { nowMs, limits: PENDING_LIMITS }).kind;
      return [at(1_000), at(PENDING_LIMITS.imagePullBackoffGraceMs)];
    },
    ["initializing", "failed"],
  ],
  ["GetPodTemplateUpdatesHandler", "docs/migrating.md", explained("GetPodTemplateUpdatesHandler"), true],
  [
    "GetPodTolerations",
    "`platformTolerations`",
    () => platformTolerations(true, [], { ...PLAIN_POD_CONFIG, interruptibleTolerations: [{ key: "spot" }] }),
    [{ key: "spot" }],
  ],
  ["GetReportedAt", "docs/migrating.md", explained("GetReportedAt"), true],
  [
    "GetServiceAccountNameFromTaskExecutionMetadata",
    "`serviceAccount` of the file and of a namespace",
    () => {
      const of = { interruptible: false, serviceAccount: "trainer", resources: [], config: PLAIN_POD_CONFIG };
      return updatePod({ containers: [] }, of)["serviceAccountName"];
    },
    "trainer",
  ],
  [
    "FlyteCoPilotContainer",
    "both containers of the co-pilot",
    () => {
      const { image, workingDir, resources } = initOf(shaped(ANNOTATIONS), "gangway-downloader");
      return [image, workingDir, objectAt(objectAt({ resources }, "resources"), "limits")];
    },
    ["copilot", "/", { cpu: "500m", memory: "128Mi" }],
  ],
  [
    "MergeResources",
    "`mergeResources`",
    () => mergeResources({ limits: { cpu: "1", memory: "1Gi" } }, { limits: { cpu: "2" } }),
    { limits: { cpu: "2", memory: "1Gi" } },
  ],
  [
    "MergeWithBasePodTemplate",
    "`mergePodSpecs`",
    () => {
      const base = { containers: [{ name: "default", workingDir: "/w" }] };
      const merged = mergePodSpecs(base, { containers: [{ name: "main" }] }, { container: "main", initContainer: "" });
      return merged["containers"];
    },
    [{ name: "main", workingDir: "/w" }],
  ],
  ["NewPluginTaskExecutionContext", "docs/migrating.md", explained("NewPluginTaskExecutionContext"), true],
  [
    "SidecarCommandArgs",
    "the command of the uploader",
    () => arrayAt(initOf(shaped(ANNOTATIONS), "gangway-uploader"), "command").slice(2, 5),
    ["sidecar", "--timeout", "60s"],
  ],
  ["ToK8sContainer", "the container of a pod", () => stringAt(mainOf(shaped()), "name"), "main"],
  ["ToK8sEnvVar", "docs/migrating.md", explained("ToK8sEnvVar"), true],
  ["ToK8sPodSpec", "`shapeTemplate`", () => Object.keys(shaped()).includes("tolerations"), true],
  [
    "ToK8sResourceList",
    "`toResourceList`",
    () =>
      toResourceList(
        [
          { name: "GPU", value: "2" },
          { name: "STORAGE", value: "1" },
        ],
        "nvidia.com/gpu",
      ),
    { kind: "list", list: { "nvidia.com/gpu": "2" } },
  ],
  [
    "ToK8sResourceRequirements",
    "the same, refused by name",
    () => toResourceList([{ name: "CPU", value: "x" }], "nvidia.com/gpu").kind,
    "refused",
  ],
  [
    "UpdatePod",
    "`updatePod`",
    () => {
      const config = { ...PLAIN_POD_CONFIG, schedulerName: "gang" };
      return updatePod({ containers: [] }, { interruptible: false, serviceAccount: "", resources: [], config });
    },
    { containers: [], restartPolicy: "Never", schedulerName: "gang" },
  ],
  [
    "PluginTaskExecutionContextOption",
    "docs/migrating.md",
    explained("NewPluginTaskExecutionContext`, `PluginTaskExecutionContextOption"),
    true,
  ],
  [
    "PodTemplateStore",
    "`podTemplates` of the file, found by `loadOrDefault`",
    () => {
      const store = { podTemplateNamespace: "all", podTemplates: [{ namespace: "all", name: "t", template: {} }] };
      return loadOrDefault(store, { namespace: "team", name: "t" })?.namespace;
    },
    "all",
  ],
  [
    "ResourceCustomizationMode",
    "`assign` and `hold`",
    () =>
      (["assign", "hold"] as const).map((mode) => {
        const of = { mode, config: PLAIN_POD_CONFIG };
        return objectAt(customizeResources({}, { defaults: { cpu: "2" }, limits: {} }, of), "requests")["cpu"];
      }),
    ["2", undefined],
  ],
  [
    "ResourceRequirement",
    "the answer of `adjustOrDefault`, which stands for `AdjustOrDefaultResource`",
    () => adjustOrDefault({ request: "4", limit: "2" }, { request: "1", limit: "8" }),
    { request: "2", limit: "2" },
  ],
];

for (const [name, here, done, seen] of NAMES) {
  test(`${name} is here: ${here}`, () => assert.deepEqual(done(), seen));
}

const page = namesOfPage("flytek8s");
test("the walk has every name of the page, in its order", { skip: page === null }, () => {
  assert.deepEqual(
    NAMES.map(([name]) => name),
    page,
  );
});
