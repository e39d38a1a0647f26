import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import {
  brokenConsoleRules,
  brokenRules,
  circlesOf,
  declares,
  folderCirclesOf,
  fullFolders,
  functionLinks,
  longFiles,
  otherWords,
  type SourceFile,
  sharedTypeNames,
  wideLines,
} from "./rules.ts";

const root = new URL("../../", import.meta.url);

/** All files of a folder whose names end like that. Paths are relative to the folder. */
function filesOf(folder: string, ending: RegExp): readonly SourceFile[] {
  const top = new URL(`${folder}/`, root);
  return readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(top.pathname.length).replace(/^\//, ""))
    .map((path) => ({ path, text: readFileSync(new URL(path, top), "utf8") }));
}

/** All files of src, except the generated ones. */
function sourceFiles(): readonly SourceFile[] {
  const files = filesOf("src", /\.ts$/).filter(({ path }) => !path.startsWith("gen/"));
  assert.ok(files.length > 20, "src was found");
  return files;
}

/** Code of the folders beside src, with paths such as `test/run.ts`. Protos of others are in `proto/vendor`. */
function otherCode(): readonly SourceFile[] {
  return ["test", "proto", "deploy", "console"].flatMap((folder) => {
    const files = filesOf(folder, /\.(tsx?|css|js|go|proto)$/).filter(
      ({ path }) => !/^vendor\/|node_modules\//.test(path),
    );
    assert.ok(files.length > 0, `${folder} was found`);
    return files.map(({ path, text }) => ({ path: `${folder}/${path}`, text }));
  });
}

test("every file of src keeps the layout's rules", () => {
  assert.deepEqual(sourceFiles().flatMap(brokenRules), []);
});

test("no folder of core has more files than a reader can look through", () => {
  assert.deepEqual(fullFolders(sourceFiles()), []);
});

test("the tidy check notices: a folder of core has too many files", () => {
  const files = Array.from({ length: 26 }, (_, at) => ({ path: `core/plan/usage/x${at}.ts`, text: "" }));
  assert.deepEqual(fullFolders(files), ["core/plan/usage: 26 files, at most 25"]);
});

test("files from 300 lines on are named, which does not fail", (t) => {
  for (const one of longFiles(sourceFiles())) t.diagnostic(`long: ${one}`);
  const file = (path: string, lines: number) => ({ path, text: "\n".repeat(lines) });
  assert.deepEqual(longFiles([file("a.ts", 299), file("b.ts", 300)]), ["b.ts: 300 lines"]);
});

test("types and files of the planner's core speak its language", () => {
  assert.deepEqual(otherWords(sourceFiles()), []);
});

test("the tidy check notices: a type or a file of the planner's core has another word", () => {
  const text = "export type LaneWalk = 1;\ntype CapacityEntry = 2;\nexport class Taker {}\ntype PlaceInLine = 3;\n";
  const files = [
    { path: "core/plan/queues/gang-lanes.ts", text },
    { path: "core/job/lane.ts", text },
  ];
  const found = ["ganglanes", "LaneWalk", "Taker"].map((name) => `core/plan/queues/gang-lanes.ts: ${name}`);
  assert.deepEqual(otherWords(files), found);
});

test("the planner's page links functions that exist: where a gang class is refused, woken and admitted", () => {
  const page = readFileSync(new URL("src/core/plan/README.md", root), "utf8");
  const links = functionLinks(page);
  assert.ok(links.length >= 3, "the page has links");
  for (const { name, path } of links) {
    const text = readFileSync(new URL(`src/core/plan/${path}`, root), "utf8");
    assert.ok(declares(text, name), `${path} has ${name}`);
  }
  assert.equal(declares("export function refused(): void {}\n", "refuse"), false);
});

/** All files of the console. */
function consoleFiles(): readonly SourceFile[] {
  return otherCode().filter(({ path }) => path.startsWith("console/"));
}

test("files of the console keep its rules", () => {
  assert.deepEqual(consoleFiles().flatMap(brokenConsoleRules), []);
  assert.deepEqual(longFiles(consoleFiles()), []);
  assert.deepEqual(circlesOf(consoleFiles()), []);
});

const consoleViolations: Record<string, SourceFile> = {
  "the console may not import the service": {
    path: "console/src/x.ts",
    text: 'import { x } from "../../src/api/web/door.ts";',
  },
  "no markup of others": { path: "console/src/x.tsx", text: "<p dangerouslySetInnerHTML={html} />" },
  "files of the console are kebab-case": { path: "console/src/JobView.tsx", text: "" },
};
for (const [name, file] of Object.entries(consoleViolations)) {
  test(`the tidy check notices: ${name}`, () => assert.equal(brokenConsoleRules(file).length, 1));
}

test("no files of src import each other in a circle, types included", () => {
  assert.deepEqual(circlesOf(sourceFiles()), []);
});

test("the tidy check notices: files import each other in a circle by their types", () => {
  const file = (path: string, target: string) => ({ path, text: `import type { T } from "${target}";\n` });
  const files = [
    file("a/x.ts", "../b/y.ts"),
    file("b/y.ts", "./z.ts"),
    file("b/z.ts", "../a/x.ts"),
    file("c.ts", "./a/x.ts"),
  ];
  assert.deepEqual(circlesOf(files), ["a/x.ts, b/y.ts, b/z.ts"]);
});

/** Circles of folders that stay, each with its reason. */
const FOLDER_CIRCLES = [
  // What prints, pages and reads manifests for a command takes the command's run, which has the client and the output.
  "cli/auth, cli/manifest, cli/output, cli/rpc, cli/run, cli/shell",
];

test("no other folders of src import each other in a circle, types included", () => {
  assert.deepEqual(folderCirclesOf(sourceFiles()), FOLDER_CIRCLES);
});

test("the tidy check notices: folders import each other in a circle, although no files do", () => {
  const file = (path: string, target: string) => ({ path, text: `import { x } from "${target}";\n` });
  const ground = { path: "a/ports.ts", text: "" };
  const circle = [
    file("a/x/one.ts", "../y/two.ts"),
    { path: "a/y/two.ts", text: "" },
    file("a/y/three.ts", "../x/four.ts"),
  ];
  const files = [...circle, { path: "a/x/four.ts", text: "" }, ground, file("a/x/five.ts", "../ports.ts")];
  assert.deepEqual(folderCirclesOf([...files, file("a/face.ts", "./x/one.ts")]), ["a/x, a/y"]);
});

test("lines of test, proto, deploy and console end at 120 columns", () => {
  assert.deepEqual(otherCode().flatMap(wideLines), []);
});

test("the tidy check notices: a line of a test ends beyond 120 columns", () => {
  const line = (columns: number) => `// ${"x".repeat(columns - 3)}\n`;
  const file = { path: "test/x.ts", text: `${line(120)}${line(121)}` };
  assert.deepEqual(wideLines(file), ["test/x.ts:2: more than 120 columns"]);
});

test("no page has the marks of a merge", () => {
  const folders = ["src", "docs", "deploy", "test"];
  const pages = folders.flatMap((folder) => filesOf(folder, /\.(md|ya?ml|sql|json)$/));
  const ofRoot = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map((path) => {
    return { path, text: readFileSync(new URL(path, root), "utf8") };
  });
  assert.deepEqual(
    [...pages, ...ofRoot].filter(({ text }) => /^(<{7}|>{7}) /m.test(text)).map(({ path }) => path),
    [],
  );
});

test("no two files of src export types of the same name", () => {
  assert.deepEqual(sharedTypeNames(sourceFiles()), []);
});

test("the tidy check notices: two files export types of the same name", () => {
  const files = [
    { path: "api/x.ts", text: "export type Lease = { readonly ms: number };\ntype Own = 1;" },
    { path: "tokens/x.ts", text: "export class Lease {}\ntype Own = 2;" },
    { path: "worker/x.ts", text: "export type Leases = readonly string[];" },
  ];
  assert.deepEqual(sharedTypeNames(files), ["Lease: api/x.ts, tokens/x.ts"]);
});

const violations: Record<string, { path: string; text: string }> = {
  "core may not use a package": { path: "core/job/x.ts", text: 'import { x } from "pino";' },
  "core may not import a stage": { path: "core/job/x.ts", text: 'import { x } from "../../worker/step.ts";' },
  "core's rooms look one way": { path: "core/job/x.ts", text: 'import type { x } from "../plan/plan.ts";' },
  "only the planner's queues write the records of classes and queues": {
    path: "core/plan/round/x.ts",
    text: 'import { written } from "../queues/records.ts";',
  },
  "the planner's rooms look one way": {
    path: "core/plan/usage/x.ts",
    text: 'import type { x } from "../fit/fleet.ts";',
  },
  "no room of the planner is looked at from outside": {
    path: "planner/x.ts",
    text: 'import type { x } from "../core/plan/queues/records.ts";',
  },
  "no room of the planner looks at its ends": {
    path: "core/plan/explain/x.ts",
    text: 'import type { x } from "../apply/apply-plan.ts";',
  },
  "no room of the planner looks at its root": {
    path: "core/plan/round/x.ts",
    text: 'import type { x } from "../planner.ts";',
  },
  "core may not read the clock": { path: "core/job/x.ts", text: "export const now = () => Date.now();" },
  "a stage may not import another": { path: "planner/x.ts", text: 'import { x } from "../worker/step.ts";' },
  "a stage may not import an adapter": { path: "api/x.ts", text: 'import type { x } from "../adapters/store/db.ts";' },
  "an adapter may not import another": {
    path: "adapters/store/x.ts",
    text: 'import { x } from "../counters/in-process/in-process-counters.ts";',
  },
  "an adapter may not import a stage": {
    path: "adapters/store/x.ts",
    text: 'import type { x } from "../../worker/ports.ts";',
  },
  "a dynamic import counts too": { path: "worker/x.ts", text: 'await import("../planner/planner.ts");' },
  "a re-export counts too": { path: "worker/x.ts", text: 'export { x } from "../planner/planner.ts";' },
  "proto types stop in api": { path: "intake/x.ts", text: 'import type { Job } from "../gen/gangway/v1/job_pb.ts";' },
  "rows stop in the store": { path: "planner/x.ts", text: 'import pg from "pg";' },
  "Kubernetes types stop in the cluster adapter": {
    path: "worker/x.ts",
    text: 'import type { V1Pod } from "@kubernetes/client-node";',
  },
  "only compose imports main": { path: "cli/x.ts", text: 'import { x } from "../main.ts";' },
  "a stage may not import compose": { path: "worker/x.ts", text: 'import { x } from "../compose/serve.ts";' },
  "a file at the root of src must be listed": { path: "helpers.ts", text: "" },
  "a folder of src must be listed": { path: "helpers/x.ts", text: "" },
  "an adapter must be listed": { path: "adapters/kafka/x.ts", text: "" },
  "the store's folders are listed": { path: "adapters/store/misc/x.ts", text: "" },
  "core has no variable of a module": { path: "core/job/x.ts", text: "let served = 0;" },
  "core has no collection that a module fills": { path: "core/job/x.ts", text: "const served = new Map();" },
  "lines end at 120 columns, comments too": { path: "cli/x.ts", text: `// ${"x".repeat(118)}` },
  "only config reads the environment": { path: "cli/x.ts", text: "export const x = process.env;" },
  "signals are linked by linkedController": { path: "cli/x.ts", text: "const both = AbortSignal.any([one, other]);" },
  "no list is pushed as arguments": { path: "cli/x.ts", text: "errors.push(first, ...others.map(textOf));" },
  "the greatest of a list is no call with its items": { path: "cli/x.ts", text: "Math.max(0, ...sizes.map(of));" },
  "no default exports": { path: "cli/x.ts", text: "export default 1;" },
  "file names are kebab-case": { path: "cli/someFile.ts", text: "" },
  "files end at 500 lines": { path: "cli/x.ts", text: "\n".repeat(501) },
};
for (const [name, file] of Object.entries(violations)) {
  test(`the tidy check notices: ${name}`, () => assert.equal(brokenRules(file).length, 1));
}
