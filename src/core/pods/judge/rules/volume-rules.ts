/** The rules for volumes and their sources. Source: `validateVolumeSource` of Kubernetes. */
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import type { Finding } from "../finding.ts";
import { inside, type PodPlace } from "../place.ts";
import { membersOf } from "../pod-types.ts";
import {
  evenEmpty,
  FILE_MODE,
  type MemberRule,
  type ObjectRule,
  oneOf,
  range,
  required,
  type TypeRules,
  text,
} from "../rule.ts";
import { isAbsent, isEmpty, setAmong } from "../set.ts";
import { SYNTAX } from "../syntax.ts";
import { CLAIM_RULES } from "./claim-rules.ts";
import { PROJECTION_RULES } from "./projection-rules.ts";

const SOURCES = [...membersOf("Volume").keys()].filter((name) => name !== "name");
const PARTITION = range(0, 255);
const LUN = range(0, 255);

const ONE_SOURCE: ObjectRule = {
  says: "must have at most one source; without any, it is an emptyDir",
  judge: (volume, place, { findings }) => {
    for (const member of setAmong(volume, SOURCES).slice(1)) {
      const detail = "may not specify more than 1 volume type";
      findings.add({ kind: "forbidden", place: inside(place, member), detail });
    }
  },
};

const SIZE_LIMIT: ObjectRule = {
  says: "sizeLimit must not be negative",
  judge: (emptyDir, place, { findings }) => {
    const limit = emptyDir["sizeLimit"];
    if (!String(limit).trim().startsWith("-") || /^\s*-[0.]*[a-zA-Z]*$/.test(String(limit))) return;
    const detail = "SizeLimit field must be a valid resource quantity";
    findings.add({ kind: "forbidden", place: inside(place, "sizeLimit"), detail, allowed: "must not be negative" });
  },
};

/** A member that must be set and begin with a slash. */
const ABSOLUTE: MemberRule = {
  says: "must be an absolute path",
  check: (value, place, findings) => {
    if (typeof value !== "string" || value.startsWith("/")) return;
    findings.add({ kind: "invalid", place, value, detail: "must be an absolute path" });
  },
};

/** Requires the name of a secret, if it is referred to. */
function secretName(member: string): ObjectRule {
  return {
    says: `${member} must have a name`,
    judge: (source, place, { findings }) => {
      if (isAbsent(source[member]) || !isEmpty(objectAt(source, member)["name"])) return;
      findings.add({ kind: "required", place: inside(inside(place, member), "name"), detail: "" });
    },
  };
}

const ISCSI_NAME = /^(?:iqn|eui|naa)/;
const ISCSI_FORMS = [
  ["iqn", /^iqn\.\d{4}-\d{2}\.[0-9A-Za-z.-]+:[^,;*&$|\s]+$/],
  ["eui", /^eui.[0-9A-Za-z]{16}$/],
  ["naa", /^naa.[0-9A-Za-z]{32}$/],
] as const;

const ISCSI_SYNTAX: MemberRule = {
  says: "must be a name that begins with iqn, eui or naa",
  check: (value, place, findings) => {
    if (typeof value !== "string") return;
    const form = ISCSI_FORMS.find(([start]) => value.startsWith(start));
    const detail = ISCSI_NAME.test(value)
      ? "must be valid format"
      : "must be valid format starting with iqn, eui, or naa";
    if (form === undefined || !form[1].test(value)) findings.add({ kind: "invalid", place, value, detail });
  },
};

const ISCSI_TARGET_CHARS_MAX = 64;

const ISCSI: ObjectRule = {
  says: "CHAP needs a secretRef; with an initiatorName, volume name and targetPortal have at most 63 characters in all",
  judge: (source, place, { pod, findings }) => {
    const hasChap = source["chapAuthDiscovery"] === true || source["chapAuthSession"] === true;
    if (hasChap && isAbsent(source["secretRef"])) {
      findings.add({ kind: "required", place: inside(place, "secretRef"), detail: "" });
    }
    if (isAbsent(source["initiatorName"])) return;
    const name = volumeName(place, pod.spec);
    const portal = stringAt(source, "targetPortal") ?? "";
    if (`${name}:${portal}`.length <= ISCSI_TARGET_CHARS_MAX) return;
    const detail =
      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters " +
      "if iscsi.initiatorName is specified.";
    findings.add({ kind: "invalid", place: inside(place?.up ?? null, "name"), value: name, detail });
  },
};

