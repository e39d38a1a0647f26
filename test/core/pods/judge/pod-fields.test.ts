/** Every field of a template is either judged, or known to be harmless for a reason. A new field needs a decision. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, typeNames } from "../../../../src/core/pods/judge/pod-types.ts";

/** By type: the fields that a control, a limit or a check of templates judges, or whose members they judge. */
const JUDGED: Readonly<Record<string, string>> = {
  PodTemplateSpec: "metadata spec",
  ObjectMeta: "annotations labels",
  PodSpec: `volumes initContainers containers ephemeralContainers terminationGracePeriodSeconds nodeSelector
    serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext affinity tolerations
    priorityClassName priority schedulingGates schedulingGroup resourceClaims`,
  Container: "image ports volumeMounts livenessProbe readinessProbe startupProbe lifecycle securityContext resources",
  EphemeralContainer:
    "image ports volumeMounts livenessProbe readinessProbe startupProbe lifecycle securityContext resources",
  ContainerPort: "hostPort",
  VolumeMount: "name readOnly",
  Probe: "httpGet tcpSocket terminationGracePeriodSeconds",
  Lifecycle: "postStart preStop",
  LifecycleHandler: "httpGet tcpSocket",
  HTTPGetAction: "host",
  TCPSocketAction: "host",
  SecurityContext: `capabilities privileged seLinuxOptions windowsOptions runAsUser runAsNonRoot
    allowPrivilegeEscalation procMount seccompProfile appArmorProfile`,
  PodSecurityContext: "seLinuxOptions windowsOptions runAsUser runAsNonRoot sysctls seccompProfile appArmorProfile",
  Capabilities: "add drop",
  SELinuxOptions: "user role type",
  WindowsSecurityContextOptions: "hostProcess",
  SeccompProfile: "type",
  AppArmorProfile: "type",
  // Also the names of sysctls.
  HTTPHeader: "name",
  Sysctl: "name",
  PodDNSConfigOption: "name",
  Volume: `hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs
    flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi
    image name`,
  HostPathVolumeSource: "path type",
  ImageVolumeSource: "reference",
  Affinity: "nodeAffinity podAffinity podAntiAffinity",
  NodeAffinity: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
  NodeSelector: "nodeSelectorTerms",
  PreferredSchedulingTerm: "preference",
  NodeSelectorTerm: "matchExpressions matchFields",
  NodeSelectorRequirement: "key operator values",
  LabelSelectorRequirement: "key operator values",
  PodAffinity: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
  PodAntiAffinity: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
  WeightedPodAffinityTerm: "podAffinityTerm",
  PodAffinityTerm: "namespaces namespaceSelector",
  Toleration: "key operator value effect",
  ResourceRequirements: "limits requests claims",
};

