/** The start of `gangway up`: it checks its flags before it makes anything, and can be interrupted at any time. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const BIN = join(import.meta.dirname, "../../bin/gangway.js");

function start(t: TestContext, args: readonly string[], main = MAIN) {
  const folder = mkdtempSync(join(tmpdir(), "gangway-up-"));
  const data = join(folder, "data");
  const child = spawn(process.execPath, [main, ...args, "--data", data], { stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  const seen = (text: string) =>
    new Promise<void>((resolve) => {
      child.stderr.on("data", () => {
        if (output.stderr.includes(text)) resolve();
      });
    });
  child.stdout.on("data", (chunk: Buffer) => {
    output.stdout += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    output.stderr += chunk;
  });
  const ended = once(child, "close");
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true });
  });
  return { child, data, output, seen, ended };
}

test("a port in use is one plain sentence, and nothing is made", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const { data, output, ended } = start(t, ["up", "--listen", `127.0.0.1:${address.port}`]);
  assert.deepEqual(await ended, [3, null]);
  assert.match(output.stderr, /^starting gangway …\nloading the service …\nerror: cannot listen on 127\.0\.0\.1:\d+: /);
  assert.match(output.stderr, /: the address is in use by .* with --listen\n$/);
  assert.equal(existsSync(data), false);
});

test("an address that other machines reach is refused before anything is made", async (t) => {
  const { data, output, ended } = start(t, ["up", "--listen", "0.0.0.0:0"]);
  assert.deepEqual(await ended, [3, null]);
  assert.match(
    output.stderr,
    /^starting gangway …\nloading the service …\nerror: will not listen on 0\.0\.0\.0:0: .*--insecure/,
  );
  assert.equal(existsSync(data), false);
});

for (const text of ["starting gangway", "making a database", "starting the simulated clusters"]) {
  test(`an interruption ends the start at once, after "${text}"`, async (t) => {
    const { child, output, seen, ended } = start(t, ["up", "--listen", "127.0.0.1:0", "--no-examples"]);
    await seen(text);
    child.kill("SIGINT");
    assert.deepEqual(await ended, [null, "SIGINT"]);
    assert.doesNotMatch(output.stdout, /listening on/);
  });
}

test("a first start names each step before it takes it, beginning before it loads the command line", async (t) => {
  const { child, output, seen, ended } = start(t, ["up", "--listen", "127.0.0.1:0", "--no-examples"], BIN);
  await seen("simulated clusters");
  child.kill("SIGKILL");
  await ended;
  const steps = [
    "loading gangway",
    "starting gangway",
    "loading the service",
    "making a database in .*",
    "starting .*",
  ];
  assert.match(output.stderr, new RegExp(`^${steps.join(" …\\n")} …\\n$`));
});

test("help begins with its own output", async (t) => {
  const { output, ended } = start(t, ["up", "--help"], BIN);
  assert.deepEqual(await ended, [0, null]);
  assert.equal(output.stderr, "");
  assert.match(output.stdout, /^Usage: gangway up/);
});
