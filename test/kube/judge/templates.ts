/** Templates that Kubernetes accepts, which together hold a value for almost every member of a pod. */
import type { JsonObject } from "../../../src/runtime/json.ts";

const main: JsonObject = { name: "main", image: "example.com/train:1", command: ["train"] };

const ENV: readonly JsonObject[] = [
  { name: "EPOCHS", value: "3" },
  { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  { name: "TEAM", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['team']" } } },
  { name: "CPUS", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
  { name: "MEMORY", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Mi" } } },
  { name: "KEY", valueFrom: { configMapKeyRef: { name: "settings", key: "a.key", optional: true } } },
  { name: "TOKEN", valueFrom: { secretKeyRef: { name: "hub", key: "token", optional: true } } },
  { name: "FILE", valueFrom: { fileKeyRef: { volumeName: "work", path: "env", key: "A", optional: true } } },
];

const PROBES: JsonObject = {
  livenessProbe: { httpGet: { path: "/live", port: 8080, scheme: "HTTP", httpHeaders: [{ name: "X-A", value: "b" }] } },
  readinessProbe: { tcpSocket: { port: "http", host: "" }, periodSeconds: 5, successThreshold: 2 },
  startupProbe: { exec: { command: ["true"] }, failureThreshold: 30, initialDelaySeconds: 1, timeoutSeconds: 2 },
  lifecycle: { preStop: { sleep: { seconds: 5 } }, postStart: { exec: { command: ["true"] } } },
};

const SECURITY: JsonObject = {
  capabilities: { add: ["IPC_LOCK"], drop: ["ALL"] },
  privileged: false,
  runAsUser: 1000,
  runAsGroup: 1000,
  runAsNonRoot: true,
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  procMount: "Default",
  seLinuxOptions: { user: "u", role: "r", type: "t", level: "s0" },
  seccompProfile: { type: "Localhost", localhostProfile: "profiles/a.json" },
  appArmorProfile: { type: "RuntimeDefault" },
};

const trainer: JsonObject = {
  metadata: {
    labels: { team: "vision", "example.com/model": "resnet_50" },
    annotations: {
      "example.com/Note": "any text, also with spaces",
      "controller.kubernetes.io/pod-deletion-cost": "5",
    },
  },
  spec: {
    containers: [
      {
        ...main,
        args: ["--epochs", "$(EPOCHS)"],
        workingDir: "/work",
        ports: [
          { name: "http", containerPort: 8080, protocol: "TCP" },
          { name: "other", containerPort: 9000, hostPort: 9000, hostIP: "127.0.0.1", protocol: "UDP" },
        ],
        env: ENV,
        envFrom: [
          { prefix: "A_", configMapRef: { name: "all", optional: true } },
          { secretRef: { name: "s", optional: true } },
        ],
        resources: {
          limits: {
            cpu: "4",
            memory: "8Gi",
            "nvidia.com/gpu": "2",
            "ephemeral-storage": "10Gi",
            "hugepages-2Mi": "4Mi",
          },
          requests: { cpu: "500m", memory: "8Gi", "nvidia.com/gpu": 2 },
          claims: [{ name: "gpus", request: "one" }],
        },
        resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
        volumeMounts: [
          { name: "work", mountPath: "/work", subPath: "a/b", mountPropagation: "HostToContainer" },
          { name: "config", mountPath: "/etc/config", readOnly: true, recursiveReadOnly: "IfPossible" },
          { name: "secret", mountPath: "/etc/secret", subPathExpr: "$(POD)" },
        ],
        volumeDevices: [{ name: "claim", devicePath: "/dev/xda" }],
        terminationMessagePath: "/dev/log",
        terminationMessagePolicy: "FallbackToLogsOnError",
        imagePullPolicy: "IfNotPresent",
        securityContext: SECURITY,
        stdin: false,
        tty: false,
        ...PROBES,
      },
      {
        name: "side",
        image: "busybox",
        restartPolicy: "OnFailure",
        restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [1, 2] } }],
        livenessProbe: { grpc: { port: 50051, service: "health" }, terminationGracePeriodSeconds: 10 },
      },
    ],
    initContainers: [
      {
        name: "fetch",
        image: "busybox",
        env: [{ name: "A", value: "b" }],
        volumeMounts: [{ name: "work", mountPath: "/w" }],
      },
      {
        name: "proxy",
        image: "envoy",
        restartPolicy: "Always",
        ports: [{ containerPort: 15001 }],
        ...PROBES,
        readinessProbe: null,
      },
    ],
    volumes: [
      { name: "work", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } },
      {
        name: "config",
        configMap: { name: "settings", defaultMode: 420, items: [{ key: "a", path: "b/c", mode: 256 }] },
      },
      {
        name: "secret",
        secret: { secretName: "hub", defaultMode: 256, optional: true, items: [{ key: "a", path: "b" }] },
      },
      { name: "claim", persistentVolumeClaim: { claimName: "data", readOnly: false } },
      {
        name: "all",
        projected: {
          defaultMode: 420,
          sources: [
            { secret: { name: "hub", items: [{ key: "a", path: "s/a" }] } },
            { configMap: { name: "settings", items: [{ key: "a", path: "c/a" }] } },
            { downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
            { serviceAccountToken: { audience: "hub", expirationSeconds: 3600, path: "token" } },
          ],
        },
      },
      {
        name: "down",
        downwardAPI: {
          items: [
            {
              path: "cpu",
              mode: 256,
              resourceFieldRef: { containerName: "main", resource: "limits.cpu", divisor: "1" },
            },
            { path: "notes", fieldRef: { fieldPath: "metadata.annotations['example.com/Note']" } },
          ],
        },
      },
      {
        name: "scratch",
        ephemeral: {
          volumeClaimTemplate: {
            metadata: { labels: { a: "b" }, annotations: { "a/b": "c" } },
            spec: {
              accessModes: ["ReadWriteOnce"],
              storageClassName: "fast",
              volumeMode: "Filesystem",
              resources: { requests: { storage: "100Gi" }, limits: { storage: "200Gi" } },
              selector: { matchLabels: { a: "b" }, matchExpressions: [{ key: "c", operator: "Exists" }] },
              dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "snap" },
              volumeAttributesClassName: "gold",
            },
          },
        },
      },
    ],
    terminationGracePeriodSeconds: 60,
    activeDeadlineSeconds: 3600,
    serviceAccountName: "default",
    automountServiceAccountToken: true,
    shareProcessNamespace: false,
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      runAsNonRoot: true,
      fsGroup: 2000,
      fsGroupChangePolicy: "OnRootMismatch",
      supplementalGroups: [3000],
      supplementalGroupsPolicy: "Merge",
      seLinuxChangePolicy: "Recursive",
      sysctls: [
        { name: "kernel.shm_rmid_forced", value: "0" },
        { name: "net.core.somaxconn", value: "1024" },
      ],
      seccompProfile: { type: "RuntimeDefault" },
      appArmorProfile: { type: "Localhost", localhostProfile: "profile" },
    },
    imagePullSecrets: [{ name: "registry" }],
    enableServiceLinks: false,
    resourceClaims: [{ name: "gpus", resourceClaimTemplateName: "gpu-template" }],
  },
};

