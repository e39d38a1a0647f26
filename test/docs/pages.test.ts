/** Checks the pages without running their commands: links, names of scripts and paths, sizes, first sentences. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { run } from "../cli/harness.ts";
import { ACL_RULES } from "../processes/conserve-servers.ts";
import { commandsOf } from "./commands.ts";
import { ARCHITECTURE, allPages, anchorsOf, blocksOf, inlineCodeOf, linksOf, type Page, page, root } from "./pages.ts";

const README_BYTES_MAX = 8_000;
/** A name that the package exports; it looks like a path. */
const PLUGIN_EXPORT = "gangway/plugin";

const pages = allPages();
const docs = pages.filter(({ path }) => /^docs\/[^/]+$/.test(path));

test("every link of a page leads to a file of the project, and to a heading that it has", () => {
  const broken = pages.flatMap((of) =>
    linksOf(of)
      .filter((target) => !/^https?:/.test(target) && !leads(of, target))
      .map((target) => `${of.path}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

function leads(from: Page, target: string): boolean {
  const [file = "", anchor] = target.split("#");
  const path = file === "" ? from.path : normalize(join(dirname(from.path), file));
  if (!existsSync(join(root, path))) return false;
  return anchor === undefined || anchorsOf(page(path)).has(anchor);
}

test("README.md is short, and links every page of docs", () => {
  const readme = page("README.md");
  assert.ok(
    Buffer.byteLength(readme.text) <= README_BYTES_MAX,
    `README.md has ${Buffer.byteLength(readme.text)} bytes`,
  );
  const linked = new Set(linksOf(readme));
  assert.deepEqual(
    docs.map(({ path }) => path).filter((path) => !linked.has(path)),
    [],
  );
});

test("every page of docs has a name in kebab-case, and begins with what the reader can do after it", () => {
  for (const { path, text } of docs) {
    assert.match(path, /^docs\/[a-z0-9]+(-[a-z0-9]+)*\.md$/);
    assert.match(text, /^# .+\n\nAfter this page you can /, path);
  }
});

test("commands are in blocks of sh alone, which are run", () => {
  const others = pages.flatMap((of) => blocksOf(of).filter(({ language }) => language !== "sh"));
  assert.deepEqual(
    [...new Set(others.map(({ language }) => language))].filter((name) => !["", "js", "ts", "python"].includes(name)),
    [],
  );
  const commands = others.flatMap(
    ({ text }) => text.match(/^ *(npm|bin\/gangway|gangway|grpcurl|kubectl|docker) .*/gm) ?? [],
  );
  assert.deepEqual(commands, []);
});

test("every reason for which a job waits is one of the code", () => {
  const [, section = ""] = page("docs/concepts.md").text.split("## Why a job waits");
  const reasons = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)`/gm)].map(([, reason = ""]) => reason);
  const folders = ["src/core/plan", "src/core/reconcile", "src/core/job", "src/intake"];
  const sources = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(root, folder, name), "utf8")),
  );
  assert.ok(reasons.length > 10);
  assert.deepEqual(
    reasons.filter((reason) => !sources.some((text) => text.includes(`"${reason}"`))),
    [],
  );
});

test("the rules for a user of Redis are those that the tests' Redis has", () => {
  const rule = /^ACL SETUSER gangway on >PASSWORD (.*)$/m.exec(page("docs/operating.md").text)?.[1];
  assert.equal(rule, ACL_RULES.join(" "));
});

test("every script of npm that a page names exists", () => {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };
  const own = new Set(["ci", "install", "pack", ...Object.keys(manifest.scripts)]);
  const named = pages.flatMap((of) => {
    const texts = [...inlineCodeOf(of), ...commandsOf(of).map(({ text }) => text)];
    return texts.flatMap((text) =>
      [...text.matchAll(/\bnpm (?:run )?([a-z][a-z:-]*)/g)].map(([, script = ""]) => ({ path: of.path, script })),
    );
  });
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter(({ script }) => !own.has(script)),
    [],
  );
});

test("every `gangway` command in the text of a page exists, with its options", async () => {
  const commands = pages.flatMap((of) =>
    inlineCodeOf(of)
      .map((text) => /^(?:bin\/)?gangway ([a-z].*)$/.exec(text)?.[1])
      .filter((text) => text !== undefined)
      .map((text) => ({ path: of.path, words: text.split(" -- ")[0]?.split(" ") ?? [] })),
  );
  assert.ok(commands.length > 10);
  for (const { path, words } of commands) {
    const end = words.findIndex((word) => !/^[a-z][a-z-]*$/.test(word));
    const names = words.slice(0, end < 0 ? 2 : Math.min(2, end));
    const { exitCode, stdout } = await run([...names, "--help"]);
    assert.equal(exitCode, 0, `${path}: gangway ${words.join(" ")}`);
    const [command = ""] = names;
    assert.match(stdout, new RegExp(`^Usage: gangway ${command}\\b`), `${path}: there is no gangway ${command}`);
    for (const option of words.filter((word) => word.startsWith("--")))
      assert.ok(stdout.includes(option.split("=")[0] ?? ""), `${path}: gangway ${words.join(" ")} has no ${option}`);
  }
});

test("every path that the map of the code names exists", () => {
  const named = ARCHITECTURE.flatMap((path) => inlineCodeOf(page(path))).filter(
    (code) => /^[a-z0-9-]+(\/[a-z0-9-]+)*\/?(\.[a-z]+)?$/.test(code) && code.includes("/"),
  );
  assert.ok(named.length > 20);
  assert.deepEqual(
    named.filter((path) => path !== PLUGIN_EXPORT && !["", "src/"].some((base) => found(join(root, base, path)))),
    [],
  );
});

/** A file, a folder, or a source without its `.ts`. */
function found(path: string): boolean {
  return existsSync(path) || existsSync(`${path}.ts`);
}

test("the map of the code names every folder of src", () => {
  const { text } = page("docs/architecture/README.md");
  const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(
    folders.map(({ name }) => name).filter((name) => !text.includes(`\`${name}\``) && !text.includes(`\`${name}/`)),
    [],
  );
});

test("the map of the tests names every folder of test", () => {
  const { text } = page("test/README.md");
  const foldersOf = (path: string) =>
    readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  const tools = foldersOf("test/tools").map((name) => `tools/${name}`);
  const folders = [...foldersOf("test").filter((name) => name !== "tools"), ...tools];
  assert.deepEqual(
    folders.filter((name) => !text.includes(`| \`${name}\` `)),
    [],
  );
});
