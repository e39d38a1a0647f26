import assert from "node:assert/strict";
import { test } from "node:test";
import { methodsNamed } from "../plan.ts";
import { fuzzTenants } from "./fuzz.ts";

const CALLS = Number(process.env["GANGWAY_FUZZ_CALLS"] ?? 250);

test(`${CALLS} calls of a tenant read and change nothing of another one`, async (t) => {
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
  t.diagnostic(`npm run fuzz -- ${CALLS} --tenant --digest-every 1 --seed ${seed}`);
  const print = (line: string) => t.diagnostic(line);
  const report = await fuzzTenants({
    calls: CALLS,
    digestEvery: 1,
    seed,
    methods: methodsNamed([]),
    postgres: null,
    redis: null,
    print,
  });
  assert.deepEqual(report.findings, []);
  assert.equal(report.calls, CALLS);
});
