import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";

/** The type of a member of a Kubernetes object. Null for scalars and for members that are not checked further. */
type FieldShape = { readonly type: string; readonly list: boolean } | null;

/**
 * The known members of Kubernetes objects, by type: `name`, `name:Type` for an object, `name:Type*` for a list of
 * objects. Other types are not checked. Source: Kubernetes core/v1 of 1.36.
 */
const FIELDS: Readonly<Record<string, string>> = {
  Template: "metadata:Metadata spec:PodSpec",
  Metadata: "labels annotations",
  PodSpec: `volumes:Volume* initContainers:Container* containers:Container* ephemeralContainers:Container* restartPolicy
    terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount
    automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace
    securityContext:PodSecurityContext imagePullSecrets:Named* hostname subdomain affinity:Affinity
    schedulerName tolerations:Toleration* hostAliases:HostAlias* priorityClassName priority dnsConfig:DnsConfig
    readinessGates:ReadinessGate* runtimeClassName enableServiceLinks preemptionPolicy overhead
    topologySpreadConstraints:Spread* setHostnameAsFQDN os:Named hostUsers schedulingGates:Named*
    resourceClaims:PodClaim* resources:Resources hostnameOverride schedulingGroup`,
  Container: `name image command args workingDir ports:Port* envFrom:EnvFrom* env:EnvVar* resources:Resources
    resizePolicy:Resize* restartPolicy restartPolicyRules:RestartRule* volumeMounts:VolumeMount*
    volumeDevices:VolumeDevice* livenessProbe:Probe readinessProbe:Probe startupProbe:Probe lifecycle:Lifecycle
    terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext:SecurityContext stdin stdinOnce tty
    targetContainerName`,
  Named: "name",
  Port: "name hostPort containerPort protocol hostIP",
  EnvVar: "name value valueFrom:EnvSource",
  EnvSource: `fieldRef:FieldRef resourceFieldRef:ResourceRef configMapKeyRef:KeyRef secretKeyRef:KeyRef
    fileKeyRef:FileKeyRef`,
  FieldRef: "apiVersion fieldPath",
  ResourceRef: "containerName resource divisor",
  KeyRef: "name key optional",
  FileKeyRef: "volumeName path key optional",
  EnvFrom: "prefix configMapRef:OptionalRef secretRef:OptionalRef",
  OptionalRef: "name optional",
  HostAlias: "ip hostnames",
  Resources: "limits requests claims:ResourceClaim*",
  ResourceClaim: "name request",
  PodClaim: "name resourceClaimName resourceClaimTemplateName",
  Resize: "resourceName restartPolicy",
  RestartRule: "action exitCodes:ExitCodes",
  ExitCodes: "operator values",
  VolumeMount: "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
  VolumeDevice: "name devicePath",
  Probe: `exec:Exec httpGet:HttpGet tcpSocket:TcpSocket grpc:Grpc initialDelaySeconds timeoutSeconds periodSeconds
    successThreshold failureThreshold terminationGracePeriodSeconds`,
  Lifecycle: "postStart:Hook preStop:Hook stopSignal",
  Hook: "exec:Exec httpGet:HttpGet tcpSocket:TcpSocket sleep:Sleep",
  Exec: "command",
  HttpGet: "path port host scheme httpHeaders:Pair*",
  Pair: "name value",
  TcpSocket: "port host",
  Grpc: "port service",
  Sleep: "seconds",
  SecurityContext: `capabilities:Capabilities privileged seLinuxOptions:SeLinux windowsOptions:Windows runAsUser
    runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile:Profile
    appArmorProfile:Profile`,
  PodSecurityContext: `seLinuxOptions:SeLinux windowsOptions:Windows runAsUser runAsGroup runAsNonRoot
    supplementalGroups supplementalGroupsPolicy fsGroup sysctls:Pair* fsGroupChangePolicy seccompProfile:Profile
    appArmorProfile:Profile seLinuxChangePolicy`,
  Capabilities: "add drop",
  SeLinux: "user role type level",
  Windows: "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess",
  Profile: "type localhostProfile",
  Volume: `name hostPath:HostPath emptyDir:EmptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret:SecretVolume
    nfs:Nfs iscsi glusterfs persistentVolumeClaim:Claim rbd flexVolume cinder cephfs flocker downwardAPI:DownwardApi fc
    azureFile configMap:ConfigMapVolume vsphereVolume quobyte azureDisk photonPersistentDisk projected:Projected
    portworxVolume scaleIO storageos csi:Csi ephemeral:Ephemeral image:Image`,
  HostPath: "path type",
  EmptyDir: "medium sizeLimit",
  SecretVolume: "secretName items:Item* defaultMode optional",
  ConfigMapVolume: "name items:Item* defaultMode optional",
  Item: "key path mode",
  DownwardApi: "items:DownwardFile* defaultMode",
  DownwardFile: "path fieldRef:FieldRef resourceFieldRef:ResourceRef mode",
  Projected: "sources:Projection* defaultMode",
  Projection: `secret:ProjectedFiles downwardAPI:DownwardApi configMap:ProjectedFiles serviceAccountToken:AccountToken
    clusterTrustBundle:TrustBundle podCertificate:PodCertificate`,
  ProjectedFiles: "name items:Item* optional",
  AccountToken: "audience expirationSeconds path",
  TrustBundle: "name signerName labelSelector:LabelSelector optional path",
  PodCertificate: `signerName keyType maxExpirationSeconds credentialBundlePath keyPath certificateChainPath
    userAnnotations`,
  Nfs: "server path readOnly",
  Csi: "driver readOnly fsType volumeAttributes nodePublishSecretRef:Named",
  Claim: "claimName readOnly",
  Ephemeral: "volumeClaimTemplate:ClaimTemplate",
  ClaimTemplate: "metadata:Metadata spec:ClaimSpec",
  ClaimSpec: `accessModes selector:LabelSelector resources:Resources volumeName storageClassName volumeMode dataSource
    dataSourceRef volumeAttributesClassName`,
  Image: "reference pullPolicy",
  Affinity: "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity",
  NodeAffinity: `requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
    preferredDuringSchedulingIgnoredDuringExecution:PreferredNode*`,
  NodeSelector: "nodeSelectorTerms:NodeTerm*",
  PreferredNode: "weight preference:NodeTerm",
  NodeTerm: "matchExpressions:Requirement* matchFields:Requirement*",
  Requirement: "key operator values",
  PodAffinity: `requiredDuringSchedulingIgnoredDuringExecution:PodTerm*
    preferredDuringSchedulingIgnoredDuringExecution:PreferredPod*`,
  PreferredPod: "weight podAffinityTerm:PodTerm",
  PodTerm: `labelSelector:LabelSelector namespaces topologyKey namespaceSelector:LabelSelector matchLabelKeys
    mismatchLabelKeys`,
  LabelSelector: "matchLabels matchExpressions:Requirement*",
  Toleration: "key operator value effect tolerationSeconds",
  Spread: `maxSkew topologyKey whenUnsatisfiable labelSelector:LabelSelector minDomains nodeAffinityPolicy
    nodeTaintsPolicy matchLabelKeys`,
  DnsConfig: "nameservers searches options:Pair*",
  ReadinessGate: "conditionType",
};

