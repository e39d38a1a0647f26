/**
 * The limits of a namespace: the only images, accounts, tolerations, priority classes and node labels that its pods may
 * use. They hold at every level. It serves admins who share clusters among teams.
 */

import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { type Json, type JsonObject, stringAt } from "../../../runtime/json.ts";
import { containersOf, isSet, type PodPart, partAt, partsAt, textOf, volumesOf } from "../pod-parts.ts";
import { glob, type ImageName, readImage, readImagePattern, takesImage } from "./image-pattern.ts";

export type LimitKind = keyof typeof LIMITS;

/** By kind: the values that pods may use. Omitted: any. Empty: none. */
export type PodLimits = { readonly [kind in LimitKind]?: readonly string[] };

/** A value that a pod uses, with the path of its field. */
type PodUse = {
  readonly path: string;
  readonly value: string;
  /** Whether an entry of the limit takes it. */
  readonly isTakenBy: (entry: string) => boolean;
  /** Entries that may take it, the narrowest first. */
  readonly entries: readonly string[];
};

type LimitRules = {
  /** The form of an entry, for errors and help. */
  readonly form: string;
  readonly isEntry: (entry: string) => boolean;
  readonly uses: (pod: LimitedPod) => readonly PodUse[];
};

/** The parts of a pod that limits read. */
type LimitedPod = {
  readonly spec: JsonObject;
  /** The service account of a pod whose template names none. Null: the platform or the kind names one. */
  readonly fallbackAccount: string | null;
};

const KEY = /^[A-Za-z0-9*]([-._/A-Za-z0-9*]{0,315}[A-Za-z0-9*])?$/;
const VALUE = /^[-._A-Za-z0-9*]{0,63}$/;
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

const LIMITS = {
  image: {
    form: "PATTERN such as ghcr.io/acme/*, busybox:1.36 or */trainer",
    isEntry: (entry) => readImagePattern(entry) !== null,
    uses: ({ spec }) => {
      const patterns = new Map<string, ImageName | null>();
      const read = (entry: string) => {
        const pattern = getOrCreate(patterns, entry, () => readImagePattern(entry));
        return pattern;
      };
      return [
        ...containersOf(spec).map((container) => imageUse(container, "image", read)),
        ...volumesOf(spec)
          .filter(({ value }) => isSet(value["image"]))
          .map((volume) => imageUse(partAt(volume, "image"), "reference", read)),
      ];
    },
  },
  "service-account": {
    form: "NAME",
    isEntry: (entry) => /^[a-z0-9*]([-a-z0-9.*]{0,251}[a-z0-9*])?$/.test(entry),
    uses: ({ spec, fallbackAccount }) => {
      const named = ["serviceAccountName", "serviceAccount"].filter(
        (member) => isSet(spec[member]) && spec[member] !== "",
      );
      const fallback =
        named.length > 0 || fallbackAccount === null ? [] : [plain("spec.serviceAccountName", fallbackAccount)];
      return [...named.map((member) => plain(`spec.${member}`, textOf(spec[member]))), ...fallback];
    },
  },
  toleration: {
    form: "KEY, KEY=VALUE, KEY:EFFECT, KEY=VALUE:EFFECT or *",
    isEntry: (entry) => {
      const { key, value, effect } = readTaint(entry);
      return KEY.test(key) && VALUE.test(value ?? "") && (effect === null || EFFECTS.includes(effect));
    },
    uses: ({ spec }) => partsAt({ path: "spec", value: spec }, "tolerations").map(tolerationUse),
  },
  "priority-class": {
    form: "NAME",
    isEntry: (entry) => /^[a-z0-9*]([-.a-z0-9*]{0,251}[a-z0-9*])?$/.test(entry),
    uses: ({ spec }) =>
      isSet(spec["priorityClassName"]) && spec["priorityClassName"] !== ""
        ? [plain("spec.priorityClassName", textOf(spec["priorityClassName"]))]
        : [],
  },
  "node-selector": {
    form: "KEY or KEY=VALUE",
    isEntry: (entry) => {
      const { key, value } = readPair(entry);
      return KEY.test(key) && VALUE.test(value ?? "");
    },
    uses: ({ spec }) => [...selectorUses(spec), ...affinityUses(spec)],
  },
} as const satisfies Readonly<Record<string, LimitRules>>;

/** The kinds of limits, with the form of their entries. */
export const LIMIT_KINDS: Readonly<Record<LimitKind, LimitRules>> = LIMITS;

export function isLimitKind(name: string): name is LimitKind {
  return Object.hasOwn(LIMITS, name);
}

/** A value that no entry of a limit takes. */
export type LimitExcess = {
  readonly kind: LimitKind;
  readonly path: string;
  readonly value: string;
  /** Those of the limit. */
  readonly entries: readonly string[];
  /** One that would take the value. Null: there is none. */
  readonly entry: string | null;
};

