import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "./fuzz.ts";
import { methodsNamed } from "./plan.ts";

const CALLS = Number(process.env["GANGWAY_FUZZ_CALLS"] ?? 500);

test(`${CALLS} calls that nobody meant to send break nothing`, async (t) => {
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
  t.diagnostic(`npm run fuzz -- ${CALLS} --seed ${seed}`);
  const print = (line: string) => t.diagnostic(line);
  const report = await fuzz({ calls: CALLS, seed, methods: methodsNamed([]), postgres: null, redis: null, print });
  // Stalls are printed only: this machine may be slow.
  assert.deepEqual(report.findings, []);
  assert.equal(report.calls, CALLS);
});
