import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { test as collect, collected } from "./collect-tests.ts";
import { EXPLAINED } from "./explained.ts";
import { targetsOf } from "./near-tests.ts";

const RUN = fileURLToPath(new URL("run.ts", import.meta.url));

function mutate(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [RUN, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

test("a folder stands for the targets below it, a file narrows its target", () => {
  const folders = (named: string) => targetsOf(named).map(({ folder }) => folder);
  assert.ok(folders("core").length >= 6);
  assert.deepEqual(folders("src/core/plan/"), ["core/plan"]);
  assert.deepEqual(folders("core/plan/capacity/fit.ts"), ["core/plan/capacity/fit.ts"]);
  assert.deepEqual(folders("cli"), []);
  assert.deepEqual(folders("worker/decide-step.ts"), ["worker/decide-step.ts"]);
  assert.ok(folders("worker").includes("worker") && folders("worker").includes("worker/decide-step.ts"));
});

test("every folder of core is a target", () => {
  const folders = readdirSync(new URL("../../../src/core", import.meta.url), { withFileTypes: true });
  const named = folders.filter((one) => one.isDirectory()).map(({ name }) => `core/${name}`);
  assert.deepEqual(
    targetsOf("core").map(({ folder }) => folder),
    named.sort(),
  );
});

test("a collected test is cleaned up after, also if it fails", async () => {
  const done: string[] = [];
  collect("fails", (t: { readonly after: (cleanUp: () => unknown) => void }) => {
    t.after(() => done.push("cleaned up"));
    throw new Error("as a mutant does");
  });
  await assert.rejects(async () => collected.tests.at(-1)?.run(), /as a mutant does/);
  assert.deepEqual(done, ["cleaned up"]);
});

test("each line whose changes are explained is still there, with a reason", () => {
  for (const [file, lines] of Object.entries(EXPLAINED)) {
    const source = readFileSync(new URL(`../../../src/${file}`, import.meta.url), "utf8");
    const known = source.split("\n").map((line) => line.trim());
    for (const { line, becomes, why } of lines) {
      assert.ok(
        known.some((one) => one.startsWith(line)),
        `${file} no longer has the line: ${line}`,
      );
      assert.ok(becomes.length > 0 && why.endsWith("."), line);
    }
  }
});

const refused: Record<string, { args: readonly string[]; says: RegExp }> = {
  "no folder": { args: [], says: /name at least one folder/ },
  "a folder without near tests": { args: ["cli"], says: /cli is not one of the folders/ },
  "a sample of nothing": { args: ["core", "--sample", "0"], says: /--sample must be a whole number from 1 to 100/ },
  "an unknown option": { args: ["core", "--fast"], says: /--fast/ },
};
for (const [name, { args, says }] of Object.entries(refused)) {
  test(`the command refuses ${name} and prints its usage`, () => {
    const { status, stderr } = mutate(...args);
    assert.equal(status, 2);
    assert.match(stderr, says);
    assert.match(stderr, /Usage: npm run mutate/);
  });
}

test("each change of a file is tried, and the share that the tests noticed is printed", () => {
  const { status, stdout, stderr } = mutate("core/job/bucket.ts");
  assert.equal(status, 0, stderr);
  const row = /^core\/job\/bucket\.ts +(\d+) +(\d+) +[\d.]+ %$/m.exec(stdout);
  assert.ok(row !== null, stdout);
  assert.ok(Number(row[1]) > 0, "tests notice some changes");
  const missed = stdout.split("\n").filter((line) => line.includes("core/job/bucket.ts:")).length;
  assert.equal(Number(row[1]) + missed, Number(row[2]), "each change is noticed or named");
});
