import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type LockedPackages, lackingPackages } from "../../deploy/developer-packages.ts";
import { root } from "./packed.ts";

type Lock = {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly engines?: unknown; readonly hasInstallScript?: boolean }>
  >;
};
type Manifest = {
  readonly scripts: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
};

const read = (file: string) => readFileSync(join(root, file), "utf8");
const { packages } = JSON.parse(read("package-lock.json")) as Lock;
const manifest = JSON.parse(read("package.json")) as Manifest;

test("a user's install warns of no engine: only the Node that it brings runs its packages", () => {
  const warned = Object.entries(packages).filter(([path, of]) => path !== "" && of.dev !== true && of.engines);
  assert.deepEqual(
    warned.map(([path]) => path),
    [],
    "delete `engines` of these entries in package-lock.json",
  );
});

test("an install runs no script of a package, and warns of none", () => {
  const withScript = Object.entries(packages).flatMap(([path, { hasInstallScript }]) =>
    hasInstallScript === true ? [path.replace(/^.*node_modules\//, "")] : [],
  );
  const unsaid = withScript.filter((name) => manifest.allowScripts[name] !== false && name !== "fsevents");
  assert.deepEqual(unsaid, []);
});

test("an install leaves out what only developers need", () => {
  assert.match(read(".npmrc"), /^omit=dev$/m);
  for (const name of Object.keys(manifest.devDependencies)) {
    assert.ok(name.startsWith("@types/") || packages[`node_modules/${name}`]?.dev === true, name);
  }
});

/** The packages that the file and its imports load, types left out. */
function importsOf(file: string, seen = new Set<string>()): readonly string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const specifiers = [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, from, dynamic]) => from ?? dynamic ?? "");
  return specifiers.flatMap((one) => {
    if (!one.startsWith(".")) return [one];
    return /\.[jt]s$/.test(one) ? importsOf(join(dirname(file), one), seen) : [];
  });
}

const IMPORT = /^(?:import|export)\b(?! type)[^"';]*?\bfrom "([^"]+)"|\bimport\("([^"]+)"\)/gm;
const BRINGS = "node deploy/developer-packages.ts && ";
/** A script that runs tests as programs of their own, which load what it does not. */
const RUNS_TESTS = /"--test"/;
const DEVELOPERS_COMMANDS = /\b(tsc|biome|buf)\b/;

test("each npm script that needs packages of developers installs them first", () => {
  const isDevelopers = (name: string) =>
    Object.keys(manifest.devDependencies).some((one) => name === one || name.startsWith(`${one}/`));
  const needing = Object.entries(manifest.scripts).filter(([, command]) => {
    const files = [...command.matchAll(/node (?:--\S+ )*(\S+\.ts)/g)].map(([, file = ""]) => file);
    return (
      DEVELOPERS_COMMANDS.test(command) ||
      files.some((file) => RUNS_TESTS.test(read(file)) || importsOf(join(root, file)).some(isDevelopers))
    );
  });
  assert.ok(needing.length >= 9);
  // These call programs of developers by their path.
  const more = ["generate", "prepack"].map((name) => [name, manifest.scripts[name] ?? ""] as const);
  for (const [name, command] of [...needing, ...more]) assert.ok(command.startsWith(BRINGS), name);
  assert.match(read("test/run.ts"), /^await bringDeveloperPackages\(\);$/m);
});

const lacks: Readonly<
  Record<string, { locked: LockedPackages; installed: LockedPackages; lacking: readonly string[] }>
> = {
  "a package that is not installed": { locked: { a: { version: "1" } }, installed: {}, lacking: ["a"] },
  "a package at another version": {
    locked: { a: { version: "2" } },
    installed: { a: { version: "1" } },
    lacking: ["a"],
  },
  "nothing, if all are installed, or more": {
    locked: { "": { version: "1" }, a: { version: "1" } },
    installed: { a: { version: "1" }, b: { version: "1" } },
    lacking: [],
  },
  "nothing, if only packages of other machines are absent": {
    locked: { a: { version: "1", optional: true }, b: { version: "1", devOptional: true } },
    installed: {},
    lacking: [],
  },
};
for (const [name, { locked, installed, lacking }] of Object.entries(lacks)) {
  test(`a clone lacks ${name}`, () => assert.deepEqual(lackingPackages(locked, installed), lacking));
}

/** Installs what the lock file names: slowly, and with a line in `runs` for each run. */
const NPM = `
const fs = require("node:fs");
fs.appendFileSync("runs", process.argv.slice(2).join(" ") + "\\n");
console.log("npm was here");
setTimeout(() => fs.copyFileSync("package-lock.json", "node_modules/.package-lock.json"), 500);
`;

/** A clone with one package of developers, which is not installed. */
class Clone {
  readonly folder: string;
  readonly #npm: string;

  constructor(t: TestContext, npm = NPM) {
    this.folder = mkdtempSync(join(tmpdir(), "gangway-install-"));
    t.after(() => rmSync(this.folder, { recursive: true }));
    const files = ["deploy/developer-packages.ts", "src/adapters/store/db/directory-lock.ts", "src/runtime/lists.ts"];
    for (const file of files) {
      mkdirSync(dirname(join(this.folder, file)), { recursive: true });
      copyFileSync(join(root, file), join(this.folder, file));
    }
    mkdirSync(join(this.folder, "node_modules"));
    this.write("package.json", '{ "type": "module" }');
    this.write("package-lock.json", '{ "packages": { "": {}, "node_modules/a": { "version": "1", "dev": true } } }');
    this.write("npm/npm-cli.cjs", npm);
    this.#npm = join(this.folder, "npm/npm-cli.js");
    this.write("npm/package.json", '{ "type": "commonjs" }');
    symlinkSync("npm-cli.cjs", this.#npm);
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), text);
  }

  runs(): readonly string[] {
    return readFileSync(join(this.folder, "runs"), "utf8").trim().split("\n");
  }

  async bring(): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
    const child = spawn(process.execPath, [join(this.folder, "deploy/developer-packages.ts")], {
      env: { ...process.env, npm_execpath: this.#npm, CI: "true" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const texts = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].on("data", (chunk: Buffer) => {
        texts[stream] += chunk.toString();
      });
    }
    const [code] = (await once(child, "close")) as [number];
    return { code, ...texts };
  }
}

