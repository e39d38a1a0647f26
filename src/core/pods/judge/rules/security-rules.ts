/** The rules for security contexts. */
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import type { Finding } from "../finding.ts";
import { inside, type PodPlace } from "../place.ts";
import { evenEmpty, type MemberRule, type ObjectRule, oneOf, required, type TypeRules, USER_ID } from "../rule.ts";
import { isAbsent } from "../set.ts";
import { SYNTAX } from "../syntax.ts";
import { WINDOWS_RULES } from "./windows-rules.ts";

const PROC_MOUNT: ObjectRule = {
  says: "the procMount Unmasked needs a pod with hostUsers: false",
  judge: (context, place, { pod, findings }) => {
    if (context["procMount"] !== "Unmasked" || !pod.hostUsers) return;
    const detail = "`hostUsers` must be false to use `Unmasked`";
    findings.add({ kind: "invalid", place: inside(place, "procMount"), value: "Unmasked", detail });
  },
};

const ESCALATION: ObjectRule = {
  says: "allowPrivilegeEscalation must not be false with privileged: true or the capability CAP_SYS_ADMIN",
  judge: (context, place, { findings }) => {
    if (context["allowPrivilegeEscalation"] !== false) return;
    const cannot = (what: string): Finding => ({
      kind: "invalid",
      place,
      value: context,
      detail: `cannot set \`allowPrivilegeEscalation\` to false and ${what}`,
    });
    if (context["privileged"] === true) findings.add(cannot("`privileged` to true"));
    if (!arrayAt(objectAt(context, "capabilities"), "add").includes("CAP_SYS_ADMIN")) return;
    findings.add(cannot("`capabilities.Add` CAP_SYS_ADMIN"));
  },
};

const PROFILE_TYPES = ["Localhost", "RuntimeDefault", "Unconfined"];

/** A profile on the node is named, and only then. */
function localhostProfile(what: "seccomp" | "AppArmor"): ObjectRule {
  return {
    says: "localhostProfile must be set for the type Localhost, and for no other",
    judge: (profile, place, { findings }) => {
      const at = inside(place, "localhostProfile");
      for (const finding of profileFindings(profile, what, at)) findings.add(finding);
    },
  };
}

function profileFindings(profile: JsonObject, what: "seccomp" | "AppArmor", place: PodPlace): readonly Finding[] {
  const value = profile["localhostProfile"];
  const type = stringAt(profile, "type") ?? "";
  if (type !== "Localhost") {
    const isAllowed = isAbsent(value) || (what === "AppArmor" && !PROFILE_TYPES.includes(type));
    const detail = `can only be set when ${what} type is Localhost`;
    return isAllowed ? [] : [{ kind: "invalid", place, value, detail }];
  }
  if (isAbsent(value) || (what === "AppArmor" && value === "")) {
    return [{ kind: "required", place, detail: `must be set when ${what} type is Localhost` }];
  }
  return typeof value === "string" ? pathFindings(what, value, place) : [];
}

const PROFILE_BYTES_MAX = 4095;

function pathFindings(what: "seccomp" | "AppArmor", value: string, place: PodPlace): readonly Finding[] {
  if (what === "seccomp") {
    const { problems, allowed } = SYNTAX.relativePath;
    return problems(value).map((detail) => ({ kind: "invalid", place, value, detail, allowed }));
  }
  const padded: Finding = { kind: "invalid", place, value, detail: "must not be padded with whitespace" };
  const long: Finding = { kind: "tooLong", place, detail: `may not be more than ${PROFILE_BYTES_MAX} bytes` };
  const isLong = Buffer.byteLength(value) > PROFILE_BYTES_MAX;
  return [...(value.trim() === value ? [] : [padded]), ...(isLong ? [long] : [])];
}

const SYSCTL_CHARS_MAX = 253;
const SYSCTL = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const SYSCTL_PATTERN = /^[a-z0-9](?:[-_a-z0-9./]*[a-z0-9])?$/;

const SYSCTL_NAME: MemberRule = {
  says: "must be at most 253 lower-case letters, digits, '-', '_', '.' and '/', such as kernel.shmmax",
  check: (value, place, findings) => {
    if (typeof value !== "string") return;
    const segments = value.split(/[./]/);
    const isName =
      SYSCTL_PATTERN.test(value) && segments.every((one) => /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(one));
    if (isName && value.length <= SYSCTL_CHARS_MAX) return;
    const detail = `must have at most ${SYSCTL_CHARS_MAX} characters and match regex ^${SYSCTL}$`;
    findings.add({ kind: "invalid", place, value, detail, allowed: SYSCTL_NAME.says });
  },
};

