import { OWN_PREFIX } from "../core/job/labels.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { requestPath } from "./request-path.ts";

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** The limit of Kubernetes for one object. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024;

/** True if the name is a DNS label: at most 63 lower-case letters, digits and dashes. */
export function isDnsLabel(name: string): boolean {
  return DNS_LABEL.test(name);
}

/** Checks a job's name, namespace, labels and annotations. */
export function checkMetadata(sent: SentJob, isReserved: (namespace: string) => boolean): readonly FieldNote[] {
  return [...checkNames(sent), ...checkReserved(sent, isReserved), ...checkLabels(sent), ...checkAnnotations(sent)];
}

function checkNames({ name, generateName, namespace }: SentJob): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  if (name === "" && generateName === "") {
    notes.push({ field: requestPath(["name"]), message: "must be set, or generate_name must be set" });
  }
  if (name !== "" && generateName !== "") {
    notes.push({ field: requestPath(["generateName"]), message: "must not be set together with name" });
  }
  if (!isDnsLabel(namespace)) {
    const message =
      "must be a DNS label: at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit";
    notes.push({ field: requestPath(["namespace"]), message });
  }
  return notes;
}

function checkReserved({ namespace }: SentJob, isReserved: (namespace: string) => boolean): readonly FieldNote[] {
  if (!isReserved(namespace)) return [];
  const why = "no job may run there, because its service accounts and secrets are the system's";
  const message = `is ${namespace.slice(0, 63)}: ${why}`;
  return [{ field: requestPath(["namespace"]), message }];
}

/** Refuses labels that only Gangway may set. */
export function checkLabels({ labels }: Pick<SentJob, "labels">): readonly FieldNote[] {
  return Object.keys(labels)
    .filter((key) => key.startsWith(OWN_PREFIX))
    .map((key) => ({
      field: requestPath(["labels", key]),
      message: `must not be set: labels that begin with ${OWN_PREFIX} are reserved`,
    }));
}

function checkAnnotations({ annotations }: SentJob): readonly FieldNote[] {
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + Buffer.byteLength(key + value), 0);
  if (size <= ANNOTATIONS_BYTES_MAX) return [];
  const message = `must be at most ${ANNOTATIONS_BYTES_MAX} bytes in total, keys and values, but have ${size}`;
  return [{ field: requestPath(["annotations"]), message }];
}

/** Returns the labels of a pod template that only Gangway may set. */
export function reservedLabels(labels: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(labels).filter((key) => key.startsWith(OWN_PREFIX));
}