/** The name of the volume that a source is of. */
export function volumeName(source: PodPlace, spec: JsonObject): string {
  const index = source?.up?.step;
  return typeof index === "number" ? (stringAt(arrayAt(spec, "volumes")[index], "name") ?? "") : "";
}

const FC: ObjectRule = {
  says: "must have either targetWWNs, with a lun from 0 to 255, or wwids",
  judge: (source, place, { findings }) => {
    const names = arrayAt(source, "targetWWNs");
    const ids = arrayAt(source, "wwids");
    const at = inside(place, "targetWWNs");
    if (names.length + ids.length === 0) {
      const detail = "must specify either targetWWNs or wwids, but not both";
      findings.add({ kind: "required", place: at, detail });
    } else if (names.length > 0 && ids.length > 0) {
      const detail = "targetWWNs and wwids can not be specified simultaneously";
      findings.add({ kind: "invalid", place: at, value: names, detail });
    }
    if (names.length === 0) return;
    const lun = source["lun"];
    const lunAt = inside(place, "lun");
    if (isAbsent(lun))
      findings.add({ kind: "required", place: lunAt, detail: "lun is required if targetWWNs is specified" });
    else LUN.check?.(lun, lunAt, findings);
  },
};

const FLOCKER: ObjectRule = {
  says: "must have either a datasetName, without '/', or a datasetUUID",
  judge: (source, place, { findings }) => {
    const name = stringAt(source, "datasetName") ?? "";
    const hasId = !isEmpty(source["datasetUUID"]);
    if (name === "" && !hasId) {
      findings.add({ kind: "required", place, detail: "one of datasetName and datasetUUID is required" });
    } else if (name !== "" && hasId) {
      const detail = "datasetName and datasetUUID can not be specified simultaneously";
      findings.add({ kind: "invalid", place, value: "resource", detail });
    }
    if (!name.includes("/")) return;
    findings.add({ kind: "invalid", place: inside(place, "datasetName"), value: name, detail: "must not contain '/'" });
  },
};

const TENANT_CHARS_MAX = 64;
const PAIRS = "must be a host:port pair or multiple pairs separated by commas";

const QUOBYTE: ObjectRule = {
  says: `registry ${PAIRS}; tenant has at most ${TENANT_CHARS_MAX} characters`,
  judge: (source, place, { findings }) => {
    const registry = stringAt(source, "registry") ?? "";
    const at = inside(place, "registry");
    if (registry === "") findings.add({ kind: "required", place: at, detail: PAIRS });
    else if ((stringAt(source, "tenant") ?? "").length > TENANT_CHARS_MAX) {
      const detail = "must be a UUID and may not exceed a length of 64 characters";
      findings.add({ kind: "required", place: inside(place, "tenant"), detail });
    } else if (!registry.split(",").every(isHostPort)) {
      findings.add({ kind: "invalid", place: at, value: registry, detail: PAIRS });
    }
  },
};

