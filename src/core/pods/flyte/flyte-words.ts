/**
 * The words of Flyte's plugin configuration for Kubernetes (`plugins.k8s`), in their order there, each with what it is
 * here. Source: Flyte's `K8sPluginConfig` and `FlyteCoPilotConfig`.
 */
import type { Json } from "../../../runtime/json.ts";

/**
 * `member`: the same as this member of ours. `isMap`: a map, which Flyte also takes as a list of maps. `toTexts`: its
 * values may be numbers and flags, which become texts.
 */
type Same = { readonly member: string; readonly isMap?: true; readonly toTexts?: true };

/** `instead`: why it has no effect here, and what has. `unless`: the values that ask for nothing. */
type NoEffect = { readonly instead: string; readonly unless: readonly Json[] };

/** Words that are not simply a member of ours: `read-flyte-config.ts` reads each of them. */
type Special = { readonly special: "tolerations" | "coPilot" | "storage" };

export type FlyteWord = Same | NoEffect | Special;
type Words = Readonly<Record<string, FlyteWord>>;

const map = (member: string): Same => ({ member, isMap: true });
const texts = (member: string): Same => ({ member, isMap: true, toTexts: true });

export const FLYTE_WORDS: Words = {
  "inject-finalizer": { instead: "pods are followed without finalizers", unless: [false] },
  "default-annotations": texts("defaultAnnotations"),
  "default-labels": texts("defaultLabels"),
  "default-env-vars": texts("defaultEnvVars"),
  "default-env-vars-from-env": texts("defaultEnvVarsFromEnv"),
  "default-env-from-configmaps": { member: "defaultEnvFromConfigMaps" },
  "default-env-from-secrets": { member: "defaultEnvFromSecrets" },
  "default-cpus": { member: "defaultCPURequest" },
  "default-memory": { member: "defaultMemoryRequest" },
  "default-tolerations": { member: "defaultTolerations" },
  "default-node-selector": texts("defaultNodeSelector"),
  "default-affinity": { member: "defaultAffinity" },
  "scheduler-name": { member: "schedulerName" },
  "interruptible-tolerations": { member: "interruptibleTolerations" },
  "interruptible-node-selector": texts("interruptibleNodeSelector"),
  "interruptible-node-selector-requirement": { member: "interruptibleNodeSelectorRequirement" },
  "non-interruptible-node-selector-requirement": { member: "nonInterruptibleNodeSelectorRequirement" },
  "resource-tolerations": map("resourceTolerations"),
  "co-pilot": { special: "coPilot" },
  "delete-resource-on-finalize": { instead: "runPolicy.cleanPodPolicy of a job says which pods stay", unless: [false] },
  "create-container-error-grace-period": { member: "createContainerErrorGracePeriod" },
  "create-container-config-error-grace-period": { member: "createContainerConfigErrorGracePeriod" },
  "image-pull-backoff-grace-period": { member: "imagePullBackoffGracePeriod" },
  "image-pull-policy": { member: "imagePullPolicy" },
  "pod-pending-timeout": { member: "podPendingTimeout" },
  "gpu-device-node-label": { member: "gpuDeviceNodeLabel" },
  "gpu-partition-size-node-label": { member: "gpuPartitionSizeNodeLabel" },
  "gpu-unpartitioned-node-selector-requirement": { member: "gpuUnpartitionedNodeSelectorRequirement" },
  "gpu-unpartitioned-toleration": { member: "gpuUnpartitionedToleration" },
  "gpu-resource-name": { member: "gpuResourceName" },
  "accelerator-device-classes": {
    instead: "name the resource in the template, its nodes by gangway.dev/gpu-device, and its base by podTemplates",
    unless: [{}],
  },
  "default-pod-security-context": { member: "defaultPodSecurityContext" },
  "default-security-context": { member: "defaultSecurityContext" },
  "enable-host-networking-pod": { member: "enableHostNetworkingPod" },
  "default-pod-dns-config": { member: "defaultPodDNSConfig" },
  "default-pod-template-name": { member: "defaultPodTemplateName" },
  "default-pod-template-resync": { instead: "the file itself is looked at every two seconds", unless: ["30s", "0s"] },
  "send-object-events": { instead: "events of a job always say why its pods do not run", unless: [true, false] },
  "update-base-backoff-duration": { instead: "pods are never updated", unless: [10, 0] },
  "update-backoff-retries": { instead: "pods are never updated", unless: [5, 0] },
  "add-tolerations-for-extended-resources": { special: "tolerations" },
  "enable-distributed-error-aggregation": {
    instead: "the first failure of a gang is always shown with its pod and container",
    unless: [false],
  },
  "disable-inject-owner-references": { instead: "the admission's anchor owns all pods of a gang", unless: [false] },
};

export const CO_PILOT_WORDS: Words = {
  name: {
    instead: "the containers are gangway-downloader and gangway-uploader",
    unless: ["flyte-copilot-"],
  },
  image: { member: "image" },
  "default-input-path": { member: "inputPath" },
  "default-output-path": { member: "outputPath" },
  "input-vol-name": { instead: "the volume is gangway-inputs", unless: ["flyte-inputs"] },
  "output-vol-name": { instead: "the volume is gangway-outputs", unless: ["flyte-outputs"] },
  "start-timeout": { instead: "the uploader starts before the program", unless: ["1m40s", "0s"] },
  "finish-timeout": { member: "timeout" },
  timeout: { member: "timeout" },
  cpu: { member: "cpu" },
  memory: { member: "memory" },
  storage: { member: "storage" },
  "storage-config-override": { special: "storage" },
};
