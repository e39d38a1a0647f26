import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitUntil } from "../support/bounded.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * The main module of a package without other files. It prints its arguments, in syntax that only a Node that strips
 * types can read.
 */
const MAIN = `
const said: string = JSON.stringify({ major: Number.parseInt(process.versions.node, 10), args: process.argv.slice(2) });
if (process.argv[2] === "block") {
  process.stdout.write(process.pid + "\\n", () => {
    for (;;) Math.random();
  });
} else if (process.argv[2] === "idle") {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  setInterval(() => {}, 1000);
  process.stdout.write(process.pid + "\\n");
} else if (process.argv[2] === "hang") {
  process.on("SIGTERM", () => process.exit(42));
  setInterval(() => {}, 1000);
} else process.exitCode = Number(process.argv[2] ?? 0);
if (!["block", "idle"].includes(process.argv[2] ?? "")) process.stdout.write(said + "\\n");
`;

/** A copy of bin/ with a small main beside it, in a folder from which only the given Node is found. */
function packageWith(t: TestContext, options: { node: string | null; above?: boolean }): string {
  const top = mkdtempSync(join(tmpdir(), "gangway-bin-"));
  t.after(() => rmSync(top, { recursive: true }));
  const root = join(top, "package");
  mkdirSync(join(root, "src"), { recursive: true });
  cpSync(join(ROOT, "bin"), join(root, "bin"), { recursive: true });
  writeFileSync(join(root, "package.json"), `{"type": "module"}`);
  writeFileSync(join(root, "src/main.ts"), MAIN);
  if (options.node !== null) {
    const folder = join(options.above === true ? top : root, "node_modules/.bin");
    mkdirSync(folder, { recursive: true });
    symlinkSync(options.node, join(folder, "node"));
  }
  return join(root, "bin/gangway");
}

/** The first Node on the path that is too old to strip types. */
function oldNode(): string | null {
  const found = (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "node"))
    .filter(existsSync);
  const major = (node: string) =>
    Number.parseInt(execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }), 10);
  return found.find((node) => major(node) >= 18 && major(node) < 24) ?? null;
}

function start(
  node: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(node, args, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

test("a Node that is new enough imports the main module itself", async (t) => {
  const bin = packageWith(t, { node: null });
  const ran = await start(process.execPath, [bin, "3", "--two words"]);
  assert.deepEqual(ran, { code: 3, stdout: `{"major":24,"args":["3","--two words"]}\n`, stderr: "" });
});

test("the file is executable from a clone", () => {
  assert.match(
    execFileSync(
      process.execPath,
      ["-p", `fs.statSync(${JSON.stringify(join(ROOT, "bin/gangway"))}).mode.toString(8)`],
      { encoding: "utf8" },
    ),
    /755/,
  );
});

test("a shell replaces itself by the package's own Node, whichever Node the path has", async (t) => {
  const bin = packageWith(t, { node: process.execPath });
  const link = join(dirname(bin), "a link");
  symlinkSync(bin, link);
  for (const path of [bin, link]) {
    const child = spawn(path, ["idle"], { stdio: ["ignore", "pipe", "inherit"], env: { PATH: "/usr/bin:/bin" } });
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    assert.equal(Number(String(text)), child.pid);
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

test("a shell takes the Node of the path if node_modules has none, and passes arguments on", async (t) => {
  const bin = packageWith(t, { node: null });
  const ran = await start(bin, ["3", "two words", "*"], { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` });
  assert.deepEqual(ran, { code: 3, stdout: `{"major":24,"args":["3","two words","*"]}\n`, stderr: "" });
});

const old = oldNode();
const skip = old === null ? "no Node older than 24 is on the path" : false;

for (const above of [false, true]) {
  test(`an older Node runs it again with the package's own${above ? ", from a folder above too" : ""}`, {
    skip,
  }, async (t) => {
    const bin = packageWith(t, { node: process.execPath, above });
    const ran = await start(old ?? "", [bin, "5", "-o", "json"]);
    assert.deepEqual(ran, { code: 5, stdout: `{"major":24,"args":["5","-o","json"]}\n`, stderr: "" });
  });
}

test("a signal reaches the second run, and its exit status comes back", { skip }, async (t) => {
  const bin = packageWith(t, { node: process.execPath });
  const child = spawn(old ?? "", [bin, "hang"], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "exit"), [42, null]);
});

for (const args of [["idle"], ["idle", "up"], ["block", "serve"]]) {
  test(`no second run is left after the first is killed (${args.join(" ")})`, { skip }, async (t) => {
    const bin = packageWith(t, { node: process.execPath });
    const child = spawn(old ?? "", [bin, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    const pid = Number(String(text));
    t.after(() => {
      if (isAlive(pid)) process.kill(pid, "SIGKILL");
    });
    assert.ok(isAlive(pid));
    child.kill("SIGKILL");
    await waitUntil("the second run has ended", () => !isAlive(pid));
  });
}

/** False for a process that has ended, also if its parent has not collected its status. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

for (const [name, node] of [
  ["without one", null],
  ["with one that is too old as well", old],
] as const) {
  test(`an older Node ${name} prints one sentence that says what is needed`, { skip }, async (t) => {
    const bin = packageWith(t, { node });
    const ran = await start(old ?? "", [bin, "list"]);
    assert.equal(ran.code, 2);
    assert.equal(ran.stdout, "");
    assert.match(ran.stderr, /^gangway needs Node 24 or newer, but this is [\d.]+ .*\n$/);
  });
}
