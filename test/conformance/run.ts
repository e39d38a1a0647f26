import { readDifferences, runSuites } from "./suites.ts";

const [folder = new URL("suites", import.meta.url).pathname] = process.argv.slice(2);
const results = await runSuites(folder, readDifferences());
for (const { id, outcome, details } of results) {
  if (outcome === "failed") console.log(`FAILED ${id}\n${details.map((detail) => `  ${detail}`).join("\n")}`);
  if (outcome === "skipped") console.log(`SKIPPED ${id}: ${details.join(" ")}`);
}
const count = (outcome: string) => results.filter((result) => result.outcome === outcome).length;
console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
process.exitCode = count("failed") > 0 || results.length === 0 ? 1 : 0;
