/**
 * The rules of Gangway beyond Kubernetes' standard. They hold at the levels baseline and restricted. Each stops a
 * template from doing, without an admin, something that reaches beyond its namespace.
 */

import { isSet, type PodPart, partAt, partsAt, textOf, textsAt, volumesOf } from "../pod-parts.ts";
import type { Control, PodNeed } from "./control.ts";
import { volumeTypes } from "./volume-types.ts";

/** Volumes whose source is made in the namespace, or set up by an admin. A hostPath volume has a control of its own. */
const VOLUMES_OF_NAMESPACE: ReadonlySet<string> = new Set(
  "configMap downwardAPI emptyDir ephemeral hostPath image persistentVolumeClaim projected secret".split(" "),
);

/** The node would mount whatever the template names, with a driver that the template names. */
const directVolumes: Control = {
  id: "directVolumes",
  level: "baseline",
  judges: "set",
  check: ({ spec }) => volumeTypes(volumesOf(spec), (type) => !VOLUMES_OF_NAMESPACE.has(type)),
};

/** Taints that keep users' pods from the nodes of the control plane. */
const CONTROL_PLANE = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/** Taints keep pods away. A toleration without a key ignores them all. */
const tolerations: Control = {
  id: "tolerations",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    partsAt({ path: "spec", value: spec }, "tolerations").flatMap(({ path, value }): readonly PodNeed[] => {
      const key = value["key"];
      if (!isSet(key) || key === "")
        return [{ path, what: "tolerates every taint", needs: { kind: "toleration", value: "*" } }];
      if (!CONTROL_PLANE.includes(textOf(key))) return [];
      return [
        { path, what: "tolerates the nodes of the control plane", needs: { kind: "toleration", value: textOf(key) } },
      ];
    }),
};

/** Kubernetes' own classes begin so. Users' classes cannot. */
const SYSTEM_CLASS = "system-";

/** The highest priority that classes of users can have. */
const USER_PRIORITY_MAX = 1_000_000_000;

/** Pods of a system class push away all others, and are evicted last. */
const priorityClasses: Control = {
  id: "priorityClasses",
  level: "baseline",
  judges: "set",
  check: ({ spec }) => {
    const { priorityClassName: name, priority } = spec;
    const isSystem = isSet(name) && textOf(name).startsWith(SYSTEM_CLASS);
    const isHigh = isSet(priority) && !(typeof priority === "number" && priority <= USER_PRIORITY_MAX);
    return [
      ...(isSystem ? [{ member: "priorityClassName", value: textOf(name) }] : []),
      ...(isHigh ? [{ member: "priority", value: textOf(priority) }] : []),
    ].map(({ member, value }) => ({
      path: `spec.${member}`,
      what: `has a priority of the system: ${value}`,
      needs: { kind: "priority-class", value },
    }));
  },
};

const POD_AFFINITIES = ["podAffinity", "podAntiAffinity"];
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** Anti-affinity also keeps the pods that it selects away from this pod's nodes. */
const podAffinity: Control = {
  id: "podAffinityNamespaces",
  level: "baseline",
  judges: "set",
  check: ({ spec }) => {
    const affinity = partAt({ path: "spec", value: spec }, "affinity");
    return POD_AFFINITIES.map((member) => partAt(affinity, member))
      .flatMap((one) => [
        ...partsAt(one, REQUIRED),
        ...partsAt(one, PREFERRED).map((weighted) => partAt(weighted, "podAffinityTerm")),
      ])
      .flatMap(otherNamespaces);
  },
};

function otherNamespaces({ path, value }: PodPart): readonly PodNeed[] {
  const named: readonly [string, boolean][] = [
    ["namespaces", textsAt(value, "namespaces").length > 0],
    ["namespaceSelector", isSet(value["namespaceSelector"])],
  ];
  return named
    .filter(([, isNamed]) => isNamed)
    .map(([member]) => ({
      path: `${path}.${member}`,
      what: "selects pods of other namespaces",
      needs: { kind: "other-namespaces", value: "" },
    }));
}

/** Devices of a claim are no resources of a container, so no quota would count them. */
const resourceClaims: Control = {
  id: "resourceClaims",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    partsAt({ path: "spec", value: spec }, "resourceClaims").map(({ path }) => ({
      path,
      what: "claims devices that no quota counts",
      needs: { kind: "resource-claims", value: "" },
    })),
};

export const OWN_RULES: readonly Control[] = [directVolumes, tolerations, priorityClasses, podAffinity, resourceClaims];
