/** The rules for what containers mount, and for the block devices of their volumes. */
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import type { Finding } from "../finding.ts";
import { inside, type PodPlace } from "../place.ts";
import { type ObjectRule, unsupported } from "../rule.ts";
import { isAbsent, isEmpty } from "../set.ts";
import { SYNTAX } from "../syntax.ts";

const PROPAGATIONS = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE = ["Disabled", "Enabled", "IfPossible"];

type RuleContext = Parameters<ObjectRule["judge"]>[2];

/** The mounts or devices of a container, with their places. */
function partsOf(container: JsonObject, list: string, place: PodPlace) {
  const at = inside(place, list);
  return arrayAt(container, list).map((item, index) => ({
    item: isJsonObject(item) ? item : {},
    at: inside(at, index),
    list: at,
  }));
}

function valuesOf(container: JsonObject, list: string, member: string): ReadonlySet<string> {
  return new Set(arrayAt(container, list).map((one) => stringAt(one, member) ?? ""));
}

function invalid(place: PodPlace, value: string, detail: string): Finding {
  return { kind: "invalid", place, value, detail };
}

const MOUNTS: ObjectRule = {
  says:
    "mounts must name volumes of the pod, each at a path of its own that no device has; subPath and subPathExpr " +
    "must be relative, without '..', and only one of them set",
  judge: (container, place, { pod, findings }) => {
    if (arrayAt(container, "volumeMounts").length === 0) return;
    const others: Others = {
      names: valuesOf(container, "volumeDevices", "name"),
      paths: valuesOf(container, "volumeDevices", "devicePath"),
      seen: new Set(),
    };
    for (const { item, at, list } of partsOf(container, "volumeMounts", place)) {
      const name = stringAt(item, "name") ?? "";
      if (!pod.volumes.has(name)) findings.add(noVolume(inside(at, "name"), name));
      for (const finding of mountFindings(item, at, others)) findings.add(finding);
      judgeSubPaths(item, { at, list, findings });
    }
  },
};

/** The names and paths of the other list of a container, and the paths before in this one. */
type Others = { readonly names: ReadonlySet<string>; readonly paths: ReadonlySet<string>; readonly seen: Set<string> };

function mountFindings(mount: JsonObject, at: PodPlace, { names, paths, seen }: Others): readonly Finding[] {
  const name = stringAt(mount, "name") ?? "";
  const path = stringAt(mount, "mountPath") ?? "";
  const pathAt = inside(at, "mountPath");
  const found: Finding[] = [];
  if (seen.has(path) && path !== "") found.push({ ...invalid(pathAt, path, "must be unique"), allowed: UNIQUE_PATH });
  seen.add(path);
  if (names.has(name)) found.push(invalid(inside(at, "name"), name, "must not already exist in volumeDevices"));
  if (paths.has(path)) found.push(invalid(pathAt, path, "must not already exist as a path in volumeDevices"));
  return found;
}

const UNIQUE_PATH = "must be unique: another item of the list has this path";

function noVolume(place: PodPlace, value: string): Finding {
  return { kind: "notFound", place, value, detail: "", allowed: "must be the name of a volume of the pod" };
}

type MountPlace = { readonly at: PodPlace; readonly list: PodPlace; readonly findings: RuleContext["findings"] };

