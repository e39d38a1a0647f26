import type { JsonObject } from "../../runtime/json.ts";

/** Amounts by resource name, as Kubernetes quantities. */
export type ResourceList = Readonly<Record<string, string>>;

/** `defaults`: for containers without a value. `limits`: upper limits. 0 or omitted: not set. */
export type PlatformResources = { readonly defaults: ResourceList; readonly limits: ResourceList };

/** A link to the log of a container, with placeholders such as `{{ .podName }}`. */
export type LogTemplate = { readonly name: string; readonly uri: string };

/** The containers that download a pod's inputs and upload its outputs. */
export type CoPilotConfig = {
  readonly image: string;
  /** The command that copies `{{ .From }}` to `{{ .To }}`. The downloader and the uploader run it. */
  readonly command: readonly string[];
  /** The command of an uploader that waits itself for the program's end, SIGTERM. Omitted: `command`, at the end. */
  readonly uploadCommand?: readonly string[];
  /** Environment of both containers, such as the address of the storage. */
  readonly env: readonly JsonObject[];
  readonly envFrom: readonly JsonObject[];
  readonly inputPath: string;
  readonly outputPath: string;
  readonly cpu: string;
  readonly memory: string;
  /** The size limit of the volumes of inputs and outputs, for templates that name none. Omitted: no limit. */
  readonly storage?: string;
  /** The time limit of the upload after the program of the pod has ended. */
  readonly timeoutSeconds: number;
};

/** A Kubernetes PodTemplate of the platform, on which pods are built. */
export type PlatformTemplate = {
  readonly namespace: string;
  readonly name: string;
  readonly template: JsonObject;
};

/** Wishes of where pods run: nodes that meet the requirements are preferred by the weight, from 1 to 100. */
export type NodePreference = { readonly weight: number; readonly matchExpressions: readonly JsonObject[] };

/**
 * How long pods may be pending, as Flyte's file says it, in milliseconds. Variables of the environment come before
 * these.
 */
export type PendingConfig = {
  readonly createContainerErrorGraceMs?: number;
  readonly createContainerConfigErrorGraceMs?: number;
  readonly imagePullBackoffGraceMs?: number;
  readonly podPendingTimeoutMs?: number;
};

/** Settings for the pods of one namespace. */
export type NamespaceConfig = {
  readonly resources?: PlatformResources;
  readonly serviceAccount?: string;
};

/**
 * The settings of a platform for the pods of its users, named as in Flyte's `K8sPluginConfig`. Requirements are those
 * of node affinity. Tolerations and contexts are JSON of Kubernetes.
 */
export type PodConfig = {
  /** The name of the GPU resource. */
  readonly gpuResourceName: string;
  readonly gpuDeviceNodeLabel: string;
  readonly gpuPartitionSizeNodeLabel: string;
  /** Replaces the default requirement that the partition's label is absent. */
  readonly gpuUnpartitionedNodeSelectorRequirement?: JsonObject;
  readonly gpuUnpartitionedToleration?: JsonObject;
  /** The defaults and limits of resources. Omitted: requests and limits stay unchanged. */
  readonly resources?: PlatformResources;
  readonly defaultCPURequest: string;
  readonly defaultMemoryRequest: string;
  readonly defaultTolerations: readonly JsonObject[];
  /** By resource: the tolerations of pods that request it. */
  readonly resourceTolerations: Readonly<Record<string, readonly JsonObject[]>>;
  readonly interruptibleTolerations: readonly JsonObject[];
  readonly defaultNodeSelector: Readonly<Record<string, string>>;
  readonly interruptibleNodeSelector: Readonly<Record<string, string>>;
  readonly interruptibleNodeSelectorRequirement?: JsonObject;
  readonly nonInterruptibleNodeSelectorRequirement?: JsonObject;
  readonly preferredNodes: readonly NodePreference[];
  readonly defaultAffinity?: JsonObject;
  readonly defaultPodSecurityContext?: JsonObject;
  /** For the primary container. */
  readonly defaultSecurityContext?: JsonObject;
  readonly defaultPodDNSConfig?: JsonObject;
  readonly enableHostNetworkingPod?: boolean;
  readonly schedulerName: string;
  readonly serviceAccount: string;
  /** Labels and annotations of pods. Those of a template, and of the pod template that it is built on, come first. */
  readonly defaultLabels: Readonly<Record<string, string>>;
  readonly defaultAnnotations: Readonly<Record<string, string>>;
  /** For containers that name none. */
  readonly imagePullPolicy?: string;
  readonly defaultEnvVars: Readonly<Record<string, string>>;
  readonly defaultEnvFromSecrets: readonly string[];
  readonly defaultEnvFromConfigMaps: readonly string[];
  /** The template for pods that name none. If it does not exist, pods are built on nothing. */
  readonly defaultPodTemplateName: string;
  /** The namespace to look up templates that the pod's namespace does not have. */
  readonly podTemplateNamespace: string;
  readonly podTemplates: readonly PlatformTemplate[];
  readonly logs: readonly LogTemplate[];
  readonly coPilot?: CoPilotConfig;
  readonly namespaces: Readonly<Record<string, NamespaceConfig>>;
  readonly pending: PendingConfig;
  /** What the file says and has no effect here, one line each. */
  readonly notes: readonly string[];
};

/** A platform without settings. The names are Flyte's defaults. */
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
  preferredNodes: [],
  schedulerName: "",
  serviceAccount: "",
  defaultLabels: {},
  defaultAnnotations: {},
  defaultEnvVars: {},
  defaultEnvFromSecrets: [],
  defaultEnvFromConfigMaps: [],
  defaultPodTemplateName: "",
  podTemplateNamespace: "",
  podTemplates: [],
  logs: [],
  namespaces: {},
  pending: {},
  notes: [],
};
