/** The controls of the level restricted alone. */
import { isJsonObject, type JsonObject } from "../../../runtime/json.ts";
import {
  containersOf,
  isSet,
  type PodContainer,
  partAt,
  securityContextsOf,
  textOf,
  textsAt,
  volumesOf,
} from "../pod-parts.ts";
import type { Control, PodNeed } from "./control.ts";
import { hasOwnUsers, isForWindows } from "./exempt-pods.ts";
import { addedCapabilities, CONFINED, procMounts } from "./kernel-controls.ts";
import { volumeTypes } from "./volume-types.ts";

/** Volumes that hold nothing but what the namespace has, or what an admin has set up for it. */
const RESTRICTED_VOLUMES: ReadonlySet<string> = new Set(
  "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split(" "),
);

const restrictedVolumes: Control = {
  id: "restrictedVolumes",
  level: "restricted",
  judges: "set",
  check: ({ spec }) =>
    // A hostPath volume needs an allowance of its own at every level.
    volumeTypes(volumesOf(spec), (type) => type !== "hostPath" && !RESTRICTED_VOLUMES.has(type)),
};

const procMountRestricted: Control = {
  id: "procMount_restricted",
  level: "restricted",
  judges: "set",
  check: ({ spec }) => procMounts(spec),
};

const capabilitiesAdded: Control = {
  id: "capabilities_restricted",
  level: "restricted",
  judges: "set",
  check: ({ spec }) =>
    linuxContainersOf(spec).flatMap((one) => addedCapabilities(one, (name) => name === "NET_BIND_SERVICE")),
};

const capabilitiesKept: Control = {
  id: "capabilities_restricted",
  level: "restricted",
  judges: "missing",
  check: ({ spec }) =>
    linuxContainersOf(spec)
      .map((container) => partAt(partAt(container, "securityContext"), "capabilities"))
      .filter(({ value }) => !textsAt(value, "drop").includes("ALL"))
      .map(({ path }) => ({
        path: `${path}.drop`,
        what: "must have ALL, or the container keeps the runtime's capabilities",
        needs: { kind: "default-capabilities", value: "" },
      })),
};

const allowPrivilegeEscalation: Control = {
  id: "allowPrivilegeEscalation",
  level: "restricted",
  judges: "missing",
  check: ({ spec }) =>
    linuxContainersOf(spec)
      .map((container) => partAt(container, "securityContext"))
      .filter(({ value }) => value["allowPrivilegeEscalation"] !== false)
      .map(({ path }) => ({
        path: `${path}.allowPrivilegeEscalation`,
        what: "must be false, or the container can gain privileges",
        needs: { kind: "privilege-escalation", value: "" },
      })),
};

/** A profile that confines nothing needs the same as at level baseline. A container without a profile needs less. */
const seccompProfile: Control = {
  id: "seccompProfile_restricted",
  level: "restricted",
  judges: "missing",
  check: ({ spec }) =>
    linuxContainersOf(spec)
      .filter(lacks(spec, "seccompProfile", isConfined))
      .map((container) => {
        const { path, value } = partAt(container, "securityContext");
        return {
          path: `${path}.seccompProfile.type`,
          what: "must be RuntimeDefault or Localhost, here or for the pod",
          needs: { kind: isSet(value["seccompProfile"]) ? "unconfined-seccomp" : "default-seccomp", value: "" },
        };
      }),
};

function isConfined(profile: JsonObject[string]): boolean {
  return isJsonObject(profile) && CONFINED.includes(profile["type"]);
}

const runAsNonRoot: Control = {
  id: "runAsNonRoot",
  level: "restricted",
  judges: "missing",
  check: ({ spec }) => {
    if (hasOwnUsers(spec)) return [];
    const need = (path: string): PodNeed => ({
      path: `${path}.securityContext.runAsNonRoot`,
      what: "must be true, here or for the pod, or the container can run as root",
      needs: { kind: "run-as-root", value: "" },
    });
    const podSays = partAt({ path: "spec", value: spec }, "securityContext").value["runAsNonRoot"];
    const pod = isSet(podSays) && podSays !== true ? [need("spec")] : [];
    const lacking = containersOf(spec).filter(lacks(spec, "runAsNonRoot", (value) => value === true));
    return [...pod, ...lacking.map(({ path }) => need(path))];
  },
};

const runAsUser: Control = {
  id: "runAsUser",
  level: "restricted",
  judges: "set",
  check: ({ spec }) =>
    hasOwnUsers(spec)
      ? []
      : securityContextsOf(spec)
          .filter(({ value }) => isSet(value["runAsUser"]) && !isOtherUser(value["runAsUser"]))
          .map(({ path, value }) => ({
            path: `${path}.runAsUser`,
            what: `runs as the user ${textOf(value["runAsUser"])}`,
            needs: { kind: "run-as-root", value: "" },
          })),
};

function isOtherUser(user: unknown): boolean {
  return typeof user === "number" && user >= 1;
}

/** The containers of a pod that runs on Linux. The controls that call this do not judge pods for Windows. */
function linuxContainersOf(spec: JsonObject): readonly PodContainer[] {
  return isForWindows(spec) ? [] : containersOf(spec);
}

/** Tells whether a container's own value is wrong, or the pod's is wrong or absent and the container has none. */
function lacks(
  spec: JsonObject,
  member: string,
  isRight: (value: JsonObject[string]) => boolean,
): (container: PodContainer) => boolean {
  const ofPod = isRight(partAt({ path: "spec", value: spec }, "securityContext").value[member]);
  return (container) => {
    const own = partAt(container, "securityContext").value[member];
    return isSet(own) ? !isRight(own) : !ofPod;
  };
}

export const RESTRICTED_CONTROLS: readonly Control[] = [
  restrictedVolumes,
  procMountRestricted,
  capabilitiesAdded,
  capabilitiesKept,
  allowPrivilegeEscalation,
  runAsNonRoot,
  runAsUser,
  seccompProfile,
];
