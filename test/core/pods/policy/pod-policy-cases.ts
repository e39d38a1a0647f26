/**
 * Every control of the pod policy, with pods that it refuses and takes, in the manner of the fixtures of Kubernetes'
 * pod-security-admission.
 */
import type { JsonObject } from "../../../../src/runtime/json.ts";

type Failing = {
  readonly pod: JsonObject;
  /** The path of the one finding. */
  readonly path: string;
  /** The allowance that lifts it. */
  readonly allow: string;
};
export type ControlCase = {
  readonly fail: Readonly<Record<string, Failing>>;
  readonly pass: Readonly<Record<string, JsonObject>>;
};

const COMPLIANT = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};
const MAIN = { name: "main", image: "i", securityContext: COMPLIANT };
const INIT = { name: "init", image: "i", securityContext: COMPLIANT };
const DEBUG = { name: "debug", image: "i", securityContext: COMPLIANT };

/** A pod that every level takes, with members of its spec changed. */
export function compliantPod(spec: JsonObject = {}, annotations: JsonObject = {}): JsonObject {
  const lists = { containers: [MAIN], initContainers: [INIT], ephemeralContainers: [DEBUG] };
  return { metadata: { annotations }, spec: { ...lists, ...spec } };
}

const withContext = (context: JsonObject) =>
  compliantPod({ containers: [{ ...MAIN, securityContext: { ...COMPLIANT, ...context } }] });
const withInit = (context: JsonObject) =>
  compliantPod({ initContainers: [{ ...INIT, securityContext: { ...COMPLIANT, ...context } }] });
const withDebug = (context: JsonObject) =>
  compliantPod({ ephemeralContainers: [{ ...DEBUG, securityContext: { ...COMPLIANT, ...context } }] });
const ofPod = (securityContext: JsonObject) => compliantPod({ securityContext });
const withMain = (members: JsonObject) => compliantPod({ containers: [{ ...MAIN, ...members }] });
const withVolume = (source: JsonObject) => compliantPod({ volumes: [{ name: "v", ...source }] });

const MAIN_CONTEXT = "spec.containers[0].securityContext";
const INIT_CONTEXT = "spec.initContainers[0].securityContext";
const DEBUG_CONTEXT = "spec.ephemeralContainers[0].securityContext";

/** The same bad value in each kind of container. */
function everywhere(context: JsonObject, member: string, allow: string): Readonly<Record<string, Failing>> {
  return {
    "it in a container": { pod: withContext(context), path: `${MAIN_CONTEXT}.${member}`, allow },
    "it in an init container": { pod: withInit(context), path: `${INIT_CONTEXT}.${member}`, allow },
    "it in an ephemeral container": { pod: withDebug(context), path: `${DEBUG_CONTEXT}.${member}`, allow },
  };
}

function everywhereAndPod(context: JsonObject, member: string, allow: string): Readonly<Record<string, Failing>> {
  const path = `spec.securityContext.${member}`;
  return { ...everywhere(context, member, allow), "it in the pod's context": { pod: ofPod(context), path, allow } };
}

const sysctl = (name: string) => ofPod({ sysctls: [{ name, value: "1" }] });
const SYSCTL_NAME = "spec.securityContext.sysctls[0].name";
const APPARMOR = "container.apparmor.security.beta.kubernetes.io/main";
const SECCOMP = "container.seccomp.security.alpha.kubernetes.io/main";

const hostPath = (path: string, mounts: readonly JsonObject[] = [], type?: string): JsonObject =>
  compliantPod({
    volumes: [{ name: "v", hostPath: { path, ...(type === undefined ? {} : { type }) } }],
    containers: [{ ...MAIN, volumeMounts: mounts.map((mount, at) => ({ name: "v", mountPath: `/${at}`, ...mount })) }],
  });
const HOST_PATH = "spec.volumes[0].hostPath";

const probe = (member: string, handler: JsonObject) => withMain({ [member]: handler });

const DIRECT = `awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk gitRepo
  glusterfs iscsi nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume`.split(/\s+/);

