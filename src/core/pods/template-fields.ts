/** The type of a member of a Kubernetes object. Null for scalars and for members that are not checked further. */
type FieldShape = { readonly type: string; readonly list: boolean } | null;

/**
 * The known members of Kubernetes objects, by type: `name`, `name:Type` for an object, `name:Type*` for a list of
 * objects. Other types are not checked. Source: Kubernetes core/v1 of 1.34.
 */
const FIELDS: Readonly<Record<string, string>> = {
  Template: "metadata:ObjectMeta spec:PodSpec",
  ObjectMeta: `name generateName namespace labels annotations finalizers ownerReferences creationTimestamp uid
    resourceVersion selfLink generation deletionTimestamp deletionGracePeriodSeconds managedFields`,
  PodSpec: `volumes:Volume* initContainers:Container* containers:Container* ephemeralContainers:Container* restartPolicy
    terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount
    automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace
    securityContext:PodSecurityContext imagePullSecrets:Reference* hostname subdomain affinity:Affinity
    schedulerName tolerations:Toleration* hostAliases:HostAlias* priorityClassName priority dnsConfig
    readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead topologySpreadConstraints:Spread*
    setHostnameAsFQDN os hostUsers schedulingGates resourceClaims resources:Resources hostnameOverride`,
  Container: `name image command args workingDir ports:Port* envFrom:EnvFrom* env:EnvVar* resources:Resources
    resizePolicy restartPolicy restartPolicyRules volumeMounts:VolumeMount* volumeDevices:VolumeDevice*
    livenessProbe:Probe
    readinessProbe:Probe startupProbe:Probe lifecycle:Lifecycle terminationMessagePath terminationMessagePolicy
    imagePullPolicy securityContext:SecurityContext stdin stdinOnce tty targetContainerName`,
  Port: "name hostPort containerPort protocol hostIP",
  EnvVar: "name value valueFrom:EnvSource",
  EnvSource: "fieldRef:FieldRef resourceFieldRef:ResourceRef configMapKeyRef:KeyRef secretKeyRef:KeyRef fileKeyRef",
  FieldRef: "apiVersion fieldPath",
  ResourceRef: "containerName resource divisor",
  KeyRef: "name key optional",
  EnvFrom: "prefix configMapRef:OptionalRef secretRef:OptionalRef",
  OptionalRef: "name optional",
  Reference: "name",
  HostAlias: "ip hostnames",
  Resources: "limits requests claims",
  VolumeMount: "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
  VolumeDevice: "name devicePath",
  Probe: `exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold
    terminationGracePeriodSeconds`,
  Lifecycle: "postStart preStop stopSignal",
  SecurityContext: `capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot
    readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile appArmorProfile`,
  PodSecurityContext: `seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups
    supplementalGroupsPolicy fsGroup sysctls fsGroupChangePolicy seccompProfile appArmorProfile seLinuxChangePolicy`,
  Volume: `name hostPath emptyDir:EmptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret:SecretVolume nfs:Nfs
    iscsi glusterfs persistentVolumeClaim:Claim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile
    configMap:ConfigMapVolume vsphereVolume quobyte azureDisk photonPersistentDisk projected portworxVolume
    scaleIO storageos csi ephemeral image`,
  EmptyDir: "medium sizeLimit",
  SecretVolume: "secretName items defaultMode optional",
  ConfigMapVolume: "name items defaultMode optional",
  Nfs: "server path readOnly",
  Claim: "claimName readOnly",
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
