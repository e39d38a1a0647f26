import { getOrCreate } from "../../src/runtime/get-or-create.ts";

/** The rules of the layout as data and pure checks, so that the tests can show that each rule can fail. */

const STAGES = ["api", "access", "intake", "planner", "tokens", "worker", "watch"];
const ADAPTERS = ["store", "counters", "cluster", "simcluster", "plugins", "objects"];
/** The folders that these adapters may have, beside files at their own roots. */
const ADAPTER_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  store: ["db", "fleet", "ledger", "admin", "jobs", "planning"],
  counters: ["in-process", "redis"],
};
const FOLDERS = [...STAGES, "compose", "config", "cli", "core", "adapters", "telemetry", "runtime", "gen", "manifest"];
/** The files that may be at the root of `src`. */
const ROOT_FILES = ["main.ts"];
const READ_ENVIRONMENT = ["config/client-config.ts", "config/config.ts"];
const FILE_LINES_MAX = 500;
/** From here on a file is named in a warning. */
const FILE_LINES_LONG = 300;
/** The files that may be longer than all others, each with the reason. */
const LONGER_FILES: Readonly<Record<string, string>> = {};
/** So many files a folder of the planner's core has at most. */
const CORE_FOLDER_FILES_MAX = 25;
const LINE_COLUMNS_MAX = 120;

/**
 * The rooms of core that a room of core may import, beside itself and runtime; never in a circle. `admin` holds the
 * records that administrators keep (queues, namespaces, clusters). They use types of jobs, kinds, plans and quotas.
 */
const CORE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  access: [],
  job: [],
  pods: ["job"],
  kinds: ["job", "pods"],
  blame: [],
  reconcile: ["job", "pods", "kinds", "blame"],
  quota: [],
  plan: ["job", "pods", "kinds", "quota"],
  admin: ["job", "pods", "kinds", "quota", "plan"],
};

/** The rooms of the planner. Each imports those before it, and itself. */
const PLAN_ROOMS = [
  ...["model", "capacity", "domains", "usage", "victims", "queues", "requeue", "fit"],
  ...["preempt", "assign", "reservations", "round", "explain"],
];
/** The parts of the planner that the rest of `src` may import. */
const PLAN_FACE = /^core\/plan\/(planner\.ts$|(model|facts|apply|explain)\/)/;
/** These carry facts in and plans out. They import these rooms, and no room imports them. */
const PLAN_ENDS: Readonly<Record<string, readonly string[]>> = {
  facts: ["model"],
  apply: ["model"],
};

export type SourceFile = { readonly path: string; readonly text: string };

/** Lists every rule that one file of `src` breaks. Paths are relative to `src`, with `/`. */
export function brokenRules(file: SourceFile): readonly string[] {
  return [...fileRules(file), ...importsOf(file).flatMap((target) => importRules(file.path, target))];
}

/** The folders of `src` whose code also runs in a browser. The build refuses what needs Node. */
const CONSOLE_MAY_IMPORT = /^(console\/|src\/(core|gen|cli\/output)\/|src\/cli\/jobs\/filter-fields\.ts$)/;

/** Lists every rule that one file of the console breaks. Paths are like `console/src/app.tsx`. */
export function brokenConsoleRules({ path, text }: SourceFile): readonly string[] {
  const broken: string[] = [];
  if (!/^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.(tsx?|css)$/.test(path))
    broken.push(`${path}: the name is not kebab-case`);
  if (/dangerouslySetInnerHTML|\.innerHTML\b/.test(text)) broken.push(`${path}: texts of others are text nodes only`);
  for (const target of importsOf({ path, text })) {
    if (target.endsWith(".ts") && !CONSOLE_MAY_IMPORT.test(target)) {
      broken.push(`${path} imports ${target}: of src, the console imports what runs in browsers`);
    }
  }
  return broken;
}

/**
 * Lists every name that two files export as a type or a class, such as `Lease: api/x.ts, tokens/x.ts`. A search for a
 * type must find one meaning.
 */