const TERM: JsonObject = {
  labelSelector: {
    matchLabels: { app: "a" },
    matchExpressions: [
      { key: "b", operator: "In", values: ["c", "d"] },
      { key: "e", operator: "DoesNotExist" },
    ],
  },
  topologyKey: "kubernetes.io/hostname",
  namespaces: ["default"],
  namespaceSelector: { matchLabels: { team: "x" } },
  matchLabelKeys: ["team"],
  mismatchLabelKeys: ["other"],
};

const placed: JsonObject = {
  metadata: {
    labels: { team: "vision" },
    annotations: {
      "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
      "container.seccomp.security.alpha.kubernetes.io/main": "localhost/a",
      "container.apparmor.security.beta.kubernetes.io/main": "runtime/default",
      "scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a","operator":"Exists"}]',
    },
  },
  spec: {
    containers: [
      { ...main, ports: [{ containerPort: 80, name: "web" }], resources: { requests: { cpu: "1", memory: "1Gi" } } },
    ],
    resources: { limits: { cpu: "4", memory: "8Gi" }, requests: { cpu: "2" } },
    nodeSelector: { "kubernetes.io/arch": "amd64", pool: "gpu" },
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: "zone", operator: "In", values: ["a", "b"] },
                { key: "cores", operator: "Gt", values: ["16"] },
                { key: "old", operator: "DoesNotExist" },
              ],
            },
          ],
        },
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 10, preference: { matchExpressions: [{ key: "disk", operator: "NotIn", values: ["hdd"] }] } },
        ],
      },
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [TERM],
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: TERM }],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: { a: "b" } }, topologyKey: "zone" },
        ],
      },
    },
    tolerations: [
      { key: "gpu", operator: "Equal", value: "yes", effect: "NoSchedule" },
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30 },
      { operator: "Exists" },
    ],
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "zone",
        whenUnsatisfiable: "DoNotSchedule",
        minDomains: 2,
        labelSelector: { matchLabels: { a: "b" } },
        nodeAffinityPolicy: "Honor",
        nodeTaintsPolicy: "Ignore",
        matchLabelKeys: ["team"],
      },
      { maxSkew: 2, topologyKey: "rack", whenUnsatisfiable: "ScheduleAnyway" },
    ],
    hostAliases: [{ ip: "10.1.2.3", hostnames: ["a.example.com", "b"] }],
    dnsPolicy: "None",
    dnsConfig: {
      nameservers: ["10.0.0.10", "2001:db8::1"],
      searches: ["a.example.com", "_b.c."],
      options: [{ name: "ndots", value: "2" }],
    },
    hostname: "worker",
    subdomain: "gang",
    setHostnameAsFQDN: false,
    os: { name: "linux" },
    hostUsers: false,
    priorityClassName: "system-node-critical",
    preemptionPolicy: "PreemptLowerPriority",
    readinessGates: [{ conditionType: "example.com/ready" }],
    schedulerName: "default-scheduler",
  },
};

