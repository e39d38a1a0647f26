import assert from "node:assert/strict";
import { test } from "node:test";
import { runUp, type UpDeps } from "../../src/cli/service/up.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { pytorchManifest } from "./harness.ts";

const OPTIONS = { exit: false, examples: true, listen: null, data: null, insecure: false, simulate: false };

/** Deps whose service does not answer, and whose user has interrupted already. */
function interrupted(closed: string[]): UpDeps {
  return {
    stdout: () => {},
    stderr: () => {},
    readStdin: async () => "",
    readFile: async () => pytorchManifest("a"),
    lookUp: async () => ({ kind: "directory", names: ["a.yaml"] }),
    isTty: false,
    columns: 80,
    rows: 24,
    color: false,
    signal: AbortSignal.abort(),
    kinds: async () => OWN_KINDS,
    clock: systemClock(),
    listen: () => {},
    examples: "examples",
    start: async () => ({
      address: "127.0.0.1:1",
      console: "",
      inUse: "",
      realClusters: [],
      isPlain: true,
      migrated: [],
      close: async () => void closed.push("closed"),
    }),
  };
}

for (const [exit, status] of [
  [true, 130],
  [false, 0],
] as const) {
  test(`an interruption ${exit ? "before the examples end is no success" : "ends the service well"}`, async () => {
    const closed: string[] = [];
    const code = await runUp({ ...OPTIONS, exit }, interrupted(closed));
    assert.equal(code, status);
    assert.deepEqual(closed, ["closed"]);
  });
}