/** By reason: the fields that do no harm beyond their own pod, or beyond what the namespace has. */
const HARMLESS: readonly { readonly because: string; readonly fields: Readonly<Record<string, string>> }[] = [
  {
    because: "it concerns the pod's own processes, or how they are told that they end",
    fields: {
      PodSpec: "activeDeadlineSeconds shareProcessNamespace setHostnameAsFQDN readinessGates os",
      Container: `name command args workingDir env resizePolicy restartPolicy restartPolicyRules terminationMessagePath
        terminationMessagePolicy imagePullPolicy stdin stdinOnce tty`,
      EphemeralContainer: `name command args workingDir env resizePolicy restartPolicy restartPolicyRules
        terminationMessagePath
        terminationMessagePolicy imagePullPolicy stdin stdinOnce tty targetContainerName`,
      ContainerPort: "name containerPort protocol hostIP",
      EnvVar: "name value valueFrom",
      EnvVarSource: "fieldRef resourceFieldRef fileKeyRef",
      ObjectFieldSelector: "apiVersion fieldPath",
      ResourceFieldSelector: "containerName resource divisor",
      FileKeySelector: "volumeName path key optional",
      ContainerResizePolicy: "resourceName restartPolicy",
      ContainerRestartRule: "action exitCodes",
      ContainerRestartRuleOnExitCodes: "operator values",
      ResourceClaim: "name request",
      Probe: "exec grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold",
      Lifecycle: "stopSignal",
      LifecycleHandler: "exec sleep",
      ExecAction: "command",
      HTTPGetAction: "path port scheme httpHeaders",
      TCPSocketAction: "port",
      GRPCAction: "port service",
      SleepAction: "seconds",
      HTTPHeader: "value",
      Sysctl: "value",
      PodDNSConfigOption: "value",
      PodReadinessGate: "conditionType",
    },
  },
  {
    because: "it takes rights away, or names an identity that has none",
    fields: {
      PodSpec: "hostUsers automountServiceAccountToken",
      SecurityContext: "runAsGroup readOnlyRootFilesystem",
      PodSecurityContext: `runAsGroup supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy
        seLinuxChangePolicy`,
      SELinuxOptions: "level",
      WindowsSecurityContextOptions: "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName",
      SeccompProfile: "localhostProfile",
      AppArmorProfile: "localhostProfile",
    },
  },
  {
    because: "it refers to an object of the namespace, or to one that an admin has made",
    fields: {
      PodSpec: "imagePullSecrets runtimeClassName schedulerName",
      LocalObjectReference: "name",
      PodOS: "name",
      PodSchedulingGate: "name",
      Container: "envFrom volumeDevices",
      EphemeralContainer: "envFrom volumeDevices",
      EnvVarSource: "configMapKeyRef secretKeyRef",
      ConfigMapKeySelector: "name key optional",
      SecretKeySelector: "name key optional",
      EnvFromSource: "prefix configMapRef secretRef",
      ConfigMapEnvSource: "name optional",
      SecretEnvSource: "name optional",
      PodResourceClaim: "name resourceClaimName resourceClaimTemplateName",
      VolumeDevice: "name devicePath",
      VolumeMount: "recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
      Volume: "emptyDir secret persistentVolumeClaim downwardAPI configMap projected ephemeral",
      EmptyDirVolumeSource: "medium sizeLimit",
      SecretVolumeSource: "secretName items defaultMode optional",
      ConfigMapVolumeSource: "name items defaultMode optional",
      KeyToPath: "key path mode",
      DownwardAPIVolumeSource: "items defaultMode",
      DownwardAPIVolumeFile: "path fieldRef resourceFieldRef mode",
      ProjectedVolumeSource: "sources defaultMode",
      VolumeProjection: "secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate",
      SecretProjection: "name items optional",
      ConfigMapProjection: "name items optional",
      ServiceAccountTokenProjection: "audience expirationSeconds path",
      ClusterTrustBundleProjection: "name signerName labelSelector optional path",
      PodCertificateProjection: `signerName keyType maxExpirationSeconds credentialBundlePath keyPath
        certificateChainPath
        userAnnotations`,
      // The volumes of these types need an allowance.
      NFSVolumeSource: "server path readOnly",
      CSIVolumeSource: "driver readOnly fsType volumeAttributes nodePublishSecretRef",
      PersistentVolumeClaimVolumeSource: "claimName readOnly",
      EphemeralVolumeSource: "volumeClaimTemplate",
      PersistentVolumeClaimTemplate: "metadata spec",
      PersistentVolumeClaimSpec: `accessModes selector resources volumeName storageClassName volumeMode dataSource
        dataSourceRef
        volumeAttributesClassName`,
      ImageVolumeSource: "pullPolicy",
    },
  },
  {
    because: "it changes how the pod sees the network, or where the scheduler may put it",
    fields: {
      PodSpec: `dnsPolicy dnsConfig hostname subdomain hostnameOverride hostAliases enableServiceLinks
        topologySpreadConstraints`,
      PodDNSConfig: "nameservers searches options",
      HostAlias: "ip hostnames",
      PreferredSchedulingTerm: "weight",
      WeightedPodAffinityTerm: "weight",
      PodAffinityTerm: "labelSelector topologyKey matchLabelKeys mismatchLabelKeys",
      LabelSelector: "matchLabels matchExpressions",
      Toleration: "tolerationSeconds",
      TopologySpreadConstraint: `maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy
        nodeTaintsPolicy
        matchLabelKeys`,
    },
  },
  {
    because: "Gangway or Kubernetes overwrites it, checks it, or counts it",
    fields: { PodSpec: "restartPolicy preemptionPolicy overhead resources" },
  },
];

/** Types that are decided as a whole: volumes that need an allowance, and parts of members that are decided. */
const WHOLE = `AWSElasticBlockStoreVolumeSource AzureDiskVolumeSource AzureFileVolumeSource CephFSVolumeSource
  CinderVolumeSource FCVolumeSource FlexVolumeSource FlockerVolumeSource GCEPersistentDiskVolumeSource
  GitRepoVolumeSource
  GlusterfsVolumeSource ISCSIVolumeSource PhotonPersistentDiskVolumeSource PortworxVolumeSource QuobyteVolumeSource
  RBDVolumeSource ScaleIOVolumeSource StorageOSVolumeSource VsphereVirtualDiskVolumeSource DownwardAPIProjection
  PodSchedulingGroup TypedLocalObjectReference TypedObjectReference VolumeResourceRequirements`.split(/\s+/);

/** The fields of every type that a template can hold, as `Type.field`. */
const fieldsOf = (types: readonly string[]) =>
  types.flatMap((type) => [...membersOf(type).keys()].map((name) => `${type}.${name}`));

const listed = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields).flatMap(([type, names]) => names.split(/\s+/).map((name) => `${type}.${name}`));

test("every field of a template is judged, or harmless for a reason, and not both", () => {
  const decided = [...listed(JUDGED), ...HARMLESS.flatMap(({ fields }) => listed(fields)), ...fieldsOf(WHOLE)];
  assert.deepEqual(decided.toSorted(), fieldsOf(typeNames()).toSorted());
});
