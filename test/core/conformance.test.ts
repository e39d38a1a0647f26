import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { NO_DIFFERENCES, readDifferences, readSuites, runSuites } from "../tools/conformance/suites.ts";

const own = new URL("../tools/conformance/suites", import.meta.url).pathname;
const runner = new URL("../tools/conformance/run.ts", import.meta.url).pathname;

for (const { suite, id, run } of readSuites(own, NO_DIFFERENCES)) {
  test(`${suite}: ${id}`, async () => {
    const { outcome, details } = await run();
    assert.equal(outcome, "passed", details.join("\n"));
  });
}

test("at most twenty differences are declared, each with its reason", () => {
  const { cases, features } = readDifferences();
  const reasons = [...Object.values(cases), ...Object.values(features)];
  assert.ok(reasons.length <= 20 && reasons.every((reason) => reason.endsWith(".")));
});

/** Suites of which the runner knows every case. */
const SERVED = new RegExp(
  "^(kubeflow-(slices|conditions|adoption|minResources)|" +
    "demystify|primary-container|resources|gpu-selectors|merge-podspecs|names|" +
    "(available|share)(-random)?|victims-(classic|hierarchical|fair|random)|victim-order|queue-order|" +
    "cycle-(classic|fair|random)|kai-min-runtime)$",
);

/** The largest part of a suite that may differ on purpose. */
const DECLARED_MAX = 0.05;

test("the cases of the folders GANGWAY_CONFORMANCE pass in all suites that Gangway serves in full", async (t) => {
  const folders = process.env["GANGWAY_CONFORMANCE"];
  if (folders === undefined) return t.skip("set GANGWAY_CONFORMANCE to folders of cases");
  const differences = readDifferences();
  const results = (await Promise.all(folders.split(delimiter).map((one) => runSuites(one, differences)))).flat();
  assert.ok(results.length > 0);
  assert.deepEqual(
    results.filter(({ outcome }) => outcome === "failed"),
    [],
  );
  assert.deepEqual(
    results.filter(({ suite, outcome }) => SERVED.test(suite) && outcome === "unknown"),
    [],
  );
  const declared = results.filter(({ outcome }) => outcome === "declared");
  assert.ok(declared.length <= DECLARED_MAX * results.length);
});

async function folderOf(t: TestContext, cases: readonly object[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gangway-conformance-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "cases.json"), JSON.stringify({ suite: "mine", cases }));
  return folder;
}

type Output = { readonly code: number; readonly stdout: string; readonly stderr: string };

function runProgram(...args: readonly string[]): Promise<Output> {
  return new Promise((resolve) => {
    execFile(process.execPath, [runner, ...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const queues = [
  { name: "q", leaf: true, parent: null, weight: 1, quotas: { "h100/gpu": { nominal: 4, borrow: null, lend: null } } },
];
const available = (id: string, amount: number) => {
  const table = { q: { "h100/gpu": amount } };
  const expected = { available: table, availableWhenIdle: table, potential: table };
  return { id, fn: "available", features: ["quota"], input: { queues }, expected };
};

test("the program counts the outcomes of a suite, names functions that it does not know, and fails", async (t) => {
  const unknown = { id: "u", fn: "astrology", input: {}, expected: {} };
  const bad = await runProgram(await folderOf(t, [available("a", 4), available("b", 5), unknown]));
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /^FAILED b\n {2}available: expected .*5.*, found .*4/);
  assert.match(bad.stdout, /^mine: 1 passed, 1 failed, 1 unknown \(this runner does not know astrology\)$/m);
  const half = await runProgram(await folderOf(t, [available("a", 4), unknown]));
  assert.deepEqual(
    { code: half.code, last: half.stdout.trim().split("\n").at(-1) },
    { code: 1, last: "1 passed, 0 failed, 1 unknown" },
  );
  assert.equal((await runProgram(await folderOf(t, [available("a", 4)]))).code, 0);
});

test("the program shows how it is called", async () => {
  const { code, stdout } = await runProgram("--help");
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: npm run conformance -- \[DIR\.\.\.\]/);
});

test("the program refuses a folder that it cannot read, and an option that it does not know", async () => {
  const missing = join(tmpdir(), "gangway-conformance-missing");
  const [noFolder, noOption] = await Promise.all([runProgram(missing), runProgram("--wrong")]);
  assert.deepEqual([noFolder.code, noOption.code], [1, 1]);
  assert.match(noFolder.stderr, /^cannot read .*gangway-conformance-missing: ENOENT/);
  assert.match(noOption.stderr, /--wrong/);
  assert.match(noOption.stderr, /^Usage: npm run conformance/m);
});

test("a case differs on purpose by its id or by one of its features, with the reason", async (t) => {
  const folder = await folderOf(t, [available("a", 5), { ...available("b", 5), features: [] }]);
  const byFeature = await runSuites(folder, { cases: {}, features: { quota: "We count otherwise." } });
  assert.deepEqual(
    byFeature.map(({ outcome }) => outcome),
    ["declared", "failed"],
  );
  assert.deepEqual(byFeature[0]?.details, ["We count otherwise."]);
  const byId = await runSuites(folder, { cases: { b: "We count otherwise." }, features: {} });
  assert.deepEqual(
    byId.map(({ outcome }) => outcome),
    ["failed", "declared"],
  );
});
