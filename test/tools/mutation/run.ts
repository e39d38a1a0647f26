/**
 * `npm run mutate -- FOLDER...` changes one expression at a time and runs the near tests, which must fail. Prints each
 * change that no test noticed, and for each folder the share of noticed changes. `explained.ts` lists changes that no
 * test can notice.
 */
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { LogLevel, MutantResult } from "@stryker-mutator/api/core";
import { Stryker } from "@stryker-mutator/core";
import { isExplained } from "./explained.ts";
import { filesOf, TARGETS, type Target, targetsOf } from "./near-tests.ts";

const USAGE = `Usage: npm run mutate -- FOLDER... [--sample PERCENT] [--seed N] [--jobs N]

  FOLDER     a folder or file of src, such as core, core/plan or worker/share.ts; of these:
             ${TARGETS.flatMap(({ folder }) => (folder.endsWith(".ts") ? [] : folder)).join(" ")}
  --sample   how many of the functions are changed, in percent (default 100, which takes hours for core)
  --seed     which ones a sample takes (default 1)
  --jobs     how many test processes run at once (default 2)
`;

/** Properties run so many times for a mutant, which is often enough to find most, and a tenth of what CI does. */
const PROPERTY_RUNS = "60";
/** Counted as noticed: a test failed, or did not end. */
const NOTICED = ["Killed", "Timeout"];
const MISSED = ["Survived", "NoCoverage"];

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  const asked = readArguments(argv);
  if (typeof asked === "string") {
    process.stderr.write(`error: ${asked}\n\n${USAGE}`);
    return 2;
  }
  if (asked.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  process.env["GANGWAY_MUTATION_SAMPLE"] = String(asked.sample);
  process.env["GANGWAY_MUTATION_SEED"] = asked.seed;
  process.env["GANGWAY_RUNS"] ??= PROPERTY_RUNS;
  const results: MutantResult[] = [];
  for (const group of byTests(asked.targets)) results.push(...(await mutate(group, asked.jobs)));
  const open = results.filter(isCounted);
  for (const line of missedLines(open)) console.log(line);
  for (const line of scoreLines(asked.targets, open)) console.log(line);
  if (open.length < results.length)
    console.log(`left out, because explained.ts explains them: ${results.length - open.length}`);
  return 0;
}

function readArguments(argv: readonly string[]) {
  const options = {
    sample: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "2" },
    help: { type: "boolean", default: false },
  } as const;
  let parsed: ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const { values, positionals } = parsed;
  const [sample, jobs] = [Number(values.sample), Number(values.jobs)];
  if (!Number.isInteger(sample) || sample < 1 || sample > 100) return "--sample must be a whole number from 1 to 100";
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 64) return "--jobs must be a whole number from 1 to 64";
  const unknown = positionals.find((folder) => targetsOf(folder).length === 0);
  if (unknown !== undefined) return `${unknown} is not one of the folders that have near tests`;
  if (positionals.length === 0 && !values.help) return "name at least one folder";
  return { targets: positionals.flatMap(targetsOf), sample, jobs, seed: values.seed, help: values.help };
}

/** Targets with the same tests share a run, because each run begins with all of its tests. */
function byTests(targets: readonly Target[]): readonly (readonly Target[])[] {
  const groups = Map.groupBy(targets, ({ tests }) => tests.join(" "));
  return [...groups.values()];
}

function mutate(targets: readonly Target[], jobs: number): Promise<readonly MutantResult[]> {
  const stryker = new Stryker({
    mutate: targets.flatMap(filesOf),
    testRunner: targets[0]?.isPure ? "in-process" : "tap",
    tap: {
      testFiles: (targets[0]?.tests ?? []).map((pattern) => `test/${pattern}`),
      nodeArgs: ["--test-reporter=tap", "-r", "{{hookFile}}", "{{testFile}}"],
      forceBail: true,
    },
    plugins: ["@stryker-mutator/tap-runner", ownPlugin("ignorer.ts"), ownPlugin("in-process-runner.ts")],
    ignorers: ["gangway"],
    // The sandbox needs no history, builds or data.
    ignorePatterns: [".git", "dist", ".gangway", "proto/vendor"],
    tempDirName: join(tmpdir(), `gangway-mutation-${process.pid}`),
    coverageAnalysis: "perTest",
    concurrency: jobs,
    // Types are stripped when a file is loaded, so that a mutant that breaks them still runs.
    disableTypeChecks: false,
    // It would be rewritten with the compiler's API, which this version of TypeScript does not have.
    tsconfigFile: "none",
    cleanTempDir: "always",
    logLevel: "warn" as LogLevel.Warning,
    timeoutMS: 5_000,
    reporters: process.stdout.isTTY ? ["progress"] : ["progress-append-only"],
    allowConsoleColors: false,
  });
  return stryker.runMutationTest();
}

function ownPlugin(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

function missedLines(results: readonly MutantResult[]): readonly string[] {
  return results
    .filter(({ status }) => MISSED.includes(status))
    .map(({ fileName, location, mutatorName, replacement = "", status }) => {
      const at = `${shortName(fileName)}:${location.start.line}:${location.start.column}`;
      const by = status === "NoCoverage" ? "no test runs it" : "no test noticed";
      return `${by}: ${at} ${mutatorName} -> ${replacement.replace(/\s+/g, " ").slice(0, 100)}`;
    })
    .sort();
}

function isCounted({ fileName, location, replacement = "", status }: MutantResult): boolean {
  const change = { file: shortName(fileName), startLine: location.start.line, replacement };
  return !MISSED.includes(status) || !isExplained(change);
}

function scoreLines(targets: readonly Target[], results: readonly MutantResult[]): readonly string[] {
  const rows = targets.map(({ folder }) => {
    const own = results.filter(({ fileName }) => isOf(shortName(fileName), folder));
    return { folder, ...count(own) };
  });
  const all = { folder: "all", ...count(results) };
  return ["", "folder                     noticed   of    score", ...[...rows, all].map(scoreLine)];
}

function scoreLine({ folder, noticed, of }: { folder: string; noticed: number; of: number }): string {
  const score = of === 0 ? "-" : `${((noticed / of) * 100).toFixed(1)} %`;
  return `${folder.padEnd(26)} ${String(noticed).padStart(7)} ${String(of).padStart(4)}  ${score.padStart(7)}`;
}

function count(results: readonly MutantResult[]): { readonly noticed: number; readonly of: number } {
  const having = (statuses: readonly string[]) => results.filter(({ status }) => statuses.includes(status)).length;
  return { noticed: having(NOTICED), of: having([...NOTICED, ...MISSED]) };
}

function shortName(fileName: string): string {
  return relative("src", fileName);
}

function isOf(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}
