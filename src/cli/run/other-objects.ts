/**
 * Objects that are not jobs, in commands that kubectl's users write for every object: `get queues`, `describe cluster
 * east`, `delete queue nlp`. Those that read lead to the command of the object. Those that change are refused with the
 * command to use: a word that is not understood must change nothing.
 */
import { Command, type Option } from "commander";
import { usageFailure } from "../shell/exit.ts";
import type { Registrar } from "./run-command.ts";

/** An object, the words for it, and its command. */
type OtherObject = {
  readonly words: readonly string[];
  readonly command: string;
  /** True: the command itself lists and shows. Omitted: its subcommands do. */
  readonly shows?: true;
  /** The option with which `get` shows named objects as rows. Omitted: its command does so. */
  readonly getsWith?: string;
  /** True: it has only a list. */
  readonly onlyLists?: true;
  /** The subcommand that deletes. Omitted: there is none. */
  readonly deletes?: string;
};

const OBJECTS: readonly OtherObject[] = [
  { words: ["queue", "queues"], command: "queue", deletes: "delete" },
  { words: ["cluster", "clusters"], command: "cluster", deletes: "remove" },
  { words: ["namespace", "namespaces", "ns"], command: "namespace", deletes: "delete" },
  {
    words: ["priority-class", "priority-classes", "priorityclass", "priorityclasses", "pc"],
    command: "priority-class",
    deletes: "delete",
  },
  {
    words: ["runtime", "runtimes", "trainingruntime", "trainingruntimes", "clustertrainingruntimes"],
    command: "runtime",
    deletes: "delete",
  },
  { words: ["pool", "pools", "quota", "quotas"], command: "quota", deletes: "delete" },
  { words: ["role", "roles"], command: "role", onlyLists: true, deletes: "delete" },
  { words: ["binding", "bindings"], command: "binding", onlyLists: true, deletes: "delete" },
  { words: ["robot", "robots"], command: "robot", onlyLists: true, deletes: "revoke" },
  { words: ["context", "contexts"], command: "context", onlyLists: true, deletes: "delete" },
  { words: ["kind", "kinds"], command: "kinds", shows: true },
  { words: ["node", "nodes", "no"], command: "nodes", shows: true, getsWith: "--rows" },
  { words: ["pod", "pods", "po"], command: "pods", shows: true },
  { words: ["event", "events", "ev"], command: "events", shows: true },
];

const READS: readonly string[] = ["get", "list", "ls", "describe", "explain"];
/** Those of them that show an object in full. */
const DESCRIBES: readonly string[] = ["describe", "explain"];
const CHANGES: readonly string[] = ["delete", "cancel", "suspend", "resume", "update", "edit", "scale", "rerun"];

/** The called verb, and where the words have it. */
export type CalledVerb = { readonly verb: string; readonly at: number };

/**
 * The words of the command that shows the object which a reading command names; the same words for jobs. Refuses an
 * object in a command that changes jobs. `load` registers the command of the verb, whose options may have values.
 */
export async function wordsOfObject(
  argv: readonly string[],
  { verb, at }: CalledVerb,
  { registrar, load }: { readonly registrar: Registrar; readonly load: () => Promise<(one: Registrar) => void> },
): Promise<readonly string[]> {
  const isRead = READS.includes(verb);
  if (!isRead && !CHANGES.includes(verb)) return argv;
  const after = argv.slice(at + 1);
  if (!after.some((word) => objectOf(word) !== null)) return argv;
  const probe = new Command();
  (await load())({ ...registrar, program: probe });
  const options = [...registrar.program.options, ...probe.commands.flatMap((command) => command.options)];
  const places = operandPlaces(after, options);
  const [first = -1, ...others] = places;
  const named = objectOf(after[first] ?? "");
  if (named === null) return argv;
  const names = [...named.names, ...others.map((place) => after[place] ?? "")].map((name) => ownName(name, named));
  if (!isRead) {
    // Alone, the word can be the name of a job.
    if (names.length === 0) return argv;
    throw usageFailure(refusalText(verb, named, names));
  }
  // Alone, a word in the singular can be the name of a job.
  if (names.length === 0 && !isPlural(named.word)) return argv;
  const rest = after.filter((_, place) => !places.includes(place));
  const { getsWith } = named.object;
  const asRows = getsWith !== undefined && names.length > 0 && !DESCRIBES.includes(verb) ? [getsWith] : [];
  return [...argv.slice(0, at), ...subcommandOf(named.object, names.length), ...asRows, ...rest, ...names];
}

type NamedObject = { readonly word: string; readonly object: OtherObject; readonly names: readonly string[] };

/** Reads `queues`, and `queue/nlp`. Null: another word. */
function objectOf(text: string): NamedObject | null {
  const [, word = "", slash = "", name = ""] = /^([^/]*)(\/?)(.*)$/s.exec(text) ?? [];
  const object = OBJECTS.find(({ words }) => words.includes(word.toLowerCase()));
  if (object === undefined || (slash !== "" && name === "")) return null;
  return { word, object, names: name === "" ? [] : [name] };
}

/** True for `queues`, and for short words such as `ns`. */
function isPlural(word: string): boolean {
  return /^(ns|no|po|ev|pc)$/i.test(word) || (/s$/i.test(word) && !/class$/i.test(word));
}

/** Takes the object off `queue/nlp` beside `queue/text`. The names of pools may have slashes of their own. */
function ownName(name: string, { object }: NamedObject): string {
  const other = objectOf(name);
  return other !== null && other.object === object && other.names[0] !== undefined ? other.names[0] : name;
}

function subcommandOf({ command, shows, onlyLists }: OtherObject, names: number): readonly string[] {
  if (shows) return [command];
  return [command, onlyLists || names === 0 ? "list" : "get"];
}

function refusalText(verb: string, { word, object }: NamedObject, names: readonly string[]): string {
  const nothing = `${verb} takes jobs, and ${word} is none; nothing was changed`;
  const [name = ""] = names;
  const isJob = `a job of this name is job/${word}`;
  if (verb !== "delete" || object.deletes === undefined) return `${nothing}; ${isJob}`;
  return `${nothing}: for the ${object.command}, use "gangway ${object.command} ${object.deletes} ${name}"; ${isJob}`;
}

/** The places of the words that are neither options nor their values. */
function operandPlaces(words: readonly string[], options: readonly Option[]): readonly number[] {
  const places: number[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (word === "--") return [...places, ...Array.from(words.keys()).slice(at + 1)];
    if (!word.startsWith("-") || word === "-") places.push(at);
    else if (takesNext(word, options)) at += 1;
  }
  return places;
}

/** True if the value of an option is the next word. In `-Ao`, only the last letter can have one. */
function takesNext(word: string, options: readonly Option[]): boolean {
  if (word.includes("=")) return false;
  if (word.startsWith("--")) return options.some(({ long, required }) => long === word && required);
  const letters = [...word.slice(1)];
  const valued = letters.findIndex((letter) =>
    options.some(({ short, required }) => short === `-${letter}` && required),
  );
  return valued >= 0 && valued === letters.length - 1;
}
