/** The controls that keep the runtime's default protections: capabilities, profiles, masks, kernel parameters. */
import { stringAt } from "../../../runtime/json.ts";
import {
  containersOf,
  isSet,
  type PodPart,
  partAt,
  partsAt,
  securityContextsOf,
  textOf,
  textsAt,
} from "../pod-parts.ts";
import type { AllowanceKind } from "./allowances.ts";
import type { Control, PodNeed } from "./control.ts";
import { hasOwnUsers } from "./exempt-pods.ts";

/** The capabilities that container runtimes give by default. */
const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set(
  `AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID
  SYS_CHROOT`.split(/\s+/),
);

const capabilities: Control = {
  id: "capabilities_baseline",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    containersOf(spec).flatMap((one) => addedCapabilities(one, (name) => DEFAULT_CAPABILITIES.has(name))),
};

/** The capabilities that a container adds, without the harmless ones. */
export function addedCapabilities(container: PodPart, isHarmless: (name: string) => boolean): readonly PodNeed[] {
  const { path, value } = partAt(partAt(container, "securityContext"), "capabilities");
  return textsAt(value, "add")
    .map((name, index) => ({ name, index }))
    .filter(({ name }) => !isHarmless(name))
    .map(({ name, index }) => ({
      path: `${path}.add[${index}]`,
      what: `adds the capability ${name}`,
      needs: { kind: "capability", value: name },
    }));
}

const procMount: Control = {
  id: "procMount",
  level: "baseline",
  judges: "set",
  check: ({ spec }) => (hasOwnUsers(spec) ? [] : procMounts(spec)),
};

/** The containers whose /proc is not the default one. */
export function procMounts(spec: PodPart["value"]): readonly PodNeed[] {
  return containersOf(spec)
    .map((container) => partAt(container, "securityContext"))
    .filter(({ value }) => isSet(value["procMount"]) && value["procMount"] !== "Default")
    .map(({ path, value }) => ({
      path: `${path}.procMount`,
      what: `mounts /proc as ${textOf(value["procMount"])}`,
      needs: { kind: "proc-mount", value: "" },
    }));
}

/** Parameters that belong to a pod alone. */
const SAFE_SYSCTLS: ReadonlySet<string> = new Set(
  `kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start net.ipv4.tcp_syncookies
  net.ipv4.ping_group_range net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout
  net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_rmem net.ipv4.tcp_wmem`.split(/\s+/),
);

const sysctls: Control = {
  id: "sysctls",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    partsAt(partAt({ path: "spec", value: spec }, "securityContext"), "sysctls")
      .map(({ path, value }) => ({ path: `${path}.name`, name: textOf(value["name"]) }))
      .filter(({ name }) => !SAFE_SYSCTLS.has(name))
      .map(({ path, name }) => ({
        path,
        what: `sets the kernel parameter ${name}`,
        needs: { kind: "sysctl", value: name },
      })),
};

const SELINUX_TYPES: readonly unknown[] = [
  "",
  "container_t",
  "container_init_t",
  "container_kvm_t",
  "container_engine_t",
];

const seLinuxOptions: Control = {
  id: "seLinuxOptions",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    securityContextsOf(spec)
      .map((context) => partAt(context, "seLinuxOptions"))
      .flatMap(({ path, value }) =>
        (["type", "user", "role"] as const)
          .filter((member) => isSet(value[member]) && value[member] !== "")
          .filter((member) => member !== "type" || !SELINUX_TYPES.includes(value[member]))
          .map((member) => ({
            path: `${path}.${member}`,
            what: `sets the SELinux ${member} ${textOf(value[member])}`,
            needs: { kind: "selinux-options", value: "" },
          })),
      ),
};

/** The values of `type` of a profile that confine a container. */
export const CONFINED: readonly unknown[] = ["RuntimeDefault", "Localhost"];

/** Profiles that are set and confine nothing. A profile without a type counts, because Kubernetes requires one. */
function unconfined(spec: PodPart["value"], member: string, kind: AllowanceKind): readonly PodNeed[] {
  return securityContextsOf(spec)
    .filter(({ value }) => isSet(value[member]))
    .map((context) => partAt(context, member))
    .filter(({ value }) => !CONFINED.includes(value["type"]))
    .map(({ path, value }) => ({
      path: `${path}.type`,
      what: `sets the profile ${textOf(value["type"])}`,
      needs: { kind, value: "" },
    }));
}

/** Annotations of earlier versions of Kubernetes, which some clusters still obey. */
const SECCOMP_ANNOTATIONS = /^(container\.)?seccomp\.security\.alpha\.kubernetes\.io\//;
const SECCOMP_CONFINED = /^(runtime\/default|docker\/default|localhost\/.*)$/s;
const APPARMOR_ANNOTATIONS = /^container\.apparmor\.security\.beta\.kubernetes\.io\//;
const APPARMOR_CONFINED = /^(|runtime\/default|localhost\/.*)$/s;

const seccompProfile: Control = {
  id: "seccompProfile_baseline",
  level: "baseline",
  judges: "set",
  check: ({ annotations, spec }) => [
    ...unconfined(spec, "seccompProfile", "unconfined-seccomp"),
    ...annotated(annotations, { keys: SECCOMP_ANNOTATIONS, values: SECCOMP_CONFINED, kind: "unconfined-seccomp" }),
  ],
};

const appArmorProfile: Control = {
  id: "appArmorProfile",
  level: "baseline",
  judges: "set",
  check: ({ annotations, spec }) => [
    ...unconfined(spec, "appArmorProfile", "unconfined-apparmor"),
    ...annotated(annotations, { keys: APPARMOR_ANNOTATIONS, values: APPARMOR_CONFINED, kind: "unconfined-apparmor" }),
  ],
};

function annotated(
  annotations: PodPart["value"],
  { keys, values, kind }: { readonly keys: RegExp; readonly values: RegExp; readonly kind: AllowanceKind },
): readonly PodNeed[] {
  return Object.keys(annotations)
    .filter((key) => keys.test(key) && isSet(annotations[key]) && !values.test(stringAt(annotations, key) ?? "?"))
    .map((key) => ({
      path: `metadata.annotations[${JSON.stringify(key.slice(0, 200))}]`,
      what: `sets the profile ${textOf(annotations[key])}`,
      needs: { kind, value: "" },
    }));
}

export const KERNEL_CONTROLS: readonly Control[] = [
  capabilities,
  procMount,
  sysctls,
  seLinuxOptions,
  seccompProfile,
  appArmorProfile,
];
