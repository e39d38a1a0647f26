/**
 * Reads the settings of a job from the metadata of its manifest. It serves users whose manifests are those of another
 * system, which has no members for them. An annotation `gangway.dev/NAME` replaces the manifest's own member; the
 * labels and annotations of Kueue count only where the manifest has neither.
 */
import type { Json } from "../../../runtime/json.ts";
import { OWN_PREFIX, QUEUE_LABEL } from "../../job/labels.ts";
import { NoteList } from "../../job/request/notes.ts";
import type { FieldNote, SentSpec } from "../../job/request/sent.ts";
import { nameHelp } from "../../pods/nearest-name.ts";
import { POD_ANNOTATION } from "../../pods/pod-annotations.ts";
import type { SentManifest } from "./sent-manifest.ts";
import type { SentReader } from "./sent-reader.ts";
import { readSetting, SETTINGS, type Setting, type SettingValues, settingOf, withSettings } from "./settings.ts";

/** Of a manifest of the examples: how the job ends. */
export const EXPECT_ANNOTATION = `${OWN_PREFIX}expect`;
/** Of a name in a message. */
const NAME_SHOWN_MAX = 80;

/** Kueue's place for a setting. */
type KueueMember = { readonly place: "labels" | "annotations"; readonly key: string; readonly setting: string };

const KUEUE: readonly KueueMember[] = [
  { place: "labels", key: "kueue.x-k8s.io/max-exec-time-seconds", setting: "max-runtime" },
  { place: "annotations", key: "kueue.x-k8s.io/job-min-parallelism", setting: "min-available" },
];

/** What the command line says in place of the manifest, and whether the manifest is that of another system. */
type Context = {
  readonly isForeign: boolean;
  readonly settings?: SettingValues | undefined;
  readonly suspended?: boolean | undefined;
};

/**
 * Moves the annotations that are settings into the spec, and then takes the settings of the command line. Annotations
 * of settings do not stay in the metadata: the field alone counts from then on, so a later update of it holds when the
 * job's manifest is printed and submitted again. Of manifests of other systems, the members of Kueue are read too.
 */
export function foreignSettings(
  reader: SentReader,
  { metadata, spec, sources: read }: Pick<SentManifest, "metadata" | "spec" | "sources">,
  { isForeign, settings = new Map(), suspended = false }: Context,
): SentManifest {
  const { annotations = {}, ...others } = metadata;
  const own = ownSettings(reader, annotations);
  const kept = Object.entries(annotations).filter(([key]) => settingOfAnnotation(key) === undefined);
  const sources = new Map([...read, ...own.sources]);
  for (const name of settings.keys()) sources.set(settingOf(name)?.field ?? name, `--${name}`);
  const manifest = {
    metadata: { ...others, ...(metadata.annotations && { annotations: Object.fromEntries(kept) }) },
    spec: withSettings(withSettings(spec, own.values), settings),
    sources,
    notes: [],
    warnings: own.warnings,
  };
  const taken = isForeign ? withKueue(reader, manifest) : manifest;
  if (!suspended) return isForeign ? runWhenAdmitted(taken) : taken;
  const { runPolicy } = taken.spec;
  return { ...taken, spec: { ...taken.spec, runPolicy: { ...runPolicy, suspend: true } } };
}

function settingOfAnnotation(key: string): Setting | undefined {
  return key.startsWith(OWN_PREFIX) ? settingOf(key.slice(OWN_PREFIX.length)) : undefined;
}

type OwnSettings = {
  readonly values: ReadonlyMap<string, Json>;
  readonly sources: ReadonlyMap<string, string>;
  readonly warnings: readonly FieldNote[];
};

function ownSettings(reader: SentReader, annotations: Readonly<Record<string, string>>): OwnSettings {
  const values = new Map<string, Json>();
  const sources = new Map<string, string>();
  const unknown: string[] = [];
  for (const [key, text] of Object.entries(annotations)) {
    if (!key.startsWith(OWN_PREFIX)) continue;
    const setting = settingOfAnnotation(key);
    if (setting === undefined) {
      if (key !== EXPECT_ANNOTATION) unknown.push(key);
      continue;
    }
    const path = `metadata.annotations.${key}`;
    sources.set(setting.field, path);
    const value = readAt(reader, setting, { text, path });
    if (value !== undefined) values.set(setting.name, value);
  }
  return { values, sources, warnings: unknownWarnings(unknown) };
}

function readAt(
  reader: SentReader,
  setting: Setting,
  { text, path }: { readonly text: string; readonly path: string },
): Json | undefined {
  const outcome = readSetting(setting, text);
  if (outcome.kind === "value") return outcome.value;
  return reader.fail(path, outcome.message);
}

function unknownWarnings(keys: readonly string[]): readonly FieldNote[] {
  const help = nameHelp();
  const known = SETTINGS.map(({ name }) => OWN_PREFIX + name);
  const ofPods: readonly string[] = Object.values(POD_ANNOTATION);
  const warnings = new NoteList<FieldNote>();
  for (const key of keys) {
    warnings.add(() => {
      const field = `metadata.annotations.${key.slice(0, NAME_SHOWN_MAX)}`;
      if (ofPods.includes(key)) return { field, message: "is ignored: it belongs into the metadata of a pod template" };
      const meant = help(key, known);
      return { field, message: meant === null ? "is ignored" : `is ignored: did you mean ${meant}?` };
    });
  }
  return warnings.list(({ message }) => ({ field: "metadata.annotations", message: `${message} are ignored` }));
}

/** Takes what Kueue's labels and annotations say where the manifest says nothing itself. */
function withKueue(reader: SentReader, manifest: SentManifest): SentManifest {
  const { metadata, spec, sources } = manifest;
  const notes: FieldNote[] = [];
  const values = new Map<string, Json>();
  const from = new Map(sources);
  for (const { place, key, setting: name } of KUEUE) {
    const text = metadata[place]?.[key];
    const setting = settingOf(name);
    if (text === undefined || setting === undefined || memberOf(spec, setting) !== undefined) continue;
    const path = `metadata.${place}.${key}`;
    const seconds = name === "max-runtime" && /^\d{1,10}$/.test(text) ? `${text}s` : text;
    const value = readAt(reader, setting, { text: seconds, path });
    if (value === undefined) continue;
    values.set(name, value);
    from.set(setting.field, path);
    notes.push({ field: path, message: `is taken as ${setting.field}: ${seconds}` });
  }
  return { ...manifest, spec: withSettings(spec, values), sources: from, notes };
}

/** Kueue's users write `suspend: true`, which Kueue takes back when it admits the job. */
function runWhenAdmitted(manifest: SentManifest): SentManifest {
  const { metadata, spec, warnings } = manifest;
  if (!metadata.labels?.[QUEUE_LABEL] || spec.runPolicy?.suspend !== true) return manifest;
  const message =
    `is taken as "run when admitted", as Kueue does, because of the label ${QUEUE_LABEL}; ` +
    "--suspended keeps the job suspended";
  return {
    ...manifest,
    spec: { ...spec, runPolicy: { ...spec.runPolicy, suspend: false } },
    warnings: [...warnings, { field: "spec.runPolicy.suspend", message }],
  };
}

function memberOf({ runPolicy }: SentSpec, { name }: Setting): unknown {
  return name === "max-runtime" ? runPolicy?.maxRuntimeMs : runPolicy?.schedulingPolicy?.minAvailable;
}