const networked: JsonObject = {
  spec: {
    hostNetwork: true,
    hostPID: true,
    hostIPC: true,
    dnsPolicy: "ClusterFirstWithHostNet",
    containers: [
      {
        ...main,
        ports: [
          { containerPort: 29500, name: "rendezvous" },
          { containerPort: 80, hostPort: 80 },
        ],
        securityContext: { privileged: true, capabilities: { add: ["SYS_ADMIN"] } },
        volumeMounts: [{ name: "shm", mountPath: "/dev/shm", mountPropagation: "Bidirectional" }],
        volumeDevices: [{ name: "block", devicePath: "/dev/xvda" }],
      },
    ],
    volumes: [
      { name: "shm", hostPath: { path: "/dev/shm", type: "Directory" } },
      { name: "block", persistentVolumeClaim: { claimName: "disk" } },
      { name: "nfs", nfs: { server: "10.0.0.1", path: "/data", readOnly: true } },
      {
        name: "csi",
        csi: { driver: "csi.example.com", volumeAttributes: { a: "b" }, nodePublishSecretRef: { name: "s" } },
      },
      { name: "image", image: { reference: "example.com/data:1", pullPolicy: "IfNotPresent" } },
    ],
  },
};

/** The sources of volumes that need an allowance, each in a volume of its own. */
const SOURCES: Readonly<Record<string, JsonObject>> = {
  gcePersistentDisk: { pdName: "disk", partition: 1 },
  awsElasticBlockStore: { volumeID: "vol-1", partition: 1 },
  gitRepo: { repository: "https://example.com/a.git", revision: "main", directory: "a" },
  iscsi: {
    targetPortal: "10.0.0.1:3260",
    iqn: "iqn.2001-04.com.example:storage",
    lun: 1,
    initiatorName: "iqn.2001-04.com.example:client",
    chapAuthSession: true,
    secretRef: { name: "s" },
  },
  glusterfs: { endpoints: "e", path: "p" },
  rbd: { monitors: ["a"], image: "i" },
  flexVolume: { driver: "example.com/d", options: { a: "b" } },
  cinder: { volumeID: "v", secretRef: { name: "s" } },
  cephfs: { monitors: ["a"], path: "/" },
  flocker: { datasetName: "d" },
  fc: { targetWWNs: ["a"], lun: 2 },
  azureFile: { secretName: "s", shareName: "d" },
  vsphereVolume: { volumePath: "[a] b" },
  quobyte: { registry: "host:1,other:2", volume: "v", tenant: "t" },
  azureDisk: {
    diskName: "d",
    diskURI: "https://a.blob.core.windows.net/b/c.vhd",
    cachingMode: "ReadWrite",
    kind: "Shared",
  },
  photonPersistentDisk: { pdID: "p" },
  portworxVolume: { volumeID: "v" },
  scaleIO: { gateway: "g", system: "s", volumeName: "v", secretRef: { name: "n" } },
  storageos: { volumeName: "v", volumeNamespace: "n", secretRef: { name: "s" } },
};

const mounted: JsonObject = {
  spec: {
    containers: [main],
    volumes: Object.entries(SOURCES).map(([name, source]) => ({ name: name.toLowerCase(), [name]: source })),
  },
};

const windows: JsonObject = {
  spec: {
    os: { name: "windows" },
    hostNetwork: true,
    containers: [
      { ...main, securityContext: { windowsOptions: { runAsUserName: "DOMAIN\\user", hostProcess: true } } },
    ],
    securityContext: {
      windowsOptions: { hostProcess: true, gmsaCredentialSpecName: "spec", gmsaCredentialSpec: "{}" },
    },
  },
};

export const TEMPLATES: Readonly<Record<string, JsonObject>> = { trainer, placed, networked, mounted, windows };
