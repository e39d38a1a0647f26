/** The rules of the layout as data and pure checks, so that the tests can show that each rule can fail. */

const STAGES = ["api", "access", "intake", "planner", "tokens", "worker", "watch"];
const ADAPTERS = ["store", "counters", "cluster", "simcluster", "plugins"];
/** The folders that these adapters may have, beside files at their own roots. */
const ADAPTER_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  store: ["db", "fleet", "ledger", "admin", "jobs", "planning"],
  counters: ["in-process", "redis"],
};
const FOLDERS = [...STAGES, "compose", "cli", "core", "adapters", "telemetry", "runtime", "gen"];
/** The files that may be at the root of `src`. */
const ROOT_FILES = ["main.ts", "client-config.ts", "config.ts", "config-files.ts", "config-tls.ts", "variables.ts"];
const READ_ENVIRONMENT = ["client-config.ts", "config.ts"];
const FILE_LINES_MAX = 400;
const LINE_COLUMNS_MAX = 120;

/**
 * The rooms of core that a room of core may import, beside itself and runtime; never in a circle. `admin` holds the
 * records that administrators keep (queues, namespaces, clusters). They use types of jobs, plans and quotas.
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
  admin: ["job", "pods", "quota", "plan"],
};

export type SourceFile = { readonly path: string; readonly text: string };

/** Lists every rule that one file of `src` breaks. Paths are relative to `src`, with `/`. */
export function brokenRules(file: SourceFile): readonly string[] {
  return [...fileRules(file), ...importsOf(file).flatMap((target) => importRules(file.path, target))];
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
const EXPORTED_TYPE = /^export (?:abstract )?(?:type|interface|class) (\w+)/gm;

function fileRules({ path, text }: SourceFile): readonly string[] {
  const broken = [...wideLines({ path, text })];
  const lines = text.split("\n").length - 1;
  if (lines > FILE_LINES_MAX) broken.push(`${path}: ${lines} lines, at most ${FILE_LINES_MAX}`);
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
  if (room === "core") return coreRules(inner ?? "", own, targetRoom, targetInner, broken);
  if (room === "runtime" && own && targetRoom !== "runtime") return broken("runtime has no domain words");
  if (room === "telemetry" && own && !["telemetry", "runtime", "core"].includes(targetRoom))
    return broken("telemetry knows no stage and no adapter");
  const isolated = [...STAGES, "adapters", "cli"];
  if (isolated.includes(room ?? "") && own && isolated.includes(targetRoom)) {
    const same = room === targetRoom && (room !== "adapters" || inner === targetInner);
    if (!same) return broken("stages, adapters and the command line do not import each other");
  }
  if (targetRoom === "gen" && !["api", "cli", "gen"].includes(room ?? "") && from !== "main.ts")
    return broken("proto types stop in api");
  if (target.startsWith("@kubernetes/") && !from.startsWith("adapters/cluster/"))
    return broken("Kubernetes types stop in the cluster adapter");
  if (/^(pg|@electric-sql|node-pg-migrate)/.test(target) && !from.startsWith("adapters/store/"))
    return broken("rows stop in the store");
  return [];
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
