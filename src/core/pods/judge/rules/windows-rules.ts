/** The rules for pods on Windows. */
import { arrayAt, isJsonObject, type JsonObject, objectAt } from "../../../../runtime/json.ts";
import { inside, type PodPlace } from "../place.ts";
import { evenEmpty, type MemberRule, type ObjectRule, type TypeRules, text } from "../rule.ts";
import { isAbsent, isEmpty } from "../set.ts";
import { SYNTAX } from "../syntax.ts";

const SPEC_BYTES_MAX = 64 * 1024;
const DOMAIN_CHARS_MAX = 255;
const USER_CHARS_MAX = 104;
const NET_BIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DOMAIN_LABEL = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$/;
const LABEL_CHARS_MAX = 63;

const CREDENTIAL: MemberRule = {
  says: "must be a text of at most 64 KiB that is not empty",
  check: (value, place, findings) => {
    if (typeof value !== "string") return;
    const detail =
      value === "" ? "gmsaCredentialSpec cannot be an empty string" : "gmsaCredentialSpec size must be under 64 KiB";
    if (value === "" || Buffer.byteLength(value) > SPEC_BYTES_MAX)
      findings.add({ kind: "invalid", place, value, detail });
  },
};

const USER: MemberRule = {
  says: "must be USER or DOMAIN\\USER of Windows",
  check: (value, place, findings) => {
    if (typeof value !== "string") return;
    for (const problem of userProblems(value)) {
      findings.add({ kind: "invalid", place, value, detail: `runAsUserName${problem}` });
    }
  },
};

function userProblems(name: string): readonly string[] {
  if (name === "") return [" cannot be an empty string"];
  if (hasControl(name)) return [" cannot contain control characters"];
  const parts = name.split("\\");
  if (parts.length > 2) return [" cannot contain more than one backslash"];
  const user = parts.at(-1) ?? "";
  const domain = parts.length === 2 ? (parts[0] ?? "") : null;
  return [
    ...(domain === null ? [] : domainProblems(domain)),
    ...(user === "" ? ["'s User cannot be empty"] : []),
    ...(user.length > USER_CHARS_MAX ? ["'s User length must not be longer than 104 characters"] : []),
    ...(/^[. ]+$/.test(user) ? ["'s User cannot contain only periods or spaces"] : []),
    ...(/["/\\:;|=,+*?<>@[\]]/.test(user)
      ? ["'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"]
      : []),
  ];
}

function hasControl(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code < 32 || code === 127) return true;
  }
  return false;
}

function domainProblems(domain: string): readonly string[] {
  const long = domain.length > DOMAIN_CHARS_MAX ? ["'s Domain length must be under 256 characters"] : [];
  const isDns = domain.split(".").every((label) => label.length <= LABEL_CHARS_MAX && DOMAIN_LABEL.test(label));
  if (NET_BIOS.test(domain) || isDns) return long;
  return [...long, "'s Domain doesn't match the NetBios nor the DNS format"];
}

export const WINDOWS_RULES: TypeRules[string] = {
  members: {
    gmsaCredentialSpecName: evenEmpty(text(SYNTAX.subdomain)),
    gmsaCredentialSpec: evenEmpty(CREDENTIAL),
    runAsUserName: evenEmpty(USER),
  },
};

type Containers = readonly { readonly container: JsonObject; readonly at: PodPlace }[];

function containersOf(spec: JsonObject, place: PodPlace): Containers {
  return ["initContainers", "containers"].flatMap((list) =>
    arrayAt(spec, list).map((one, index) => ({
      container: isJsonObject(one) ? one : {},
      at: inside(inside(place, list), index),
    })),
  );
}

const hostProcess = (object: JsonObject) =>
  objectAt(objectAt(object, "securityContext"), "windowsOptions")["hostProcess"];

function hasHostProcess(spec: JsonObject): boolean {
  return ["initContainers", "containers"].some((list) =>
    arrayAt(spec, list).some((one) => isJsonObject(one) && hostProcess(one) !== undefined),
  );
}

/** HostProcess containers have the network of their node, and no others beside them. */
const HOST_PROCESS: ObjectRule = {
  says: "all containers of a pod or none must be HostProcess containers, and those need hostNetwork",
  judge: (spec, place, { findings }) => {
    const own = hostProcess(spec);
    if (own === undefined && !hasHostProcess(spec)) return;
    const containers = containersOf(spec, place);
    let count = 0;
    for (const { container, at } of containers) {
      const mine = hostProcess(container);
      const value = mine ?? own;
      if (value === true) count += 1;
      if (isAbsent(own) || isAbsent(mine) || own === mine) continue;
      const detail = `pod hostProcess value must be identical if both are specified, was ${String(own)}`;
      const where = inside(inside(inside(at, "securityContext"), "windowsOptions"), "hostProcess");
      findings.add({ kind: "invalid", place: where, value: mine, detail });
    }
    if (count === 0) return;
    if (count !== containers.length) {
      const detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
      findings.add({ kind: "invalid", place, value: "", detail });
    }
    if (spec["hostNetwork"] === true) return;
    const detail = "hostNetwork must be true if pod contains any hostProcess containers";
    findings.add({ kind: "invalid", place: inside(place, "hostNetwork"), value: false, detail });
  },
};

/** What only one of the operating systems has: members of a security context. */
const NOT_ON_WINDOWS = {
  pod: `appArmorProfile seLinuxOptions seccompProfile fsGroup fsGroupChangePolicy sysctls runAsUser runAsGroup
    supplementalGroups supplementalGroupsPolicy seLinuxChangePolicy`.split(/\s+/),
  container: `appArmorProfile seLinuxOptions seccompProfile capabilities readOnlyRootFilesystem privileged
    allowPrivilegeEscalation procMount runAsUser runAsGroup`.split(/\s+/),
  spec: ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"],
};

const OTHER_SYSTEM: ObjectRule = {
  says: "a pod whose os is linux must not have windowsOptions; one whose os is windows must have nothing of Linux",
  judge: (spec, place, { pod, findings }) => {
    if (pod.os !== "linux" && pod.os !== "windows") return;
    const names =
      pod.os === "linux" ? { pod: ["windowsOptions"], container: ["windowsOptions"], spec: [] } : NOT_ON_WINDOWS;
    const what =
      pod.os === "linux" ? "windows options cannot be set for a linux pod" : "cannot be set for a windows pod";
    const judge = (object: JsonObject, at: PodPlace, members: readonly string[]) => {
      for (const member of members) {
        const value = object[member];
        const isUnset =
          member === "hostPID" || member === "hostIPC" || member === "sysctls" ? isEmpty(value) : isAbsent(value);
        if (!isUnset) findings.add({ kind: "forbidden", place: inside(at, member), detail: what });
      }
    };
    judge(objectAt(spec, "securityContext"), inside(place, "securityContext"), names.pod);
    judge(spec, place, names.spec);
    for (const { container, at } of containersOf(spec, place)) {
      judge(objectAt(container, "securityContext"), inside(at, "securityContext"), names.container);
    }
  },
};

export const SYSTEM_RULES: readonly ObjectRule[] = [HOST_PROCESS, OTHER_SYSTEM];