export function sharedTypeNames(files: readonly SourceFile[]): readonly string[] {
  const places = new Map<string, string[]>();
  for (const { path, text } of files) {
    for (const [, name = ""] of text.matchAll(EXPORTED_TYPE)) places.set(name, [...(places.get(name) ?? []), path]);
  }
  const shared = [...places].filter(([, paths]) => paths.length > 1);
  return shared.map(([name, paths]) => `${name}: ${paths.join(", ")}`).sort();
}

/** Names the files that are so long that they may be better as two, such as `x.ts: 320 lines`, the longest first. */
export function longFiles(files: readonly SourceFile[]): readonly string[] {
  const all = files.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
  const long = all.filter(({ lines }) => lines >= FILE_LINES_LONG).sort((a, b) => b.lines - a.lines);
  return long.map(({ path, lines }) => `${path}: ${lines} lines`);
}

/** Names the folders of core that have too many files. */
export function fullFolders(files: readonly SourceFile[]): readonly string[] {
  const ofCore = files.filter(({ path }) => path.startsWith("core/"));
  const byFolder = Map.groupBy(ofCore, ({ path }) => folderOf(path));
  const full = [...byFolder].filter(([, { length }]) => length > CORE_FOLDER_FILES_MAX);
  return full.map(([folder, { length }]) => `${folder}: ${length} files, at most ${CORE_FOLDER_FILES_MAX}`);
}

/**
 * Words for which the planner's glossary has another one, such as a lane, which is a gang class. Types and files of the
 * planner do not have them in their names, except for waiting lines of pools and entries of a cluster's capacity.
 */
const OTHER_WORDS = new RegExp(
  [
    "lane|(?<!in)line(?!s?$)|entry|turns|awake|asleep|sleep|restless|hope|told|said|pass(ed|ing)|giv(e|es)way|taker",
    "board|booked|lift|room|heir|barred|spared|wants|lacks|runner|beside|words|cause",
  ].join("|"),
);

/** Names the types and files of the planner that do not speak its language. */
export function otherWords(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ path, text }) => {
    if (!path.startsWith("core/plan/")) return [];
    const types = [...text.matchAll(ANY_TYPE)].map(([, name = ""]) => name);
    const file = path.slice(path.lastIndexOf("/") + 1, -".ts".length).replaceAll("-", "");
    const names = [file, ...types].filter((name) => !/^(capacityentry|Entry(Key|Change)|CapacityEntry)$/.test(name));
    return names.filter((name) => OTHER_WORDS.test(name.toLowerCase())).map((name) => `${path}: ${name}`);
  });
}

/** The links of a page that name a function of a file, such as [`refuse`](queues/class-state.ts). */
export function functionLinks(page: string): readonly { readonly name: string; readonly path: string }[] {
  return [...page.matchAll(/\[`(#?\w+)`\]\(([\w/-]+\.ts)\)/g)].map(([, name = "", path = ""]) => ({ name, path }));
}

/** True if a file declares a function or a method of this name. */
export function declares(text: string, name: string): boolean {
  return new RegExp(`^(export function| ) ${name.replace("#", "#?")}[<(]`, "m").test(text);
}

/** Returns the first line of a file that is too wide, such as `test/x.ts:3: more than 120 columns`. */
export function wideLines({ path, text }: SourceFile): readonly string[] {
  const wide = text.split("\n").findIndex((line) => line.length > LINE_COLUMNS_MAX);
  return wide < 0 ? [] : [`${path}:${wide + 1}: more than ${LINE_COLUMNS_MAX} columns`];
}

/** Calls that pass each item of a list as an argument: beyond some 100,000 items they fail. */
const SPREAD_CALL = new RegExp(
  [
    String.raw`\.(?:push|unshift|concat)\((?:[^({[;]*,\s*)?\.\.\.`,
    String.raw`\bMath\.(?:max|min)\((?:[^;]*?[,(]\s*)?\.\.\.`,
    String.raw`\bString\.from\w+\(\.\.\.`,
  ].join("|"),
);
/** An import of the function that opens a record of the planner for a change. */
const WRITES_RECORDS = /import\s*\{[^}]*\bwritten\b[^}]*\}\s*from\s*"[^"]*\/records\.ts"/;
const ANY_TYPE = /^(?:export )?(?:abstract )?(?:type|interface|class) (\w+)/gm;
const EXPORTED_TYPE = /^export (?:abstract )?(?:type|interface|class) (\w+)/gm;

