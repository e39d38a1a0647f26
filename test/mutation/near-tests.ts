/** The folders whose decisions the mutation tests change, each with the tests that must notice. */
export type Target = {
  /** Path below `src`. */
  readonly folder: string;
  /** Test files as glob patterns below `test`. The tool itself finds out which of them reach which line. */
  readonly tests: readonly string[];
  /** True: code and tests keep no state, so mutants share a process. Omitted: each mutant needs a process. */
  readonly isPure?: true;
};

const CORE = ["core/*.test.ts", "intake/*.test.ts", "config/pod-config.test.ts"];
const STORE = ["store/*.test.ts", "planner/*.test.ts"];

export const TARGETS: readonly Target[] = [
  { folder: "core/admin", tests: CORE, isPure: true },
  { folder: "core/job", tests: CORE, isPure: true },
  { folder: "core/kinds", tests: CORE, isPure: true },
  { folder: "core/plan", tests: CORE, isPure: true },
  { folder: "core/pods", tests: CORE, isPure: true },
  { folder: "core/quota", tests: [...CORE, "counters/in-process.test.ts"], isPure: true },
  { folder: "core/reconcile", tests: CORE, isPure: true },
  { folder: "tokens", tests: ["tokens/*.test.ts", "counters/in-process.test.ts"] },
  { folder: "worker", tests: ["worker/*.test.ts"] },
  { folder: "adapters/store/fleet", tests: STORE },
  { folder: "adapters/store/jobs", tests: STORE },
  { folder: "adapters/store/ledger", tests: [...STORE, "tokens/*.test.ts"] },
  { folder: "adapters/store/planning", tests: STORE },
];

/** The targets at, below or above a path such as `core`, `core/plan` or `core/plan/fit.ts`; a file narrows it. */
export function targetsOf(folder: string): readonly Target[] {
  const named = folder.replace(/^(\.\/)?src\//, "").replace(/\/+$/, "");
  return TARGETS.flatMap((target) => {
    if (isBelow(target.folder, named)) return [target];
    return isBelow(named, target.folder) ? [{ ...target, folder: named }] : [];
  });
}

function isBelow(folder: string, other: string): boolean {
  return folder === other || folder.startsWith(`${other}/`);
}
