/**
 * Reads Flyte's own file of plugin configuration, so that an operator who comes from Flyte need not write it again. It
 * says the same in our words; `readPodConfig` then checks the values, and names each as the file spells it.
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import { nearestName } from "../nearest-name.ts";
import { DOWNLOAD_ARGS, storageFlags, UPLOAD_ARGS } from "./flyte-co-pilot.ts";
import { CO_PILOT_WORDS, FLYTE_WORDS, type FlyteWord } from "./flyte-words.ts";

/** A file in our words. */
export type FileInOurWords = {
  readonly value: JsonObject;
  /** By the path of a member of ours: how the file spells it. Only where the two differ. */
  readonly spelling: ReadonlyMap<string, string>;
  /** What has no effect here, one line each. */
  readonly notes: readonly string[];
  readonly errors: readonly string[];
};

/** The folders of Flyte's files in which the words may stand: propeller's configuration, and that of its Helm chart. */
const FOLDERS = [
  ["plugins", "k8s"],
  ["k8s", "plugins", "k8s"],
] as const;

/** Translates the words of Flyte in a file. Words of ours, and words that neither knows, stay as they are. */
export function inOurWords(file: JsonObject): FileInOurWords {
  const reading = new Translation();
  const { own, flyte } = reading.apart(file);
  const value: Record<string, Json | undefined> = { ...own };
  for (const { object, at } of flyte) {
    for (const [word, given] of Object.entries(object)) reading.take(value, given, { word, at, words: FLYTE_WORDS });
  }
  // Flyte gives its defaults to every container; here the list of resources turns that on.
  if (reading.spelling.has("defaultCPURequest") || reading.spelling.has("defaultMemoryRequest")) {
    value["resources"] ??= {};
  }
  return { value, spelling: reading.spelling, notes: reading.notes, errors: reading.errors };
}

/** The nearest of these words and of Flyte's. Null: none is near. */
export function nearestWord(word: string, members: Iterable<string>): string | null {
  return nearestName(word, [...members, ...Object.keys(FLYTE_WORDS)]);
}

type At = { readonly word: string; readonly at: string; readonly words: Readonly<Record<string, FlyteWord>> };
type Part = { readonly object: JsonObject; readonly at: string };

class Translation {
  readonly spelling = new Map<string, string>();
  readonly notes: string[] = [];
  readonly errors: string[] = [];

  /** The words of Flyte, wherever they stand, and the other members of the file. */
  apart(file: JsonObject): { readonly own: JsonObject; readonly flyte: readonly Part[] } {
    const folder = FOLDERS.find((path) => isJsonObject(insideOf(file, path)));
    const top = folder?.[0] ?? "";
    const words = Object.entries(file).filter(([word]) => Object.hasOwn(FLYTE_WORDS, word));
    const rest = Object.entries(file).filter(([word]) => word !== top && !Object.hasOwn(FLYTE_WORDS, word));
    const flyte: Part[] = [{ object: Object.fromEntries(words), at: "" }];
    if (folder === undefined) return { own: Object.fromEntries(rest), flyte };
    const inner = insideOf(file, folder);
    if (isJsonObject(inner)) flyte.push({ object: inner, at: `${folder.join(".")}.` });
    const others = insideOf(file, folder.slice(0, -1));
    for (const name of Object.keys(isJsonObject(others) ? others : {})) {
      if (name !== "k8s") this.notes.push(`${[...folder.slice(0, -1), name].join(".")} has no effect: only k8s has`);
    }
    return { own: Object.fromEntries(rest), flyte };
  }

  /** Adds a word to `into`, as a member of ours. `under`: the path of `into`. */
  take(into: Record<string, Json | undefined>, value: Json | undefined, of: At, under = ""): void {
    const { word, at, words } = of;
    const known = Object.hasOwn(words, word) ? words[word] : undefined;
    if (known === undefined) {
      const near = nearestName(word, Object.keys(words));
      const meant = near === null ? `known are ${Object.keys(words).join(", ")}` : `did you mean ${near}?`;
      this.errors.push(`${at}${word} is unknown: ${meant}`);
    } else if (value === undefined || value === null || value === "") {
      return;
    } else if ("instead" in known) {
      if (known.unless.some((one) => canonicalJson(one) === canonicalJson(value))) return;
      this.notes.push(`${at}${word} has no effect: ${known.instead}`);
    } else if ("special" in known) {
      this.#special(known.special, into, value, `${at}${word}`);
    } else {
      this.#set(into, `${under}${known.member}`, `${at}${word}`, formed(known, value));
    }
  }