function fileRules({ path, text }: SourceFile): readonly string[] {
  const broken = [...wideLines({ path, text })];
  const lines = text.split("\n").length - 1;
  if (lines > FILE_LINES_MAX && !(path in LONGER_FILES))
    broken.push(`${path}: ${lines} lines, at most ${FILE_LINES_MAX}`);
  if (!/^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(path))
    broken.push(`${path}: the name is not kebab-case`);
  if (/\bprocess\.env\b/.test(text) && !READ_ENVIRONMENT.includes(path)) {
    broken.push(`${path}: only ${READ_ENVIRONMENT.join(" and ")} read process.env`);
  }
  broken.push(...placeRules(path));
  if (/\bAbortSignal\.any\b(?!`)/.test(text)) broken.push(`${path}: AbortSignal.any: use linkedController of runtime`);
  if (SPREAD_CALL.test(text))
    broken.push(`${path}: a spread as arguments: use append, maxOf or minOf of runtime/lists`);
  if (/\bexport default\b/.test(text)) broken.push(`${path}: default export`);
  if (roomOf(path) === "core" && /\b(Date\.now|Math\.random|performance\.now|setTimeout|process\.)/.test(text)) {
    broken.push(`${path}: core takes time and chance as arguments`);
  }
  if (/^core\/plan\/(?!queues\/)/.test(path) && WRITES_RECORDS.test(text))
    broken.push(`${path}: only core/plan/queues writes the records of classes and queues`);
  if (roomOf(path) === "core" && MUTABLE_MODULE_STATE.test(text))
    broken.push(`${path}: core has no mutable module state`);
  return broken;
}

/**
 * A variable of a module, or a collection that a module could fill. At the start of a line, so outside any function.
 */
const MUTABLE_MODULE_STATE =
  /^(export )?(let|var) |^(export )?const [^=]*(?<!Readonly(Map|Set)<[^=]*>) = new (Map|Set|WeakMap|WeakSet|Array)\b/m;

/** Checks that the file is in a folder that the lists above name. */
function placeRules(path: string): readonly string[] {
  const [room = "", inner = "", third] = path.split("/");
  if (!path.includes("/")) return ROOT_FILES.includes(path) ? [] : [`${path}: not one of the files at the root of src`];
  if (!FOLDERS.includes(room)) return [`${path}: not one of the folders of src`];
  if (room !== "adapters") return [];
  if (!ADAPTERS.includes(inner)) return [`${path}: not one of the adapters`];
  const folders = ADAPTER_FOLDERS[inner];
  const [, , folder, file] = path.split("/");
  if (third === undefined || folders === undefined || file === undefined || folders.includes(folder ?? "")) return [];
  return [`${path}: not one of the folders of the ${inner} adapter`];
}

/** Returns the targets of imports: packages by name, files of `src` by path. */
function importsOf({ path, text }: SourceFile): readonly string[] {
  const targets: string[] = [];
  for (const match of text.matchAll(
    /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g,
  )) {
    const target = match[1] ?? match[2] ?? match[3] ?? "";
    targets.push(target.startsWith(".") ? resolve(path, target) : target);
  }
  return targets;
}

/** The circles of imports among files, types included: the files of each, such as `a.ts, b.ts`. */
export function circlesOf(files: readonly SourceFile[]): readonly string[] {
  return circlesIn(new Map(files.map((file) => [file.path, new Set(importsOf(file))])));
}

/**
 * The circles of imports among folders, types included. A folder and those in it may import each other: its own files
 * are what these share, and what is made of them.
 */
export function folderCirclesOf(files: readonly SourceFile[]): readonly string[] {
  const known = new Set(files.map(({ path }) => path));
  const imports = new Map<string, Set<string>>();
  for (const file of files) {
    const from = folderOf(file.path);
    const targets = getOrCreate(imports, from, () => new Set<string>());
    for (const target of importsOf(file)) {
      const to = folderOf(target);
      const isNested = `${to}/`.startsWith(`${from}/`) || from.startsWith(`${to}/`);
      if (known.has(target) && !isNested) targets.add(to);
    }
  }
  return circlesIn(imports);
}

function circlesIn(imports: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  /** What one reaches by its imports. */
  const reached = (from: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const left = [from];
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      for (const target of imports.get(at) ?? []) {
        if (!imports.has(target) || seen.has(target)) continue;
        seen.add(target);
        left.push(target);
      }
    }
    return seen;
  };
  const reach = new Map([...imports.keys()].map((path) => [path, reached(path)]));
  const circles = [...reach].flatMap(([path, targets]) => {
    const others = [...targets].filter((target) => target === path || reach.get(target)?.has(path));
    return others.length > 1 ? [others.sort().join(", ")] : [];
  });
  return [...new Set(circles)].sort();
}

function folderOf(path: string): string {
  return path.split("/").slice(0, -1).join("/");
}

function resolve(from: string, target: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function roomOf(path: string): string {
  return path.split("/")[0] ?? "";
}

function importRules(from: string, target: string): readonly string[] {
  const own = target.endsWith(".ts");
  const [room, inner] = from.split("/");
  const [targetRoom = "", targetInner = ""] = own ? target.split("/") : [target];
  const broken = (why: string) => [`${from} imports ${target}: ${why}`];
  if ((target === "main.ts" || targetRoom === "compose") && from !== "main.ts" && room !== "compose")
    return broken("only main.ts and compose import compose");
  if (from.startsWith("core/plan/") && target.startsWith("core/plan/")) return planRules(from, target, broken);
  if (target.startsWith("core/plan/") && !PLAN_FACE.test(target)) return broken("the planner's rooms are its own");
  if (room === "core") return coreRules(inner ?? "", own, targetRoom, targetInner, broken);
  if (room === "runtime" && own && targetRoom !== "runtime") return broken("runtime has no domain words");
  if (room === "telemetry" && own && !["telemetry", "runtime", "core"].includes(targetRoom))
    return broken("telemetry knows no stage and no adapter");
  if (room === "manifest" && own && !["manifest", "core", "runtime", "gen"].includes(targetRoom))
    return broken("manifests are read by the command line and by the service");
  const isolated = [...STAGES, "adapters", "cli"];
  if (isolated.includes(room ?? "") && own && isolated.includes(targetRoom)) {
    const same = room === targetRoom && (room !== "adapters" || inner === targetInner);
    if (!same) return broken("stages, adapters and the command line do not import each other");
  }
  if (targetRoom === "gen" && !["api", "cli", "gen", "manifest"].includes(room ?? "") && from !== "main.ts")
    return broken("proto types stop in api and manifest");
  if (target.startsWith("@kubernetes/") && !from.startsWith("adapters/cluster/"))
    return broken("Kubernetes types stop in the cluster adapter");
  if (/^(pg|@electric-sql|node-pg-migrate)/.test(target) && !from.startsWith("adapters/store/"))
    return broken("rows stop in the store");
  return [];
}

function planRules(from: string, target: string, broken: (why: string) => string[]): readonly string[] {
  const [, , room = "", file] = from.split("/");
  const [, , targetRoom = "", targetFile] = target.split("/");
  // The files at the root know every room.
  if (file === undefined || room === targetRoom) return [];
  if (targetFile === undefined) return broken("no room of the planner knows its root");
  const place = PLAN_ROOMS.indexOf(room);
  const known = PLAN_ENDS[room] ?? (place < 0 ? [] : PLAN_ROOMS.slice(0, place));
  return known.includes(targetRoom) ? [] : broken(`the planner's room ${room} does not know ${targetRoom}`);
}

function coreRules(
  inner: string,
  own: boolean,
  targetRoom: string,
  targetInner: string,
  broken: (why: string) => string[],
): readonly string[] {
  if (!own) return broken("core imports no packages");
  if (targetRoom === "runtime") return [];
  if (targetRoom !== "core") return broken("core imports nothing but core and runtime");
  if (inner === targetInner || (CORE_MAY_IMPORT[inner] ?? []).includes(targetInner)) return [];
  return broken(`core/${inner} does not know core/${targetInner}`);
}
