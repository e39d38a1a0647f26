import type { JsonObject } from "../../runtime/json.ts";

/** Amounts by resource name, as Kubernetes quantities. */
export type ResourceList = Readonly<Record<string, string>>;

/** What a container gets that does not say (`defaults`), and what none gets more of (`limits`); 0 and absent are unset. */
export type PlatformResources = { readonly defaults: ResourceList; readonly limits: ResourceList };

/** Where the logs of a container are found, as a link with `{{ .podName }}` and the like in it. */
export type LogTemplate = { readonly name: string; readonly uri: string };

/** The containers that bring a pod's inputs and take its outputs away. */
export type CoPilotConfig = {
  readonly image: string;
  /** Copies `{{ .From }}` to `{{ .To }}`; run for inputs by the downloader, for outputs by the uploader. */
  readonly command: readonly string[];
  /** What both containers find in their environment: where the storage is, and how it is reached. */
  readonly env: readonly JsonObject[];
  readonly envFrom: readonly JsonObject[];
  readonly inputPath: string;
  readonly outputPath: string;
  readonly cpu: string;
  readonly memory: string;
  /** How long the uploader may take once the pod's program has ended. */
  readonly timeoutSeconds: number;
};

/** A Kubernetes PodTemplate of the platform: what pods are built on. */
export type PlatformTemplate = {
  readonly namespace: string;
  readonly name: string;
  readonly template: JsonObject;
};

/** What differs for the pods of one namespace. */
export type NamespaceConfig = {
  readonly resources?: PlatformResources;
  readonly serviceAccount?: string;
};

/**
 * What a platform gives to the pods of its users, in the words of Flyte's `K8sPluginConfig`. Absent members give nothing. Requirements are
 * those of node affinity, tolerations and contexts are Kubernetes' own JSON.
 */
export type PodConfig = {
  /** The resource that GPUs are asked for by. */
  readonly gpuResourceName: string;
  readonly gpuDeviceNodeLabel: string;
  readonly gpuPartitionSizeNodeLabel: string;
  /** Instead of the absence of the partition's label. */
  readonly gpuUnpartitionedNodeSelectorRequirement?: JsonObject;
  readonly gpuUnpartitionedToleration?: JsonObject;
  /** What requests and limits of containers are held to; absent: they stay as they are. */
  readonly resources?: PlatformResources;
  readonly defaultCPURequest: string;
  readonly defaultMemoryRequest: string;
  readonly defaultTolerations: readonly JsonObject[];
  /** By resource: who asks for it tolerates these. */
  readonly resourceTolerations: Readonly<Record<string, readonly JsonObject[]>>;
  readonly interruptibleTolerations: readonly JsonObject[];
  readonly defaultNodeSelector: Readonly<Record<string, string>>;
  readonly interruptibleNodeSelector: Readonly<Record<string, string>>;
  readonly interruptibleNodeSelectorRequirement?: JsonObject;
  readonly nonInterruptibleNodeSelectorRequirement?: JsonObject;
  readonly defaultAffinity?: JsonObject;
  readonly defaultPodSecurityContext?: JsonObject;
  /** Of the primary container. */
  readonly defaultSecurityContext?: JsonObject;
  readonly defaultPodDNSConfig?: JsonObject;
  readonly enableHostNetworkingPod?: boolean;
  readonly schedulerName: string;
  readonly serviceAccount: string;
  readonly defaultEnvVars: Readonly<Record<string, string>>;
  readonly defaultEnvFromSecrets: readonly string[];
  readonly defaultEnvFromConfigMaps: readonly string[];
  /** The template that pods are built on which name none; where there is none of that name, pods are built on nothing. */
  readonly defaultPodTemplateName: string;
  /** Where templates are looked up that a pod's own namespace has not. */
  readonly podTemplateNamespace: string;
  readonly podTemplates: readonly PlatformTemplate[];
  readonly logs: readonly LogTemplate[];
  readonly coPilot?: CoPilotConfig;
  readonly namespaces: Readonly<Record<string, NamespaceConfig>>;
};

/** A platform that gives nothing; the names are Flyte's defaults. */
export const PLAIN_POD_CONFIG: PodConfig = {
  gpuResourceName: "nvidia.com/gpu",
  gpuDeviceNodeLabel: "k8s.amazonaws.com/accelerator",
  gpuPartitionSizeNodeLabel: "k8s.amazonaws.com/gpu-partition-size",
  defaultCPURequest: "1000m",
  defaultMemoryRequest: "1024Mi",
  defaultTolerations: [],
  resourceTolerations: {},
  interruptibleTolerations: [],
  defaultNodeSelector: {},
  interruptibleNodeSelector: {},
  schedulerName: "",
  serviceAccount: "",
  defaultEnvVars: {},
  defaultEnvFromSecrets: [],
  defaultEnvFromConfigMaps: [],
  defaultPodTemplateName: "",
  podTemplateNamespace: "",
  podTemplates: [],
  logs: [],
  namespaces: {},
};
