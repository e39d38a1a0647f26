import assert from "node:assert/strict";
import { test } from "node:test";
import { readDifferences, readSuites, runSuites } from "../conformance/suites.ts";

const own = new URL("../conformance/suites", import.meta.url).pathname;

for (const { suite, id, run } of readSuites(own, {})) {
  test(`${suite}: ${id}`, async () => {
    const { outcome, details } = await run();
    assert.equal(outcome, "passed", details.join("\n"));
  });
}

test("at most ten differences are declared, each with its reason", () => {
  const reasons = Object.values(readDifferences());
  assert.ok(reasons.length <= 10 && reasons.every((reason) => reason.endsWith(".")));
});

const SERVED = new RegExp(
  "^(kubeflow-(slices|conditions|adoption|minResources)|" +
    "demystify|primary-container|resources|gpu-selectors|merge-podspecs|names)$",
);

test("the cases of the folder GANGWAY_CONFORMANCE pass in all suites that Gangway serves in full", async (t) => {
  const folder = process.env["GANGWAY_CONFORMANCE"];
  if (folder === undefined) return t.skip("set GANGWAY_CONFORMANCE to a folder of cases");
  const results = await runSuites(folder, readDifferences());
  const failed = results.filter(({ suite, outcome }) => SERVED.test(suite) && outcome === "failed");
  assert.deepEqual(failed, []);
  const broken = results.filter(
    ({ outcome, details }) => outcome === "failed" && !details[0]?.startsWith("cannot be run"),
  );
  assert.deepEqual(broken, [], "every case that can be run passes");
});