/** Kernel parameters that every pod of a node shares in these namespaces. */
const SYSCTL_NAMESPACES = [
  { member: "hostNetwork", is: (name: string) => /^net(?:\.|$)/.test(name) },
  {
    member: "hostIPC",
    is: (name: string) =>
      /^kernel\.(?:sem|shmall|shmmax|shmmni|shm_rmid_forced|shm|msgmax|msgmnb|msgmni|msg)$/.test(name) ||
      /^fs\.mqueue(?:\.|$)/.test(name),
  },
] as const;

const SYSCTLS: ObjectRule = {
  says: "sysctls must be unique, and not those of a namespace that the pod shares with its node",
  judge: (context, place, { pod, findings }) => {
    const seen = new Set<string>();
    for (const [index, sysctl] of arrayAt(context, "sysctls").entries()) {
      const value = stringAt(sysctl, "name") ?? "";
      const at = inside(inside(inside(place, "sysctls"), index), "name");
      if (seen.has(value) && value !== "") {
        const allowed = "must be unique: another sysctl of the pod has this name";
        findings.add({ kind: "duplicate", place: at, value, detail: "", allowed });
      }
      seen.add(value);
      for (const { member, is } of SYSCTL_NAMESPACES) {
        if (pod.spec[member] !== true || !is(normalName(value))) continue;
        findings.add({ kind: "invalid", place: at, value, detail: `may not be specified when '${member}' is true` });
      }
    }
  },
};

/** With the separator that comes first, `.` or `/`, as `.`, and the other as `/`. */
function normalName(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== "/") return name;
  return name.replace(/[./]/g, (one) => (one === "/" ? "." : "/"));
}

const CONTEXT = { runAsUser: USER_ID, runAsGroup: USER_ID } as const;

const GROUPS: MemberRule = {
  says: `each ${USER_ID.says}`,
  check: (value, place, findings) => {
    if (!Array.isArray(value)) return;
    for (const [index, item] of value.entries()) USER_ID.check?.(item, inside(place, index), findings);
  },
};

export const SECURITY_RULES: TypeRules = {
  SecurityContext: {
    members: { ...CONTEXT, procMount: evenEmpty(oneOf("Default", "Unmasked")) },
    whole: [PROC_MOUNT, ESCALATION],
  },
  PodSecurityContext: {
    members: {
      ...CONTEXT,
      fsGroup: USER_ID,
      supplementalGroups: GROUPS,
      fsGroupChangePolicy: evenEmpty(oneOf("Always", "OnRootMismatch")),
      supplementalGroupsPolicy: evenEmpty(oneOf("Merge", "Strict")),
      seLinuxChangePolicy: evenEmpty(oneOf("MountOption", "Recursive")),
    },
    whole: [SYSCTLS],
  },
  SeccompProfile: {
    members: { type: required(oneOf(...PROFILE_TYPES), "type is required when seccompProfile is set") },
    whole: [localhostProfile("seccomp")],
  },
  AppArmorProfile: {
    members: { type: required(oneOf(...PROFILE_TYPES), "type is required when appArmorProfile is set") },
    whole: [localhostProfile("AppArmor")],
  },
  Sysctl: { members: { name: required(SYSCTL_NAME) } },
  WindowsSecurityContextOptions: WINDOWS_RULES,
};

/** What a pod may share with its node. */
export const HOST_RULE: ObjectRule = {
  says:
    "hostUsers: false excludes hostNetwork, hostPID, hostIPC and volumeDevices; " +
    "shareProcessNamespace excludes hostPID",
  judge: (spec, place, { findings }) => {
    if (spec["shareProcessNamespace"] === true && spec["hostPID"] === true) {
      const at = inside(place, "shareProcessNamespace");
      const detail = "ShareProcessNamespace and HostPID cannot both be enabled";
      const field = inside(inside(place, "securityContext"), "shareProcessNamespace");
      findings.add({ kind: "invalid", place: at, field, value: true, detail });
    }
    if (spec["hostUsers"] !== false) return;
    const detail = "when `hostUsers` is false";
    for (const member of ["hostNetwork", "hostPID", "hostIPC"]) {
      const field = inside(place, member === "hostNetwork" ? member : `H${member.slice(1)}`);
      if (spec[member] === true) findings.add({ kind: "forbidden", place: inside(place, member), field, detail });
    }
    for (const at of containersWith(spec, place, "volumeDevices"))
      findings.add({ kind: "forbidden", place: at, detail });
  },
};

/** The places of a list of containers that is not empty. */
function containersWith(spec: JsonObject, place: PodPlace, member: string): readonly PodPlace[] {
  return ["initContainers", "containers"].flatMap((list) =>
    arrayAt(spec, list).flatMap((container, index) => {
      const isUsed = isJsonObject(container) && arrayAt(container, member).length > 0;
      return isUsed ? [inside(inside(inside(place, list), index), member)] : [];
    }),
  );
}
