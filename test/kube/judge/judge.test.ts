import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { controlPlaneBuilt } from "../build.ts";
import { type ControlPlane, startControlPlane } from "../control-plane.ts";
import { publishedTypes, TYPES_FILE } from "../kubernetes-types.ts";
import { compareJobs } from "./compare-jobs.ts";
import { compareMany } from "./compare-many.ts";

/** `npm run judge -- 5000 --jobs 1500` compares more. */
const PODS = 200;
const JOBS = 20;

suite("pods are judged as a real API server judges them", { skip: !controlPlaneBuilt() }, () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane();
  });
  after(() => plane.stop());

  test(`of ${PODS} pods that are changed at random, none is refused by one of the two alone`, async () => {
    const { differences, refused } = await compareMany(plane, { count: PODS, seed: 36 });
    assert.deepEqual(
      differences.filter(({ leftOver }) => leftOver === null),
      [],
    );
    assert.ok(refused > PODS / 4, `only ${refused} pods were refused`);
  });

  test(`of ${JOBS} random jobs, none is refused by one alone for its names, kind and ports`, async () => {
    const { differences, refused, accepted } = await compareJobs(plane, { count: JOBS, seed: 41 });
    assert.deepEqual(
      differences.filter(({ leftOver }) => leftOver === null),
      [],
    );
    assert.ok(refused > JOBS / 5, `only ${refused} jobs were refused`);
    assert.ok(accepted.services > 0 && accepted.maps > 0, JSON.stringify(accepted));
  });

  test("the types of Kubernetes' objects are those that the API server publishes", async () => {
    assert.equal(readFileSync(TYPES_FILE, "utf8"), await publishedTypes(plane), "run npm run kube:types");
  });
});