test("several runs at once install what is missing once, and say so on stderr; a later run does nothing", async (t) => {
  const clone = new Clone(t);
  const ran = await Promise.all([clone.bring(), clone.bring(), clone.bring()]);
  assert.deepEqual(
    ran.map(({ code, stdout }) => ({ code, stdout })),
    ran.map(() => ({ code: 0, stdout: "" })),
  );
  assert.equal(clone.runs().length, 1);
  assert.match(clone.runs()[0] ?? "", /^install --include=dev --no-save /);
  const said = ran.map(({ stderr }) => stderr).join("");
  assert.match(said, /installing the packages that only developers need, once: 1 packages/);
  assert.match(said, /waiting for it/);
  assert.deepEqual(await clone.bring(), { code: 0, stdout: "", stderr: "" });
});

test("a clone whose lock file has changed installs again", async (t) => {
  const clone = new Clone(t);
  await clone.bring();
  clone.write("package-lock.json", '{ "packages": { "node_modules/a": { "version": "2", "dev": true } } }');
  assert.equal((await clone.bring()).code, 0);
  assert.equal(clone.runs().length, 2);
});

test("an install that fails ends the script, and says what to do", async (t) => {
  const clone = new Clone(t, "process.exit(7)");
  const { code, stderr } = await clone.bring();
  assert.equal(code, 1);
  assert.match(stderr, /ended with 7\): run "npm ci --include=dev"/);
});

test("packages behind a link are not installed: the folder that it names is another clone's", async (t) => {
  const clone = new Clone(t);
  const other = mkdtempSync(join(tmpdir(), "gangway-install-"));
  t.after(() => rmSync(other, { recursive: true }));
  rmSync(join(clone.folder, "node_modules"), { recursive: true });
  mkdirSync(join(other, "node_modules"));
  symlinkSync(join(other, "node_modules"), join(clone.folder, "node_modules"));
  const { code, stderr } = await clone.bring();
  assert.equal(code, 1);
  assert.ok(stderr.includes(`in ${other}`), stderr);
});
