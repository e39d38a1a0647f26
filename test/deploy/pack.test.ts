import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { installPacked, root } from "./packed.ts";

const { directory, installed, remove } = installPacked();

type Manifest = { readonly dependencies: Record<string, string>; readonly bin: Record<string, string> };

after(remove);

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
}

test("the package holds the files to run, and no development files", () => {
  const files = filesOf(installed);
  const folders = new Set(files.map((file) => file.split("/")[0]));
  const expected = [
    ...["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md", "bin", "clients"],
    ...["deploy", "dist", "docs", "examples"],
    ...["migrations", "package.json", "proto"],
  ];
  assert.deepEqual([...folders].sort(), expected);
  assert.deepEqual(
    files.filter((file) => /(?<!\.d)\.ts$/.test(file)),
    [],
  );
});

test("the package has every other file of src beside the compiled ones, all migrations and all examples", () => {
  const read = (folder: string) => filesOf(join(root, folder)).filter((file) => !/\.(ts|md)$/.test(file));
  for (const file of read("src")) assert.ok(existsSync(join(installed, "dist", file)), file);
  for (const folder of ["migrations", "examples", "clients/proto"]) {
    for (const file of read(folder)) assert.ok(existsSync(join(installed, folder, file)), file);
  }
  assert.ok(read("src").includes("gen/gangway.binpb"));
});

/** A script that browsers run. */
function isOfPage(file: string): boolean {
  return file.startsWith("console/");
}

test("every compiled file has its declarations", () => {
  const files = new Set(filesOf(join(installed, "dist")));
  const compiled = [...files].filter((file) => file.endsWith(".js") && !isOfPage(file));
  assert.ok(compiled.length > 200);
  assert.deepEqual(
    compiled.filter((file) => !files.has(file.replace(/\.js$/, ".d.ts"))),
    [],
  );
});

test("compiled files import only files of the package, Node's own modules and dependencies", () => {
  const { dependencies } = manifest();
  const allowed = (name: string) => name.startsWith("node:") || builtinModules.includes(name) || name in dependencies;
  const dist = join(installed, "dist");
  for (const file of filesOf(dist).filter((name) => name.endsWith(".js") && !isOfPage(name))) {
    const text = readFileSync(join(dist, file), "utf8");
    for (const [, from, dynamic] of text.matchAll(
      /^(?:import|export)\b[^"';]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gm,
    )) {
      const target = from ?? dynamic ?? "";
      if (target.startsWith(".")) assert.ok(existsSync(join(dist, dirname(file), target)), `${file} imports ${target}`);
      else assert.ok(allowed(packageOf(target)), `${file} imports ${target}`);
    }
  }
});

function packageOf(target: string): string {
  return target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
}

test("the installed command line needs one file, under the Node of a shell and under its own", () => {
  const main = join(installed, "dist/main.js");
  renameSync(main, `${main}.away`);
  try {
    const path = `${dirname(process.execPath)}:/usr/bin:/bin`;
    const env = { PATH: path, XDG_CACHE_HOME: join(directory, "cache"), NODE_COMPILE_CACHE: "" };
    for (const bin of ["bin/gangway", "bin/gangway.js"]) {
      const ran = spawnSync(join(installed, bin), ["list", "--help"], { encoding: "utf8", env });
      assert.match(ran.stdout, /^Usage: gangway list/, ran.stderr);
    }
  } finally {
    renameSync(`${main}.away`, main);
  }
});

test("the installed command serves, with its console, and ends without an error when interrupted", async () => {
  const bin = join(installed, manifest().bin["gangway"] ?? "");
  const args = [bin, "up", "--no-examples", "--listen", "127.0.0.1:0", "--data", join(directory, "data")];
  const env = { ...process.env, GANGWAY_CONSOLE_LISTEN: "127.0.0.1:0" };
  const child = spawn(process.execPath, args, { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const ended = once(child, "close");
  const listening = new Promise<boolean>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (/listening on \S+:\d+/.test(output)) resolve(true);
      });
    }
    void ended.then(() => resolve(false));
  });
  assert.ok(await listening, output);
  const console = /· console (\S+)/.exec(output)?.[1] ?? "";
  const page = await fetch(`${console}/jobs`, { headers: { accept: "text/html" } });
  const script = / src="([^"]+)"/.exec(await page.text())?.[1] ?? "";
  assert.equal((await fetch(`${console}${script}`)).headers.get("content-type"), "text/javascript; charset=utf-8");
  child.kill("SIGINT");
  const [code] = await ended;
  assert.equal(code, 0, output);
});
