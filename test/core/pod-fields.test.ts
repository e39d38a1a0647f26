/** Every field of a template is either judged, or known to be harmless for a reason. A new field needs a decision. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf } from "../../src/core/pods/template-fields.ts";

/** By type: the fields that a control, a limit or a check of templates judges, or whose members they judge. */
const JUDGED: Readonly<Record<string, string>> = {
  Template: "metadata spec",
  Metadata: "annotations labels",
  PodSpec: `volumes initContainers containers ephemeralContainers terminationGracePeriodSeconds nodeSelector
    serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext affinity tolerations
    priorityClassName priority schedulingGates schedulingGroup resourceClaims`,
  Container: "image ports volumeMounts livenessProbe readinessProbe startupProbe lifecycle securityContext resources",
  Port: "hostPort",
  VolumeMount: "name readOnly",
  Probe: "httpGet tcpSocket terminationGracePeriodSeconds",
  Lifecycle: "postStart preStop",
  Hook: "httpGet tcpSocket",
  HttpGet: "host",
  TcpSocket: "host",
  SecurityContext: `capabilities privileged seLinuxOptions windowsOptions runAsUser runAsNonRoot
    allowPrivilegeEscalation procMount seccompProfile appArmorProfile`,
  PodSecurityContext: "seLinuxOptions windowsOptions runAsUser runAsNonRoot sysctls seccompProfile appArmorProfile",
  Capabilities: "add drop",
  SeLinux: "user role type",
  Windows: "hostProcess",
  Profile: "type",
  // Also the names of sysctls.
  Pair: "name",
  Volume: `hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs
    flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi
    image name`,
  HostPath: "path type",
  Image: "reference",
  Affinity: "nodeAffinity podAffinity podAntiAffinity",
  NodeAffinity: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
  NodeSelector: "nodeSelectorTerms",
  PreferredNode: "preference",
  NodeTerm: "matchExpressions matchFields",
  Requirement: "key operator values",
  PodAffinity: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution",
  PreferredPod: "podAffinityTerm",
  PodTerm: "namespaces namespaceSelector",
  Toleration: "key operator value effect",
  Resources: "limits requests claims",
};

/** By reason: the fields that do no harm beyond their own pod, or beyond what the namespace has. */
const HARMLESS: readonly { readonly because: string; readonly fields: Readonly<Record<string, string>> }[] = [
  {
    because: "it concerns the pod's own processes, or how they are told that they end",
    fields: {
      PodSpec: "activeDeadlineSeconds shareProcessNamespace setHostnameAsFQDN readinessGates os",
      Container: `name command args workingDir env resizePolicy restartPolicy restartPolicyRules terminationMessagePath
        terminationMessagePolicy imagePullPolicy stdin stdinOnce tty targetContainerName`,
      Port: "name containerPort protocol hostIP",
      EnvVar: "name value valueFrom",
      EnvSource: "fieldRef resourceFieldRef fileKeyRef",
      FieldRef: "apiVersion fieldPath",
      ResourceRef: "containerName resource divisor",
      FileKeyRef: "volumeName path key optional",
      Resize: "resourceName restartPolicy",
      RestartRule: "action exitCodes",
      ExitCodes: "operator values",
      ResourceClaim: "name request",
      Probe: "exec grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold",
      Lifecycle: "stopSignal",
      Hook: "exec sleep",
      Exec: "command",
      HttpGet: "path port scheme httpHeaders",
      TcpSocket: "port",
      Grpc: "port service",
      Sleep: "seconds",
      Pair: "value",
      ReadinessGate: "conditionType",
    },
  },
  {
    because: "it takes rights away, or names an identity that has none",
    fields: {
      PodSpec: "hostUsers automountServiceAccountToken",
      SecurityContext: "runAsGroup readOnlyRootFilesystem",
      PodSecurityContext: `runAsGroup supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy
        seLinuxChangePolicy`,
      SeLinux: "level",
      Windows: "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName",
      Profile: "localhostProfile",
    },
  },
  {
    because: "it refers to an object of the namespace, or to one that an admin has made",
    fields: {
      PodSpec: "imagePullSecrets runtimeClassName schedulerName",
      Named: "name",
      Container: "envFrom volumeDevices",
      EnvSource: "configMapKeyRef secretKeyRef",
      KeyRef: "name key optional",
      EnvFrom: "prefix configMapRef secretRef",
      OptionalRef: "name optional",
      PodClaim: "name resourceClaimName resourceClaimTemplateName",
      VolumeDevice: "name devicePath",
      VolumeMount: "recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
      Volume: "emptyDir secret persistentVolumeClaim downwardAPI configMap projected ephemeral",
      EmptyDir: "medium sizeLimit",
      SecretVolume: "secretName items defaultMode optional",
      ConfigMapVolume: "name items defaultMode optional",
      Item: "key path mode",
      DownwardApi: "items defaultMode",
      DownwardFile: "path fieldRef resourceFieldRef mode",
      Projected: "sources defaultMode",
      Projection: "secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate",
      ProjectedFiles: "name items optional",
      AccountToken: "audience expirationSeconds path",
      TrustBundle: "name signerName labelSelector optional path",
      PodCertificate: `signerName keyType maxExpirationSeconds credentialBundlePath keyPath certificateChainPath
        userAnnotations`,
      // The volumes of these types need an allowance.
      Nfs: "server path readOnly",
      Csi: "driver readOnly fsType volumeAttributes nodePublishSecretRef",
      Claim: "claimName readOnly",
      Ephemeral: "volumeClaimTemplate",
      ClaimTemplate: "metadata spec",
      ClaimSpec: `accessModes selector resources volumeName storageClassName volumeMode dataSource dataSourceRef
        volumeAttributesClassName`,
      Image: "pullPolicy",
    },
  },
  {
    because: "it changes how the pod sees the network, or where the scheduler may put it",
    fields: {
      PodSpec: `dnsPolicy dnsConfig hostname subdomain hostnameOverride hostAliases enableServiceLinks
        topologySpreadConstraints`,
      DnsConfig: "nameservers searches options",
      HostAlias: "ip hostnames",
      PreferredNode: "weight",
      PreferredPod: "weight",
      PodTerm: "labelSelector topologyKey matchLabelKeys mismatchLabelKeys",
      LabelSelector: "matchLabels matchExpressions",
      Toleration: "tolerationSeconds",
      Spread: `maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy
        matchLabelKeys`,
    },
  },
  {
    because: "Gangway or Kubernetes overwrites it, checks it, or counts it",
    fields: { PodSpec: "restartPolicy preemptionPolicy overhead resources" },
  },
];

/** The fields of every type that a template can hold, as `Type.field`. */
function fieldsFrom(type: string, seen: Set<string> = new Set()): readonly string[] {
  const fields = fieldsOf(type);
  if (fields === undefined || seen.has(type)) return [];
  seen.add(type);
  return [...fields].flatMap(([name, shape]) => [
    `${type}.${name}`,
    ...(shape === null ? [] : fieldsFrom(shape.type, seen)),
  ]);
}

const listed = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields).flatMap(([type, names]) => names.split(/\s+/).map((name) => `${type}.${name}`));

test("every field of a template is judged, or harmless for a reason, and not both", () => {
  const decided = [...listed(JUDGED), ...HARMLESS.flatMap(({ fields }) => listed(fields))];
  assert.deepEqual(decided.toSorted(), fieldsFrom("Template").toSorted());
});
