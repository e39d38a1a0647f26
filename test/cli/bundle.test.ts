import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { startFixture } from "../api/fixture.ts";
import { copyClone, linkPackages } from "../deploy/packed.ts";
import { pytorchManifest, run } from "./harness.ts";

/** A clone of its own, where no bundle was made yet. */
const clone = mkdtempSync(join(tmpdir(), "gangway-clone-"));
const bin = join(clone, "bin/gangway.js");
const env = { ...process.env, XDG_CACHE_HOME: join(clone, ".cache"), NODE_COMPILE_CACHE: "", GANGWAY_CONFIG: "" };
copyClone(clone);
linkPackages(join(clone, "node_modules"));
after(() => rmSync(clone, { recursive: true }));

const gangway = async (args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<string> =>
  (await promisify(execFile)(process.execPath, [bin, ...args], { env: { ...env, ...more }, cwd: clone })).stdout;

/** The text without ages: of two commands, the second may see the job a second older. */
function ageless(text: string): string {
  return text.replace(/ +\d+s\b/g, " AGE");
}

function bundles(): readonly string[] {
  return readdirSync(join(clone, "node_modules/.gangway")).filter((name) => name.endsWith(".cjs"));
}

const version = (JSON.parse(readFileSync(join(clone, "package.json"), "utf8")) as { version: string }).version;

test("calls at once make one bundle, and each of them succeeds", async () => {
  const outputs = await Promise.all(Array.from({ length: 4 }, () => gangway(["--version"])));
  assert.deepEqual(new Set(outputs), new Set([`${version}\n`]));
  assert.equal(bundles().length, 1);
});

test("the help of every command from the bundle is that of the sources", async () => {
  const { stdout: overview } = await run(["--help"]);
  const verbs = [...overview.matchAll(/^ {2}([a-z][a-z-]*)\b/gm)].map(([, verb = ""]) => verb);
  assert.ok(verbs.length > 25);
  for (const args of [["--help"], ...verbs.map((verb) => [verb, "--help"])]) {
    assert.equal(await gangway(args), (await run(args)).stdout, args.join(" "));
  }
});

test("commands from the bundle call the service, and fail as those from the sources do", async (t) => {
  const { api } = await startFixture(t);
  const more = { GANGWAY_ADDRESS: api.address };
  writeFileSync(join(clone, "job.yaml"), pytorchManifest("train"));
  assert.match(await gangway(["submit", "job.yaml"], more), /train created/);
  const world = { address: api.address };
  const lines = [
    ["list"],
    ["get", "train", "-o", "yaml"],
    ["get", "-o", "name"],
    ["explain", "train"],
    ["__complete", "get", ""],
    ["queue", "list"],
  ];
  for (const args of lines) {
    assert.equal(ageless(await gangway(args, more)), ageless((await run(args, world)).stdout), args.join(" "));
  }
  for (const args of [["get", "no-such"], ["scale", "train", "Worker=x"], ["nonsense"]]) {
    const { exitCode, stdout, stderr } = await run(args, world);
    await assert.rejects(gangway(args, more), { code: exitCode, stdout, stderr });
  }
});

test("the bundle imports modules of kinds from outside", async () => {
  writeFileSync(join(clone, "kinds.js"), "export const plugins = await Promise.resolve([]);\n");
  await assert.rejects(gangway(["submit", "job.yaml"], { GANGWAY_PLUGINS: "./kinds.js" }), {
    code: 2,
    stderr: "error: GANGWAY_PLUGINS names ./kinds.js, whose list of plugins is empty\n",
  });
});

test("a change of a source is seen by the next call", async () => {
  const [before] = bundles();
  const path = join(clone, "src/cli/cli.ts");
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("Run distributed training jobs", "Launch distributed training jobs"));
  assert.match(await gangway(["--help"]), /Launch distributed training jobs/);
  assert.equal(bundles().length, 1);
  assert.notEqual(bundles()[0], before);
});

test("compiled code of another bundle is not used, and a damaged one neither", async () => {
  const [folder = ""] = readdirSync(join(clone, ".cache/gangway/compiled")).filter((name) =>
    name.includes("gangway-clone"),
  );
  const kept = join(clone, ".cache/gangway/compiled", folder, "other");
  const whole = readFileSync(kept);
  for (const damaged of [Buffer.concat([Buffer.alloc(64), whole.subarray(64)]), whole.subarray(0, 1000)]) {
    writeFileSync(kept, damaged);
    assert.equal(await gangway(["--version"]), `${version}\n`);
    assert.ok(readFileSync(kept).length > 1000);
  }
});

test("a clone without the bundler, or whose bundle cannot be made, runs from its sources", async () => {
  const path = join(clone, "src/cli/cli.ts");
  rmSync(join(clone, "node_modules/esbuild"));
  rmSync(join(clone, "node_modules/.gangway"), { recursive: true });
  assert.equal(await gangway(["--version"]), `${version}\n`);
  assert.deepEqual(bundles(), []);
  writeFileSync(path, readFileSync(path, "utf8").replace("Launch distributed", "Start distributed"));
  assert.match(await gangway(["--help"]), /Start distributed training jobs/);
});