/** Finds what a pod uses beyond limits. */
export function beyondLimits(pod: LimitedPod, limits: PodLimits): readonly LimitExcess[] {
  return (Object.keys(LIMITS) as readonly LimitKind[]).flatMap((kind) => {
    const entries = limits[kind];
    if (entries === undefined) return [];
    return LIMIT_KINDS[kind]
      .uses(pod)
      .filter((use) => !entries.some((entry) => use.isTakenBy(entry)))
      .map((use) => ({ kind, path: use.path, value: use.value, entries, entry: entryFor(kind, use) }));
  });
}

/** A comma would separate entries. */
function entryFor(kind: LimitKind, { entries, isTakenBy }: PodUse): string | null {
  const { isEntry } = LIMIT_KINDS[kind];
  return entries.find((entry) => !entry.includes(",") && isEntry(entry) && isTakenBy(entry)) ?? null;
}

function plain(path: string, value: string): PodUse {
  return { path, value, isTakenBy: (entry) => glob(entry, value), entries: [value] };
}

/** `read` reads each pattern once, since a template may have thousands of containers. */
function imageUse({ path, value }: PodPart, member: string, read: (entry: string) => ImageName | null): PodUse {
  const text = textOf(value[member]);
  const image = readImage(text);
  const isTakenBy = (entry: string) => takesImage(read(entry), image);
  return { path: `${path}.${member}`, value: text, isTakenBy, entries: [text] };
}

type Taint = { readonly key: string; readonly value: string | null; readonly effect: string | null };

/** Reads a taint as `kubectl taint` writes it. Null: any value, any effect. */
function readTaint(text: string): Taint {
  const colon = text.lastIndexOf(":");
  const effect = colon < 0 ? null : text.slice(colon + 1);
  return { ...readPair(colon < 0 ? text : text.slice(0, colon)), effect };
}

function readPair(text: string): Pick<Taint, "key" | "value"> {
  const equals = text.indexOf("=");
  return equals < 0 ? { key: text, value: null } : { key: text.slice(0, equals), value: text.slice(equals + 1) };
}

/** A toleration without a value takes every value of its key, and one without an effect every effect. */
function tolerationUse({ path, value: toleration }: PodPart): PodUse {
  const key = textOf(toleration["key"] ?? "");
  const value = toleration["operator"] === "Exists" ? null : textOf(toleration["value"] ?? "");
  const effect = stringAt(toleration, "effect") || null;
  const text = `${key || "every taint"}${value === null ? "" : `=${value}`}${effect === null ? "" : `:${effect}`}`;
  const isTakenBy = (entry: string) => {
    const taint = readTaint(entry);
    const keys = key === "" ? taint.key === "*" : glob(taint.key, key);
    return keys && isPartOf(value, taint.value) && isPartOf(effect, taint.effect);
  };
  return { path, value: text, isTakenBy, entries: [key === "" ? "*" : text] };
}

/** Null stands for everything. */
function isPartOf(given: string | null, wanted: string | null): boolean {
  return wanted === null || wanted === "*" || (given !== null && glob(wanted, given));
}

function selectorUses(spec: JsonObject): readonly PodUse[] {
  const { path, value } = partAt({ path: "spec", value: spec }, "nodeSelector");
  return Object.entries(value).map(([key, wanted]) =>
    labelUse(`${path}[${JSON.stringify(key)}]`, key, [textOf(wanted)]),
  );
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

function affinityUses(spec: JsonObject): readonly PodUse[] {
  const affinity = partAt(partAt({ path: "spec", value: spec }, "affinity"), "nodeAffinity");
  const terms = [
    ...partsAt(partAt(affinity, REQUIRED), "nodeSelectorTerms"),
    ...partsAt(affinity, PREFERRED).map((preferred) => partAt(preferred, "preference")),
  ];
  return terms
    .flatMap((term) => partsAt(term, "matchExpressions"))
    .map(({ path, value }) =>
      labelUse(path, textOf(value["key"]), value["operator"] === "In" ? valuesOf(value) : null),
    );
}

function valuesOf(requirement: JsonObject): readonly string[] | null {
  const values = requirement["values"];
  return Array.isArray(values) ? (values as readonly Json[]).map(textOf) : null;
}

/** Null values: the requirement selects by the key alone, so only an entry without a value takes it. */
function labelUse(path: string, key: string, values: readonly string[] | null): PodUse {
  const isTakenBy = (entry: string) => {
    const label = readPair(entry);
    if (!glob(label.key, key)) return false;
    return label.value === null || (values?.every((value) => glob(label.value ?? "", value)) ?? false);
  };
  const text = values === null ? key : `${key}=${values.join(",")}`;
  return { path, value: text, isTakenBy, entries: [text, key] };
}
