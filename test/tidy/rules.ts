/** The layout's rules as data and one pure check, so that the test can show that each of them can fail. */

const STAGES = ["api", "intake", "planner", "worker", "watch"];
const ADAPTERS = ["store", "quota", "cluster", "simcluster"];
/** The composition root: main.ts, and the files beside it that wire things together. */
const COMPOSITION = [
  "main.ts",
  "embedded.ts",
  "serve.ts",
  "compose.ts",
  "compose-quota.ts",
  "compose-plugins.ts",
  "compose-pods.ts",
];
const FILE_LINES_MAX = 400;

/** What of core a room of core may import, beside itself and runtime: one way only. */
const CORE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  job: [],
  pods: ["job"],
  kinds: ["job", "pods"],
  reconcile: ["job", "pods", "kinds"],
  quota: [],
  plan: ["job", "pods", "kinds", "quota"],
};

export type SourceFile = { readonly path: string; readonly text: string };

/** Everything in one file of `src` that breaks a rule; paths are relative to `src`, with `/`. */
export function brokenRules(file: SourceFile): readonly string[] {
  return [...fileRules(file), ...importsOf(file).flatMap((target) => importRules(file.path, target))];
}

function fileRules({ path, text }: SourceFile): readonly string[] {
  const broken: string[] = [];
  const lines = text.split("\n").length - 1;
  if (lines > FILE_LINES_MAX) broken.push(`${path}: ${lines} lines, at most ${FILE_LINES_MAX}`);
  if (!/^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(path))
    broken.push(`${path}: the name is not kebab-case`);
  if (/\bprocess\.env\b/.test(text) && path !== "config.ts") broken.push(`${path}: only config.ts reads process.env`);
  if (/\bexport default\b/.test(text)) broken.push(`${path}: default export`);
  if (roomOf(path) === "core" && /\b(Date\.now|Math\.random|performance\.now|setTimeout|process\.)/.test(text)) {
    broken.push(`${path}: core takes time and chance as arguments`);
  }
  return broken;
}

/** Import targets: packages by name, own files as a path relative to `src`. */
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
  if (COMPOSITION.includes(target) && !COMPOSITION.includes(from)) return broken("nobody imports the composition root");
  if (room === "core") return coreRules(inner ?? "", own, targetRoom, targetInner, broken);
  if (room === "runtime" && own && targetRoom !== "runtime") return broken("runtime has no domain words");
  if (room === "telemetry" && own && !["telemetry", "runtime", "core"].includes(targetRoom))
    return broken("telemetry knows no stage and no adapter");
  const isolated = [...STAGES, "adapters", "cli"];
  if (isolated.includes(room ?? "") && own && isolated.includes(targetRoom)) {
    const same = room === targetRoom && (room !== "adapters" || inner === targetInner);
    if (!same) return broken("stages, adapters and the command line do not import each other");
  }
  if (room === "adapters" && !ADAPTERS.includes(inner ?? "")) return [`${from}: not one of the adapters`];
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
