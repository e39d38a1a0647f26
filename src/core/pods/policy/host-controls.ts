/** The controls that keep pods apart from their node: its namespaces, files, ports and processes. */
import { type Json, stringAt } from "../../../runtime/json.ts";
import {
  containersOf,
  isOn,
  isSet,
  type PodPart,
  PROBES,
  partAt,
  partsAt,
  securityContextsOf,
  textOf,
  volumesOf,
} from "../pod-parts.ts";
import { type AllowanceKind, hostPathNeed } from "./allowances.ts";
import type { Control, PodNeed } from "./control.ts";
import { normalPath } from "./host-path.ts";

const HOST_NAMESPACES = [
  { member: "hostNetwork", kind: "host-network", what: "the network" },
  { member: "hostPID", kind: "host-pid", what: "the processes" },
  { member: "hostIPC", kind: "host-ipc", what: "the IPC" },
] as const satisfies readonly { readonly member: string; readonly kind: AllowanceKind; readonly what: string }[];

const hostNamespaces: Control = {
  id: "hostNamespaces",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    HOST_NAMESPACES.filter(({ member }) => isOn(spec[member])).map(({ member, kind, what }) => ({
      path: `spec.${member}`,
      what: `uses ${what} of the node`,
      needs: { kind, value: "" },
    })),
};

const privileged: Control = {
  id: "privileged",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    containersOf(spec)
      .map((container) => partAt(container, "securityContext"))
      .filter(({ value }) => isOn(value["privileged"]))
      .map(({ path }) => ({
        path: `${path}.privileged`,
        what: "makes the container privileged",
        needs: { kind: "privileged", value: "" },
      })),
};

const windowsHostProcess: Control = {
  id: "windowsHostProcess",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    securityContextsOf(spec)
      .map((context) => partAt(context, "windowsOptions"))
      .filter(({ value }) => isOn(value["hostProcess"]))
      .map(({ path }) => ({
        path: `${path}.hostProcess`,
        what: "makes a process of the node",
        needs: { kind: "host-process", value: "" },
      })),
};

const hostPathVolumes: Control = {
  id: "hostPathVolumes",
  level: "baseline",
  judges: "set",
  check: ({ spec }) => {
    const mounts = containersOf(spec).flatMap((container) => partsAt(container, "volumeMounts"));
    const written = new Set(mounts.filter(({ value }) => value["readOnly"] !== true).map(({ value }) => value["name"]));
    return volumesOf(spec)
      .filter(({ value }) => isSet(value["hostPath"]))
      .map((volume) => {
        const { path, value } = partAt(volume, "hostPath");
        const folder = normalPath(stringAt(value, "path") ?? "") ?? "";
        const writes = written.has(volume.value["name"]) || creates(value["type"]);
        return {
          path,
          what: `mounts ${folder === "" ? "a path" : folder} of the node${writes ? "" : " read-only"}`,
          needs: hostPathNeed(folder, writes ? "write" : "read"),
        };
      });
  },
};

/** Types such as `DirectoryOrCreate` change the node even if every mount is read-only. */
function creates(type: Json | undefined): boolean {
  return isSet(type) && textOf(type).includes("Create");
}

const hostPorts: Control = {
  id: "hostPorts",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    containersOf(spec)
      .flatMap((container) => partsAt(container, "ports"))
      .filter(({ value }) => isSet(value["hostPort"]) && value["hostPort"] !== 0)
      .map(({ path, value }) => ({
        path: `${path}.hostPort`,
        what: `takes the port ${textOf(value["hostPort"])} of the node`,
        // In the network of the node, a container can listen on any of its ports.
        needs: isOn(spec["hostNetwork"])
          ? { kind: "host-network", value: "" }
          : { kind: "host-port", value: textOf(value["hostPort"]) },
      })),
};

const HOOKS = ["postStart", "preStop"];
const HANDLERS_WITH_HOST = ["httpGet", "tcpSocket"];

/** The kubelet, which is in the node's network, would send requests to any host that a probe or a hook names. */
const hostProbesAndHostLifecycle: Control = {
  id: "hostProbesAndHostLifecycle",
  level: "baseline",
  judges: "set",
  check: ({ spec }) =>
    containersOf(spec)
      .flatMap((container) => [
        ...PROBES.map((probe) => partAt(container, probe)),
        ...HOOKS.map((hook) => partAt(partAt(container, "lifecycle"), hook)),
      ])
      .flatMap((handler) => HANDLERS_WITH_HOST.map((member) => partAt(handler, member)))
      .flatMap(hostNeed),
};

function hostNeed({ path, value }: PodPart): readonly PodNeed[] {
  const { host } = value;
  if (!isSet(host) || host === "") return [];
  const what = `makes the node send requests to ${textOf(host)}`;
  return [{ path: `${path}.host`, what, needs: { kind: "probe-host", value: "" } }];
}

export const HOST_CONTROLS: readonly Control[] = [
  hostNamespaces,
  privileged,
  windowsHostProcess,
  hostPathVolumes,
  hostPorts,
  hostProbesAndHostLifecycle,
];
