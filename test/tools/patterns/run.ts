/**
 * Checks that every regular expression of `src` takes at most linear time. `npm run check` runs it; `npm run patterns`
 * also notes the patterns that it proved, and `npm run patterns -- --all` proves all of them again.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkFiles } from "./check-files.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PROVED = join(import.meta.dirname, "proved.txt");

const paths = globSync("src/**/*.ts", { cwd: ROOT })
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => !path.startsWith("src/gen/"))
  .sort();
const files = paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
const noted = readFileSync(PROVED, "utf8").split("\n");
const known = new Set(process.argv.includes("--all") ? [] : noted);

const { problems, proved } = await checkFiles(files, known);
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (process.argv.includes("--note")) writeFileSync(PROVED, `${proved.join("\n")}\n`);
const added = proved.filter((pattern) => !noted.includes(pattern)).length;
if (added > 0) process.stdout.write(`${added} patterns were proved anew; npm run patterns notes them\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
