/** The folders whose decisions the mutation tests change, each with the tests that must notice. */
export type Target = {
  /** Path below `src`, of a folder or of one file. A file has its own target if few tests decide it. */
  readonly folder: string;
  /** Test files as glob patterns below `test`. The tool itself finds out which of them reach which line. */
  readonly tests: readonly string[];
  /** True: code and tests keep no state, so mutants share a process. Omitted: each mutant needs a process. */
  readonly isPure?: true;
};

/** Without the laws of the planner over many rounds, which take too long to be run for each change. */
const CORE = [
  "core/{admin,job,kinds,pods,quota,reconcile}/*.test.ts",
  "core/{pods,reconcile}/*/*.test.ts",
  "core/plan/{blocked,cases,laws,quota-cases,quota-laws,rooms,simulate}.test.ts",
  "core/plan/{apply,assign,facts,model}/*.test.ts",
  "core/plan/{capacity,explain,fit}/{apart,fit,hidden-clusters,hidden-names,hidden-quotas,messages}.test.ts",
  "intake/*.test.ts",
  "config/pod-config.test.ts",
];
const STORE = ["store/*/*.test.ts", "planner/*.test.ts"];

export const TARGETS: readonly Target[] = [
  { folder: "core/access", tests: ["core/access/*.test.ts", ...CORE], isPure: true },
  { folder: "core/admin", tests: CORE, isPure: true },
  { folder: "core/blame", tests: ["core/blame/*.test.ts"], isPure: true },
  { folder: "core/job", tests: CORE, isPure: true },
  { folder: "core/kinds", tests: CORE, isPure: true },
  { folder: "core/plan", tests: [...CORE, "core/plan/{round,usage,victims}/*.test.ts"], isPure: true },
  { folder: "core/pods", tests: CORE, isPure: true },
  { folder: "core/quota", tests: [...CORE, "counters/in-process.test.ts"], isPure: true },
  { folder: "core/reconcile", tests: CORE, isPure: true },
  { folder: "tokens", tests: ["tokens/*.test.ts", "counters/in-process.test.ts"] },
  { folder: "worker", tests: ["worker/*.test.ts"] },
  ...["bucket-share", "carry-out", "decide-step", "expectations", "job-memory", "quota-memory", "rendezvous"].map(
    (name): Target => ({ folder: `worker/${name}.ts`, tests: [`worker/${name}.test.ts`], isPure: true }),
  ),
  { folder: "adapters/store/fleet", tests: STORE },
  { folder: "adapters/store/jobs", tests: STORE },
  { folder: "adapters/store/ledger", tests: [...STORE, "tokens/*.test.ts"] },
  { folder: "adapters/store/planning", tests: STORE },
];

/** The targets at or below a path such as `core` or `core/plan`, else the one above it, narrowed to the path. */
export function targetsOf(folder: string): readonly Target[] {
  const named = folder.replace(/^(\.\/)?src\//, "").replace(/\/+$/, "");
  const found = TARGETS.filter((target) => isBelow(target.folder, named));
  if (found.length > 0) return found;
  return TARGETS.filter((target) => isBelow(named, target.folder)).map((target) => ({ ...target, folder: named }));
}

/** The files of a target as glob patterns, without those that are targets of their own. */
export function filesOf({ folder }: Target): readonly string[] {
  if (folder.endsWith(".ts")) return [`src/${folder}`];
  const own = TARGETS.filter((other) => other.folder !== folder && isBelow(other.folder, folder));
  return [`src/${folder}/**/*.ts`, ...own.map((other) => `!src/${other.folder}`)];
}

function isBelow(folder: string, other: string): boolean {
  return folder === other || folder.startsWith(`${other}/`);
}
