import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "./fuzz.ts";
import { methodsNamed } from "./plan.ts";

const CALLS = Number(process.env["GANGWAY_FUZZ_CALLS"] ?? 500);

for (const http of [false, true]) {
  test(`${CALLS} calls over ${http ? "HTTP" : "gRPC"} that nobody meant to send break nothing`, async (t) => {
    const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
    t.diagnostic(`npm run fuzz -- ${CALLS} --seed ${seed}${http ? " --http" : ""}`);
    const print = (line: string) => t.diagnostic(line);
    const methods = methodsNamed([]);
    const report = await fuzz({ calls: CALLS, seed, methods, http, postgres: null, redis: null, print });
    // Stalls are printed only: this machine may be slow.
    assert.deepEqual(report.findings, []);
    assert.equal(report.calls, CALLS);
  });
}
