/** `npm run judge -- N`: compares how Gangway and a real API server judge N pods, which are changed at random. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isJsonObject, type JsonObject } from "../../../src/runtime/json.ts";
import { readYamlDocuments } from "../../../src/runtime/yaml.ts";
import { controlPlaneBuilt } from "../build.ts";
import { startControlPlane } from "../control-plane.ts";
import { type Difference, templatesOf } from "./compare.ts";
import { compareJobs } from "./compare-jobs.ts";
import { compareMany } from "./compare-many.ts";

const HELP = `Usage: npm run judge -- [N] [--jobs N] [--seed SEED] [--manifests DIR]

Changes templates at random (types, enums, names, ranges, duplicates, unions), builds their pods, and asks the API
server of the tests about them with dryRun=All. Makes random jobs too (names, kinds, ports), and asks about their
services, config maps and pods. Prints every pod and job that only one of the two refuses.

  N                how many pods; 5000 unless given
  --jobs N         how many jobs; 500 unless given
  --seed SEED      the same seed gives the same pods and jobs; 1 unless given
  --manifests DIR  also takes the templates of the YAML files below this folder
  --help           prints this

Ends with status 1 if the two differ where left-over.ts does not say why. Needs npm run kube:build.`;

/** Of one manifest. Real ones are a few KiB. */
const LIMITS = { bytesMax: 1024 * 1024, depthMax: 100, tokensMax: 1_000_000, referencesMax: 100 };

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(2);
}

function wholeNumber(text: string, name: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) fail(`${name} is ${text}: must be a whole number of at least 1`);
  return number;
}

/** The templates of the manifests below a folder. Documents that are no manifests count as none. */
function templatesBelow(folder: string): readonly JsonObject[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.ya?ml$/.test(name));
  return files.flatMap((name) => {
    const documents = [...readYamlDocuments(readFileSync(join(folder, name), "utf8"), LIMITS)];
    const manifests = documents.flatMap((document) => (document?.kind === "value" ? [document.value] : []));
    return manifests.filter(isJsonObject).flatMap(templatesOf);
  });
}

function printCompared(title: string, differences: readonly Difference[]): void {
  const open = differences.filter(({ leftOver }) => leftOver === null);
  for (const { side, what, said } of open) console.log(`${side}: ${what}\n    ${said.slice(0, 600)}`);
  console.log(`${title}; ${open.length} differ, and ${differences.length - open.length} for a known reason`);
  if (open.length > 0) process.exitCode = 1;
}

const text = { type: "string" } as const;
const options = { help: { type: "boolean" }, jobs: text, seed: text, manifests: text } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
if (values.help === true) {
  console.log(HELP);
  process.exit(0);
}
const [count = "5000", ...more] = positionals;
if (more.length > 0) fail(`${more.join(" ")} is too much; see npm run judge -- --help`);
const folder = values.manifests;
if (folder !== undefined && !existsSync(folder)) fail(`there is no folder ${folder}`);
if (!controlPlaneBuilt()) fail("the control plane is not built: run npm run kube:build, which needs Go");
const wanted = { count: wholeNumber(count, "N"), seed: wholeNumber(values.seed ?? "1", "--seed") };
const jobsCount = wholeNumber(values.jobs ?? "500", "--jobs");
const given = folder === undefined ? [] : templatesBelow(folder);
const plane = await startControlPlane();
try {
  const { compared, refused, differences } = await compareMany(plane, { ...wanted, templates: given });
  printCompared(`${compared} pods, of which both refuse ${refused}`, differences);
  const jobs = await compareJobs(plane, { ...wanted, count: jobsCount });
  const { services, maps } = jobs.accepted;
  const both = `both refuse ${jobs.refused}, and accept ${services} with services and ${maps} with config maps`;
  printCompared(`${jobs.compared} jobs, of which ${both}`, jobs.differences);
} finally {
  await plane.stop();
}
