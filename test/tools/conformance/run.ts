/** `npm run conformance -- DIR...` runs behaviour as data on the functions that production runs. */
import { parseArgs } from "node:util";
import { type CaseResult, readDifferences, runSuites } from "./suites.ts";

const USAGE = `Usage: npm run conformance -- [DIR...]

Runs every case of the .json files of each folder on the functions that production runs, and prints how many cases of
each suite passed, failed, or differ on purpose: test/tools/conformance/differences.json has the reasons, by case id
and by feature. It names the suites with functions that it does not know. Exits with 1 if a case failed or is unknown,
or none was run.

  DIR      a folder of cases: {suite, cases: [{id, fn, features, config, input, expected}]} in each file.
           Omitted: the cases of Gangway itself.
  --help   this text
`;

const OUTCOMES = ["passed", "failed", "declared", "unknown"] as const;

const read = readArgs(process.argv.slice(2));
if (read.kind === "run") {
  process.exitCode = await run(read.folders).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  });
} else if (read.kind === "help") console.log(USAGE);
else {
  console.error(`${read.message}\n\n${USAGE}`);
  process.exitCode = 1;
}

type Args =
  | { readonly kind: "run"; readonly folders: readonly string[] }
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly message: string };

function readArgs(args: readonly string[]): Args {
  try {
    const options = { help: { type: "boolean", default: false } } as const;
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options });
    return values.help ? { kind: "help" } : { kind: "run", folders: positionals };
  } catch (error) {
    return { kind: "wrong", message: error instanceof Error ? error.message : String(error) };
  }
}

async function run(named: readonly string[]): Promise<number> {
  const folders = named.length === 0 ? [new URL("suites", import.meta.url).pathname] : named;
  const differences = readDifferences();
  const results = (await Promise.all(folders.map((folder) => runSuites(folder, differences)))).flat();
  for (const { id, outcome, details } of results) {
    if (outcome === "failed") console.log(`FAILED ${id}\n${details.map((detail) => `  ${detail}`).join("\n")}`);
    if (outcome === "declared") console.log(`DECLARED ${id}: ${details.join(" ")}`);
  }
  for (const [suite, list] of Map.groupBy(results, (result) => result.suite)) printSuite(suite, list);
  console.log(countsOf(results));
  const passed = results.some(({ outcome }) => outcome === "passed");
  return !passed || results.some(({ outcome }) => outcome === "failed" || outcome === "unknown") ? 1 : 0;
}

function printSuite(suite: string, results: readonly CaseResult[]): void {
  const unknown = new Set(results.flatMap(({ outcome, details }) => (outcome === "unknown" ? details : [])));
  const why = unknown.size === 0 ? "" : ` (this runner does not know ${[...unknown].join(", ")})`;
  console.log(`${suite}: ${countsOf(results)}${why}`);
}

/** The outcomes that occur, and always how many passed and failed. */
function countsOf(results: readonly CaseResult[]): string {
  const counts = OUTCOMES.map((outcome) => [outcome, results.filter((one) => one.outcome === outcome).length] as const);
  const shown = counts.filter(([outcome, count]) => count > 0 || outcome === "passed" || outcome === "failed");
  return shown.map(([outcome, count]) => `${count} ${outcome}`).join(", ");
}