function volumeCases(types: readonly string[]): Readonly<Record<string, Failing>> {
  return Object.fromEntries(
    types.map((type) => [
      `a volume of type ${type}`,
      { pod: withVolume({ [type]: {} }), path: `spec.volumes[0].${type}`, allow: `volume=${type}` },
    ]),
  );
}

const OF_NAMESPACE = Object.fromEntries(
  "configMap downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret"
    .split(" ")
    .map((type) => [`a volume of type ${type}`, withVolume({ [type]: {} })]),
);

const tolerating = (toleration: JsonObject) => compliantPod({ tolerations: [toleration] });
const affinity = (member: string, term: JsonObject) =>
  compliantPod({ affinity: { [member]: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } });
const REQUIRED_TERM = "requiredDuringSchedulingIgnoredDuringExecution[0]";

export const CONTROL_CASES: Readonly<Record<string, ControlCase>> = {
  hostNamespaces: {
    fail: {
      "the node's network": {
        pod: compliantPod({ hostNetwork: true }),
        path: "spec.hostNetwork",
        allow: "host-network",
      },
      "the node's processes": { pod: compliantPod({ hostPID: true }), path: "spec.hostPID", allow: "host-pid" },
      "the node's IPC": { pod: compliantPod({ hostIPC: true }), path: "spec.hostIPC", allow: "host-ipc" },
      "text in place of true": { pod: compliantPod({ hostPID: "yes" }), path: "spec.hostPID", allow: "host-pid" },
    },
    pass: { "false and null": compliantPod({ hostNetwork: false, hostPID: null, hostIPC: false }) },
  },
  privileged: {
    fail: everywhere({ privileged: true }, "privileged", "privileged"),
    pass: { false: withContext({ privileged: false }), null: withInit({ privileged: null }) },
  },
  windowsHostProcess: {
    fail: everywhereAndPod({ windowsOptions: { hostProcess: true } }, "windowsOptions.hostProcess", "host-process"),
    pass: { false: ofPod({ windowsOptions: { hostProcess: false, runAsUserName: "u" } }) },
  },
  hostPathVolumes: {
    fail: {
      "a path that no container mounts": { pod: hostPath("/data"), path: HOST_PATH, allow: "host-path=/data:ro" },
      "a path that a container writes": { pod: hostPath("/data", [{}]), path: HOST_PATH, allow: "host-path=/data" },
      "a path that one of two mounts writes": {
        pod: hostPath("/data", [{ readOnly: true }, { readOnly: false }]),
        path: HOST_PATH,
        allow: "host-path=/data",
      },
      "a path that is only read": {
        pod: hostPath("/data", [{ readOnly: true }]),
        path: HOST_PATH,
        allow: "host-path=/data:ro",
      },
      "a folder that the mount creates": {
        pod: hostPath("/data", [{ readOnly: true }], "DirectoryOrCreate"),
        path: HOST_PATH,
        allow: "host-path=/data",
      },
      "a path that is not in its normal form": {
        pod: hostPath("//dev/./shm/", [{}]),
        path: HOST_PATH,
        allow: "host-path=/dev/shm",
      },
    },
    pass: {
      "an emptyDir in memory": withVolume({ emptyDir: { medium: "Memory" } }),
      null: withVolume({ hostPath: null }),
    },
  },
  hostPorts: {
    fail: {
      "a port of a container": {
        pod: withMain({ ports: [{ containerPort: 1 }, { hostPort: 8080 }] }),
        path: "spec.containers[0].ports[1].hostPort",
        allow: "host-port=8080",
      },
      "a port of an init container": {
        pod: compliantPod({ initContainers: [{ ...INIT, ports: [{ hostPort: 1 }] }] }),
        path: "spec.initContainers[0].ports[0].hostPort",
        allow: "host-port=1",
      },
      "a port of an ephemeral container": {
        pod: compliantPod({ ephemeralContainers: [{ ...DEBUG, ports: [{ hostPort: 1 }] }] }),
        path: "spec.ephemeralContainers[0].ports[0].hostPort",
        allow: "host-port=1",
      },
      "a port in the node's network": {
        pod: compliantPod({
          hostNetwork: true,
          containers: [{ ...MAIN, ports: [{ hostPort: 80, containerPort: 80 }] }],
        }),
        path: "spec.containers[0].ports[0].hostPort",
        allow: "host-network",
      },
    },
    pass: { "0 and null": withMain({ ports: [{ containerPort: 1, hostPort: 0 }, { hostPort: null }] }) },
  },
  hostProbesAndHostLifecycle: {
    fail: Object.fromEntries(
      [
        ...["livenessProbe", "readinessProbe", "startupProbe"].map((member) => ({
          at: member,
          of: (one: JsonObject) => probe(member, one),
        })),
        ...["postStart", "preStop"].map((hook) => ({
          at: `lifecycle.${hook}`,
          of: (one: JsonObject) => probe("lifecycle", { [hook]: one }),
        })),
      ].flatMap(({ at, of }) =>
        ["httpGet", "tcpSocket"].map((handler) => [
          `a host of ${handler} in ${at}`,
          {
            pod: of({ [handler]: { host: "10.0.0.1", port: 80 } }),
            path: `spec.containers[0].${at}.${handler}.host`,
            allow: "probe-host",
          },
        ]),
      ),
    ),
    pass: {
      "empty hosts": probe("livenessProbe", { httpGet: { host: "", port: 80 } }),
      "probes without a host": probe("lifecycle", {
        preStop: { httpGet: { port: 80 } },
        postStart: { exec: { command: [] } },
      }),
    },
  },
  capabilities_baseline: {
    fail: {
      ...everywhere(
        { capabilities: { drop: ["ALL"], add: ["SYS_ADMIN"] } },
        "capabilities.add[0]",
        "capability=SYS_ADMIN",
      ),
      "the capability of EFA and InfiniBand": {
        pod: withContext({ capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE", "IPC_LOCK"] } }),
        path: `${MAIN_CONTEXT}.capabilities.add[1]`,
        allow: "capability=IPC_LOCK",
      },
      "all capabilities": {
        pod: withContext({ capabilities: { drop: ["ALL"], add: ["ALL"] } }),
        path: `${MAIN_CONTEXT}.capabilities.add[0]`,
        allow: "capability=ALL",
      },
      "text in place of a list": {
        pod: withContext({ capabilities: { drop: ["ALL"], add: "NET_RAW" } }),
        path: `${MAIN_CONTEXT}.capabilities.add[0]`,
        allow: "capability=NET_RAW",
      },
    },
    pass: {
      "the runtime's own capabilities": withContext({
        capabilities: {
          drop: ["ALL"],
          add: `AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID
            SYS_CHROOT`.split(/\s+/),
        },
      }),
    },
  },
  procMount: {
    fail: everywhere({ procMount: "Unmasked" }, "procMount", "proc-mount"),
    pass: {
      "the default": withContext({ procMount: "Default" }),
      "any for a pod with users of its own": compliantPod({
        hostUsers: false,
        containers: [{ ...MAIN, securityContext: { ...COMPLIANT, procMount: "Unmasked" } }],
      }),
    },
  },
  procMount_restricted: {
    fail: {
      "any but the default, also with users of its own": {
        pod: compliantPod({
          hostUsers: false,
          containers: [{ ...MAIN, securityContext: { ...COMPLIANT, procMount: "Unmasked" } }],
        }),
        path: `${MAIN_CONTEXT}.procMount`,
        allow: "proc-mount",
      },
    },
    pass: { "the default": withContext({ procMount: "Default" }) },
  },
  sysctls: {
    fail: {
      "a parameter of the node": { pod: sysctl("kernel.msgmax"), path: SYSCTL_NAME, allow: "sysctl=kernel.msgmax" },
      "one of the network": {
        pod: sysctl("net.core.somaxconn"),
        path: SYSCTL_NAME,
        allow: "sysctl=net.core.somaxconn",
      },
    },
    pass: Object.fromEntries(
      `kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start net.ipv4.tcp_syncookies
      net.ipv4.ping_group_range net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout
      net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_rmem net.ipv4.tcp_wmem`
        .split(/\s+/)
        .map((name) => [name, sysctl(name)]),
    ),
  },
  seLinuxOptions: {
    fail: {
      ...everywhereAndPod({ seLinuxOptions: { type: "spc_t" } }, "seLinuxOptions.type", "selinux-options"),
      "a user": {
        pod: ofPod({ seLinuxOptions: { user: "sysadm_u" } }),
        path: "spec.securityContext.seLinuxOptions.user",
        allow: "selinux-options",
      },
      "a role": {
        pod: withContext({ seLinuxOptions: { role: "sysadm_r" } }),
        path: `${MAIN_CONTEXT}.seLinuxOptions.role`,
        allow: "selinux-options",
      },
    },
    pass: Object.fromEntries(
      ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"].map((type) => [
        `type "${type}" and a level`,
        ofPod({ seLinuxOptions: { type, user: "", level: "s0:c1" } }),
      ]),
    ),
  },
  seccompProfile_baseline: {
    fail: {
      ...everywhereAndPod({ seccompProfile: { type: "Unconfined" } }, "seccompProfile.type", "unconfined-seccomp"),
      "an annotation of earlier versions": {
        pod: compliantPod({}, { [SECCOMP]: "unconfined" }),
        path: `metadata.annotations["${SECCOMP}"]`,
        allow: "unconfined-seccomp",
      },
    },
    pass: {
      "a profile of the node": ofPod({ seccompProfile: { type: "Localhost", localhostProfile: "p.json" } }),
      "an annotation with the default": compliantPod({}, { [SECCOMP]: "runtime/default" }),
    },
  },
  appArmorProfile: {
    fail: {
      ...everywhereAndPod({ appArmorProfile: { type: "Unconfined" } }, "appArmorProfile.type", "unconfined-apparmor"),
      "an annotation of earlier versions": {
        pod: compliantPod({}, { [APPARMOR]: "unconfined" }),
        path: `metadata.annotations["${APPARMOR}"]`,
        allow: "unconfined-apparmor",
      },
    },
    pass: {
      "the default": ofPod({ appArmorProfile: { type: "RuntimeDefault" } }),
      "annotations with a profile": compliantPod({}, { [APPARMOR]: "localhost/mine" }),
      "an empty annotation": compliantPod({}, { [APPARMOR]: "" }),
    },
  },
  directVolumes: {
    fail: volumeCases([...DIRECT, "csi", "somethingNew"]),
    pass: OF_NAMESPACE,
  },
  restrictedVolumes: {
    fail: volumeCases([...DIRECT, "somethingNew"]),
    pass: { ...OF_NAMESPACE, "a volume without a type, which is an emptyDir": withVolume({}) },
  },
  tolerations: {
    fail: {
      "a toleration of every taint": {
        pod: tolerating({ operator: "Exists" }),
        path: "spec.tolerations[0]",
        allow: "toleration=*",
      },
      "one of every taint with an effect": {
        pod: tolerating({ key: "", operator: "Exists", effect: "NoExecute" }),
        path: "spec.tolerations[0]",
        allow: "toleration=*",
      },
      "one of the control plane": {
        pod: tolerating({ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }),
        path: "spec.tolerations[0]",
        allow: "toleration=node-role.kubernetes.io/control-plane",
      },
    },
    pass: {
      "a toleration of GPU nodes": tolerating({ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }),
    },
  },
  priorityClasses: {
    fail: {
      "a class of the system": {
        pod: compliantPod({ priorityClassName: "system-node-critical" }),
        path: "spec.priorityClassName",
        allow: "priority-class=system-node-critical",
      },
      "a number of the system": {
        pod: compliantPod({ priority: 2_000_001_000 }),
        path: "spec.priority",
        allow: "priority-class=2000001000",
      },
    },
    pass: { "a class of users": compliantPod({ priorityClassName: "training-high", priority: 1000 }) },
  },
  resourceClaims: {
    fail: {
      "devices of a claim": {
        pod: compliantPod({ resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "all" }] }),
        path: "spec.resourceClaims[0]",
        allow: "resource-claims",
      },
    },
    pass: { "no claims": compliantPod({ resourceClaims: [] }) },
  },
  podAffinityNamespaces: {
    fail: {
      "anti-affinity to the pods of all namespaces": {
        pod: affinity("podAntiAffinity", { topologyKey: "kubernetes.io/hostname", namespaceSelector: {} }),
        path: `spec.affinity.podAntiAffinity.${REQUIRED_TERM}.namespaceSelector`,
        allow: "other-namespaces",
      },
      "affinity to the pods of another namespace": {
        pod: affinity("podAffinity", { topologyKey: "zone", namespaces: ["other"] }),
        path: `spec.affinity.podAffinity.${REQUIRED_TERM}.namespaces`,
        allow: "other-namespaces",
      },
    },
    pass: {
      "anti-affinity within the namespace": affinity("podAntiAffinity", { topologyKey: "kubernetes.io/hostname" }),
    },
  },
  capabilities_restricted: {
    fail: {
      ...everywhere({ capabilities: { drop: ["NET_RAW"] } }, "capabilities.drop", "default-capabilities"),
      "a capability of the runtime": {
        pod: withContext({ capabilities: { drop: ["ALL"], add: ["CHOWN"] } }),
        path: `${MAIN_CONTEXT}.capabilities.add[0]`,
        allow: "capability=CHOWN",
      },
    },
    pass: {
      "one capability for low ports": withContext({ capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] } }),
      "a pod of Windows": compliantPod({ os: { name: "windows" }, containers: [{ name: "main", image: "i" }] }),
    },
  },
  allowPrivilegeEscalation: {
    fail: {
      ...everywhere({ allowPrivilegeEscalation: true }, "allowPrivilegeEscalation", "privilege-escalation"),
      "a container that does not say": {
        pod: withContext({ allowPrivilegeEscalation: null }),
        path: `${MAIN_CONTEXT}.allowPrivilegeEscalation`,
        allow: "privilege-escalation",
      },
    },
    pass: { "a pod of Windows": compliantPod({ os: { name: "windows" }, containers: [{ name: "main", image: "i" }] }) },
  },
  runAsNonRoot: {
    fail: {
      ...everywhereAndPod({ runAsNonRoot: false }, "runAsNonRoot", "run-as-root"),
      "a container that does not say": {
        pod: withContext({ runAsNonRoot: null }),
        path: `${MAIN_CONTEXT}.runAsNonRoot`,
        allow: "run-as-root",
      },
    },
    pass: {
      "a pod that says it for all containers": compliantPod({
        securityContext: { runAsNonRoot: true },
        containers: [{ ...MAIN, securityContext: { ...COMPLIANT, runAsNonRoot: null } }],
      }),
      "a pod with users of its own": compliantPod({ hostUsers: false, securityContext: { runAsNonRoot: false } }),
    },
  },
  runAsUser: {
    fail: everywhereAndPod({ runAsUser: 0 }, "runAsUser", "run-as-root"),
    pass: {
      "another user": ofPod({ runAsUser: 1000 }),
      "root of users of its own": compliantPod({ hostUsers: false, securityContext: { runAsUser: 0 } }),
    },
  },
  seccompProfile_restricted: {
    fail: {
      "a container without a profile": {
        pod: withContext({ seccompProfile: null }),
        path: `${MAIN_CONTEXT}.seccompProfile.type`,
        allow: "default-seccomp",
      },
    },
    pass: {
      "a pod that names a profile for all containers": compliantPod({
        securityContext: { seccompProfile: { type: "Localhost" } },
        containers: [{ ...MAIN, securityContext: { ...COMPLIANT, seccompProfile: null } }],
      }),
    },
  },
};