/** Source: Go's `net.SplitHostPort`. */
function isHostPort(pair: string): boolean {
  return /^(?:[^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair);
}

const FLEX: ObjectRule = {
  says: "options must not have keys of the domains kubernetes.io and k8s.io",
  judge: (source, place, { findings }) => {
    for (const key of Object.keys(objectAt(source, "options"))) {
      const domain = `.${(key.split("/", 1)[0] ?? "").toLowerCase()}`;
      if (!domain.endsWith(".kubernetes.io") && !domain.endsWith(".k8s.io")) continue;
      const detail = "kubernetes.io and k8s.io namespaces are reserved";
      findings.add({ kind: "invalid", place: inside(inside(place, "options"), { key }), value: key, detail });
    }
  },
};

const MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

const AZURE_DISK: ObjectRule = {
  says: "diskURI begins with /subscriptions/ for the kind Managed, and with https:// for the other kinds",
  judge: (source, place, { findings }) => {
    const uri = stringAt(source, "diskURI") ?? "";
    // Kubernetes takes an omitted kind for Shared.
    const isManaged = source["kind"] === "Managed";
    if (uri.startsWith(isManaged ? "/subscriptions/" : "https://")) return;
    const form = isManaged ? MANAGED_DISK : BLOB_DISK;
    const detail = `supported values: ${JSON.stringify(form)}`;
    findings.add({
      kind: "unsupported",
      place: inside(place, "diskURI"),
      value: uri,
      detail,
      allowed: `must be ${form}`,
    });
  },
};

const CSI_DRIVER: MemberRule = {
  says: "must be at most 63 letters, digits, '-' and '.', with a letter or digit at both ends",
  check: (value, place, findings) => {
    if (typeof value !== "string") return;
    if (value.length > 63) findings.add({ kind: "tooLong", place, detail: "may not be more than 63 bytes" });
    for (const detail of SYNTAX.subdomain.problems(value.toLowerCase())) {
      findings.add({ kind: "invalid", place, value, detail, allowed: SYNTAX.subdomain.allowed });
    }
  },
};

const CSI_SECRET: ObjectRule = {
  says: "nodePublishSecretRef must have a name: a DNS subdomain",
  judge: (source, place, { findings }) => {
    if (isAbsent(source["nodePublishSecretRef"])) return;
    const name = stringAt(objectAt(source, "nodePublishSecretRef"), "name") ?? "";
    const at = inside(inside(place, "nodePublishSecretRef"), "name");
    if (name === "") findings.add({ kind: "required", place: at, detail: "" });
    for (const detail of name === "" ? [] : SYNTAX.subdomain.problems(name)) {
      const finding: Finding = { kind: "invalid", place: at, value: name, detail, allowed: SYNTAX.subdomain.allowed };
      findings.add({ ...finding, field: inside(place, "name") });
    }
  },
};

const FILE_REF: ObjectRule = {
  says: "must have either a fieldRef or a resourceFieldRef",
  judge: (file, place, { findings }) => {
    const count = setAmong(file, ["fieldRef", "resourceFieldRef"]).length;
    const field = place?.up?.up ?? place;
    if (count === 0) {
      findings.add({ kind: "required", place, field, detail: "one of fieldRef and resourceFieldRef is required" });
    } else if (count === 2) {
      const detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
      findings.add({ kind: "invalid", place, field, value: "resource", detail });
    }
  },
};

const NAME_PROBLEM: ObjectRule = {
  says: "the claim of an ephemeral volume, POD-VOLUME, must be a DNS subdomain",
  judge: (_source, place, { pod, findings }) => {
    const name = volumeName(place, pod.spec);
    if (pod.name === "" || name === "") return;
    const claim = `${pod.name}-${name}`;
    for (const problem of SYNTAX.subdomain.problems(claim)) {
      const detail = `PVC name ${JSON.stringify(claim)}: ${problem}`;
      findings.add({ kind: "invalid", place: inside(place?.up ?? null, "name"), value: name, detail });
    }
  },
};

const CLAIM_NAMES: ObjectRule = {
  says: "a persistentVolumeClaim must not be the claim of an ephemeral volume of the pod",
  judge: (source, place, { pod, findings }) => {
    const name = stringAt(source, "claimName") ?? "";
    if (pod.name === "" || !name.startsWith(`${pod.name}-`)) return;
    const volume = pod.volumes.get(name.slice(pod.name.length + 1));
    if (volume === undefined || isAbsent(volume["ephemeral"])) return;
    const detail = "must not reference a PVC that gets created for an ephemeral volume";
    findings.add({ kind: "invalid", place: inside(place, "claimName"), value: name, detail });
  },
};

/** The names of a pod's volumes differ. */
export const VOLUME_NAMES: ObjectRule = {
  says: "names of volumes must be unique",
  judge: (spec, place, { findings }) => {
    const seen = new Set<string>();
    for (const [index, volume] of arrayAt(spec, "volumes").entries()) {
      const name = (isJsonObject(volume) ? stringAt(volume, "name") : undefined) ?? "";
      if (name !== "" && seen.has(name)) {
        const at = inside(inside(inside(place, "volumes"), index), "name");
        const allowed = "must be unique: another volume of the pod has this name";
        findings.add({ kind: "duplicate", place: at, value: name, detail: "", allowed });
      }
      seen.add(name);
    }
  },
};

const FILES = { members: { defaultMode: FILE_MODE } };
const SECRET_VOLUME = { members: { secretName: required(), defaultMode: FILE_MODE } };

export const VOLUME_RULES: TypeRules = {
  Volume: { members: { name: required(text(SYNTAX.label)) }, whole: [ONE_SOURCE] },
  EmptyDirVolumeSource: { whole: [SIZE_LIMIT] },
  HostPathVolumeSource: {
    members: {
      path: required(text(SYNTAX.noUpwardPath)),
      type: oneOf("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
    },
  },
  GitRepoVolumeSource: { members: { repository: required(), directory: text(SYNTAX.relativePath) } },
  GCEPersistentDiskVolumeSource: { members: { pdName: required(), partition: PARTITION } },
  AWSElasticBlockStoreVolumeSource: { members: { volumeID: required(), partition: PARTITION } },
  SecretVolumeSource: SECRET_VOLUME,
  ConfigMapVolumeSource: { members: { name: required(), defaultMode: FILE_MODE } },
  DownwardAPIVolumeSource: FILES,
  DownwardAPIVolumeFile: { members: { path: required(text(SYNTAX.filePath)), mode: FILE_MODE }, whole: [FILE_REF] },
  KeyToPath: { members: { key: required(), path: required(text(SYNTAX.filePath)), mode: FILE_MODE } },
  NFSVolumeSource: { members: { server: required(), path: required(ABSOLUTE) } },
  ISCSIVolumeSource: {
    members: {
      targetPortal: required(),
      iqn: required(ISCSI_SYNTAX),
      lun: LUN,
      initiatorName: evenEmpty(ISCSI_SYNTAX),
    },
    whole: [ISCSI],
  },
  GlusterfsVolumeSource: { members: { endpoints: required(), path: required() } },
  FlockerVolumeSource: { whole: [FLOCKER] },
  PersistentVolumeClaimVolumeSource: { members: { claimName: required() }, whole: [CLAIM_NAMES] },
  RBDVolumeSource: { members: { monitors: required(), image: required() } },
  CinderVolumeSource: { members: { volumeID: required() }, whole: [secretName("secretRef")] },
  CephFSVolumeSource: { members: { monitors: required() } },
  QuobyteVolumeSource: { members: { volume: required() }, whole: [QUOBYTE] },
  FCVolumeSource: { whole: [FC] },
  FlexVolumeSource: { members: { driver: required() }, whole: [FLEX] },
  AzureFileVolumeSource: { members: { secretName: required(), shareName: required() } },
  AzureDiskVolumeSource: {
    members: {
      diskName: required(),
      diskURI: required(),
      cachingMode: evenEmpty(oneOf("None", "ReadOnly", "ReadWrite")),
      kind: evenEmpty(oneOf("Dedicated", "Managed", "Shared")),
    },
    whole: [AZURE_DISK],
  },
  VsphereVirtualDiskVolumeSource: { members: { volumePath: required() } },
  PhotonPersistentDiskVolumeSource: { members: { pdID: required() } },
  PortworxVolumeSource: { members: { volumeID: required() } },
  ScaleIOVolumeSource: { members: { gateway: required(), system: required(), volumeName: required() } },
  StorageOSVolumeSource: {
    members: { volumeName: required(text(SYNTAX.label)), volumeNamespace: text(SYNTAX.label) },
    whole: [secretName("secretRef")],
  },
  CSIVolumeSource: { members: { driver: required(CSI_DRIVER) }, whole: [CSI_SECRET] },
  ImageVolumeSource: {
    members: { reference: required(), pullPolicy: oneOf("Always", "IfNotPresent", "Never") },
  },
  EphemeralVolumeSource: { members: { volumeClaimTemplate: required() }, whole: [NAME_PROBLEM] },
  ...PROJECTION_RULES,
  ...CLAIM_RULES,
};
