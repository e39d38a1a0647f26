/** Runs the tests of the API again, with their calls over HTTP in JSON: each RPC behaves there as over gRPC. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const FOLDER = "test/api";

/** Files that are not run, each with the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  "certificates.property.test.ts": "certificates of clients, for which this listener does not ask",
  "check-rules.test.ts": "makes no calls",
  "connections.test.ts": "connections of gRPC",
  "decompression.test.ts": "compressed messages, which this listener refuses",
  "fuzz.property.test.ts": "bytes that are no message; `npm run fuzz -- N --http` sends damaged JSON",
  "health.test.ts": "the health service of gRPC",
  "hide-others.property.test.ts": "makes no calls",
  "match-pattern.property.test.ts": "makes no calls",
  "reflection.test.ts": "the reflection service of gRPC",
  "server.test.ts": "addresses and connections of gRPC",
  "tls.test.ts": "the TLS of gRPC",
};

/** Tests of other files that are not run, each with the reason. */
const NOT_RUN_TESTS: Readonly<Record<string, string>> = {
  "a call with the header `authorization` twice is refused": "writes the headers of HTTP/2 itself",
  "a timeout or a compression that cannot be read": "writes the headers of gRPC itself",
  "a stream whose client has read nothing for a minute ends": "the flow control of gRPC",
  "every field at its limit is within it, and beyond it is the only one that is named": "makes no calls",
  "nothing is read from the log while the client does not read": "the flow control of gRPC",
};

test("the tests of the API pass over HTTP", async () => {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".test.ts") && NOT_RUN[name] === undefined);
  const skipped = Object.keys(NOT_RUN_TESTS).map((name) => `--test-skip-pattern=${name}`);
  // One process for all files: to load the service takes longer than most files.
  const args = ["--test", "--test-isolation=none", "--test-reporter=spec", ...skipped];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [...args, ...names.map((name) => join(FOLDER, name))], {
    env: { ...env, GANGWAY_TEST_API: "http" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = await once(child, "close");
  assert.equal(code, 0, output);
  assert.ok(Number(/pass (\d+)/.exec(output)?.[1]) > 10 * names.length, output);
});

test("every file that is not run exists", () => {
  assert.deepEqual(
    Object.keys(NOT_RUN).filter((name) => !existsSync(join(FOLDER, name))),
    [],
  );
});