const PARSED: ReadonlyMap<string, ReadonlyMap<string, FieldShape>> = new Map(
  Object.entries(FIELDS).map(([type, text]) => [type, parseFields(text)]),
);

/** The members of a type, by name. Undefined for a type that is not checked. */
export function fieldsOf(type: string): ReadonlyMap<string, FieldShape> | undefined {
  return PARSED.get(type);
}

function parseFields(text: string): ReadonlyMap<string, FieldShape> {
  const fields = new Map<string, FieldShape>();
  for (const word of text.split(/\s+/)) {
    const [name = "", type] = word.split(":");
    fields.set(name, type === undefined ? null : { type: type.replace("*", ""), list: type.endsWith("*") });
  }
  return fields;
}

/**
 * A template with the members that are known, so that no other member reaches a cluster unjudged. Of its metadata, only
 * labels and annotations stay.
 */
export function knownTemplate(template: JsonObject): JsonObject {
  return knownMembers(template, "Template");
}

function knownMembers(object: JsonObject, type: string): JsonObject {
  const fields = fieldsOf(type);
  if (fields === undefined) return object;
  const known = Object.entries(object).flatMap(([name, value]): [string, Json | undefined][] => {
    const shape = fields.get(name);
    if (shape === undefined) return [];
    return [[name, shape === null ? value : knownValue(value, shape.type)]];
  });
  return Object.fromEntries(known);
}

function knownValue(value: Json | undefined, type: string): Json | undefined {
  if (Array.isArray(value))
    return (value as readonly Json[]).map((item) => (isJsonObject(item) ? knownMembers(item, type) : item));
  return isJsonObject(value) ? knownMembers(value, type) : value;
}