  #set(into: Record<string, Json | undefined>, path: string, spelled: string, value: Json): void {
    const member = path.slice(path.lastIndexOf(".") + 1);
    if (into[member] !== undefined && into[member] !== null) {
      this.errors.push(`${spelled} says the same as ${this.spelling.get(path) ?? path}: keep one of them`);
    }
    into[member] = value;
    this.spelling.set(path, spelled);
  }

  #special(
    special: "tolerations" | "coPilot" | "storage",
    into: Record<string, Json | undefined>,
    value: Json,
    spelled: string,
  ): void {
    if (special === "coPilot") this.#coPilot(into, value, spelled);
    else if (special === "tolerations") this.#tolerations(into, value, spelled);
    else this.#storage(into, value, spelled);
  }

  /** A toleration of the taint that a node with the resource has by its name. */
  #tolerations(into: Record<string, Json | undefined>, value: Json, spelled: string): void {
    if (!Array.isArray(value) || value.some((one: Json) => typeof one !== "string" || one === "")) {
      this.errors.push(`${spelled} must be a list of names of resources`);
      return;
    }
    const known = into["resourceTolerations"];
    const all: Record<string, Json | undefined> = isJsonObject(known) ? { ...known } : {};
    for (const key of value as readonly string[]) {
      const own = all[key];
      all[key] = [...(Array.isArray(own) ? own : []), { key, operator: "Exists", effect: "NoSchedule" }];
    }
    into["resourceTolerations"] = all;
  }

  /** Flyte's co-pilot has a command of its own. A `coPilot` of ours beside it may replace or complete it. */
  #coPilot(into: Record<string, Json | undefined>, value: Json, spelled: string): void {
    const own = into["coPilot"] ?? {};
    if (into["coPilot"] === undefined) this.spelling.set("coPilot", spelled);
    if (!isJsonObject(value) || !isJsonObject(own)) {
      into["coPilot"] = isJsonObject(own) ? value : own;
      return;
    }
    const pilot: Record<string, Json | undefined> = {};
    const at = `${spelled}.`;
    for (const [word, given] of Object.entries(value)) {
      this.take(pilot, given, { word, at, words: CO_PILOT_WORDS }, "coPilot.");
    }
    const { flags = [], ...members } = pilot;
    const storage = Array.isArray(flags) ? flags : [];
    const command = ["/bin/flyte-copilot", "--storage.limits.maxDownloadMBs=0", ...storage];
    const programs =
      own["command"] === undefined
        ? { command: [...command, ...DOWNLOAD_ARGS], uploadCommand: [...command, ...UPLOAD_ARGS] }
        : {};
    into["coPilot"] = { ...members, ...programs, ...own };
  }

  #storage(into: Record<string, Json | undefined>, value: Json, spelled: string): void {
    const { flags, secrets } = storageFlags(value);
    into["flags"] = flags;
    for (const path of secrets) {
      this.notes.push(`${spelled}.${path} has no effect, because every pod would show it: use coPilot.envFrom`);
    }
  }
}

/** The value at a path of objects. Undefined: there is none. */
function insideOf(value: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((inner, name) => (isJsonObject(inner) ? inner[name] : undefined), value);
}

function formed(word: { readonly isMap?: true; readonly toTexts?: true }, value: Json): Json {
  if (word.isMap !== true) return value;
  const map = asMap(value);
  if (word.toTexts !== true || !isJsonObject(map)) return map;
  const isPlain = (one: Json | undefined) => typeof one === "number" || typeof one === "boolean";
  return Object.fromEntries(Object.entries(map).map(([name, one]) => [name, isPlain(one) ? String(one) : one]));
}

/** Flyte takes a list of maps for a map. Each item's entries replace those before it. */
function asMap(value: Json): Json & {} {
  if (!Array.isArray(value) || !value.every(isJsonObject)) return value ?? {};
  return Object.assign({}, ...value) as JsonObject;
}