function judgeSubPaths(mount: JsonObject, { at, list, findings }: MountPlace): void {
  for (const member of ["subPath", "subPathExpr"]) {
    const value = stringAt(mount, member) ?? "";
    for (const detail of value === "" ? [] : SYNTAX.relativePath.problems(value)) {
      const { allowed } = SYNTAX.relativePath;
      findings.add({ kind: "invalid", place: inside(at, member), field: inside(list, member), value, detail, allowed });
    }
  }
  const expression = stringAt(mount, "subPathExpr") ?? "";
  if (expression === "" || isEmpty(mount["subPath"])) return;
  findings.add(invalid(inside(at, "subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive"));
}

const PROPAGATION: ObjectRule = {
  says:
    "mountPropagation must be Bidirectional, HostToContainer or None, and Bidirectional needs a privileged " +
    "container; " +
    "recursiveReadOnly must be Disabled, Enabled or IfPossible, and needs readOnly and no mountPropagation",
  judge: (container, place, { findings }) => {
    if (arrayAt(container, "volumeMounts").length === 0) return;
    const isPrivileged = objectAt(container, "securityContext")["privileged"] === true;
    for (const { item, at, list } of partsOf(container, "volumeMounts", place)) {
      judgePropagation(item, isPrivileged, { at, list, findings });
      judgeRecursive(item, { at, list, findings });
    }
  },
};

function judgePropagation(mount: JsonObject, isPrivileged: boolean, { at, list, findings }: MountPlace): void {
  const propagation = mount["mountPropagation"];
  if (typeof propagation !== "string") return;
  const field = inside(list, "mountPropagation");
  const place = inside(at, "mountPropagation");
  if (!PROPAGATIONS.includes(propagation)) findings.add({ ...unsupported(place, propagation, PROPAGATIONS), field });
  if (propagation !== "Bidirectional" || isPrivileged) return;
  const detail = "Bidirectional mount propagation is available only to privileged containers";
  findings.add({ kind: "forbidden", place, field, detail });
}

function judgeRecursive(mount: JsonObject, { at, list, findings }: MountPlace): void {
  const recursive = mount["recursiveReadOnly"];
  if (typeof recursive !== "string" || recursive === "Disabled") return;
  const place = inside(at, "recursiveReadOnly");
  const field = inside(list, "recursiveReadOnly");
  if (!RECURSIVE.includes(recursive)) {
    findings.add({ ...unsupported(place, recursive, RECURSIVE), field });
    return;
  }
  const forbidden = (detail: string) => findings.add({ kind: "forbidden", place, field, detail });
  if (mount["readOnly"] !== true) forbidden("may only be specified when readOnly is true");
  const propagation = mount["mountPropagation"];
  if (!isAbsent(propagation) && propagation !== "None") {
    forbidden("may only be specified when mountPropagation is None or not specified");
  }
}

const DEVICES: ObjectRule = {
  says: "devices must name volumes of the pod that are claims, each once and at a path of its own that no mount has",
  judge: (container, place, { pod, findings }) => {
    if (arrayAt(container, "volumeDevices").length === 0) return;
    const others: Others = {
      names: valuesOf(container, "volumeMounts", "name"),
      paths: valuesOf(container, "volumeMounts", "mountPath"),
      seen: new Set(),
    };
    const names = new Set<string>();
    for (const { item, at } of partsOf(container, "volumeDevices", place)) {
      const name = stringAt(item, "name") ?? "";
      const nameAt = inside(at, "name");
      const volume = pod.volumes.get(name);
      if (volume === undefined) findings.add(noVolume(nameAt, name));
      else if (isAbsent(volume["persistentVolumeClaim"]) && isAbsent(volume["ephemeral"])) {
        const only = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
        findings.add(invalid(nameAt, name, only));
      }
      if (names.has(name)) findings.add(invalid(nameAt, name, "must be unique"));
      names.add(name);
      for (const finding of deviceFindings(item, at, others)) findings.add(finding);
    }
  },
};

function deviceFindings(device: JsonObject, at: PodPlace, { names, paths, seen }: Others): readonly Finding[] {
  const name = stringAt(device, "name") ?? "";
  const path = stringAt(device, "devicePath") ?? "";
  const pathAt = inside(at, "devicePath");
  const found: Finding[] = [];
  if (seen.has(path) && path !== "") found.push(invalid(pathAt, path, "must be unique"));
  seen.add(path);
  if (names.has(name)) found.push(invalid(inside(at, "name"), name, "must not already exist in volumeMounts"));
  if (paths.has(path)) found.push(invalid(pathAt, path, "must not already exist as a path in volumeMounts"));
  return found;
}

export const DEVICE_RULE: ObjectRule = {
  says: "devicePath must not have a segment '..'",
  judge: (device, place, { findings }) => {
    const path = stringAt(device, "devicePath") ?? "";
    if (SYNTAX.noUpwardPath.problems(path).length === 0) return;
    findings.add(invalid(inside(place, "devicePath"), path, "can not contain backsteps ('..')"));
  },
};

/** The rules of a container about its mounts and devices. */
export const MOUNT_RULES: readonly ObjectRule[] = [MOUNTS, PROPAGATION, DEVICES];
