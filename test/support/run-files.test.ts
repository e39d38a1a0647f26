import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { waitUntil } from "./bounded.ts";
import { Progress } from "./run-files.ts";

const LONG_MS = 600_000;
/** Much longer than a short file needs to start. */
const SHORT_MS = 5_000;

const HANGS = `
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
test("ends", () => {});
describe("a suite", () => test("hangs", async () => {
  writeFileSync("hangs", "");
  setInterval(() => {}, 1000);
  await new Promise(() => {});
}));`;
const LEAKS = `
import { test } from "node:test";
test("leaves a timer", () => void setInterval(() => {}, 1000));`;
const PASSES = `
import { test } from "node:test";
test("passes", () => {});`;

/** Runs files with these texts in a process of its own: a test cannot run others. */
function start(t: TestContext, texts: readonly string[], limits: { readonly fileMs: number }) {
  const root = mkdtempSync(join(tmpdir(), "gangway-run-files-"));
  const files = texts.map((content, at) => {
    writeFileSync(join(root, `${at}.test.mjs`), content);
    return `${at}.test.mjs`;
  });
  const asked = {
    files,
    filesAtOnce: 2,
    testNamePatterns: [],
    limits: { testMs: LONG_MS, runMs: LONG_MS, ...limits },
    env: {},
  };
  const script = `
    import { runFiles } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "run-files.ts")))};
    const end = new AbortController();
    process.once("SIGTERM", () => end.abort(new Error("ended by the test")));
    const { passed, interrupted } = await runFiles(${JSON.stringify(asked)}, end.signal);
    console.log(JSON.stringify({ passed, interrupted }));`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  writeFileSync(join(root, "run.mjs"), script);
  const child = spawn(process.execPath, ["run.mjs"], { cwd: root, env });
  t.after(() => {
    child.kill("SIGKILL");
    rmSync(root, { recursive: true });
  });
  const output = text(child.stdout);
  return {
    root,
    end: () => child.kill(),
    async result() {
      const lines = (await output).trim().split("\n");
      return { ...JSON.parse(lines.pop() ?? "{}"), output: lines.join("\n") };
    },
  };
}

test("a run that is ended keeps its summary", async (t) => {
  const run = start(t, [HANGS], { fileMs: LONG_MS });
  await waitUntil("the test hangs", () => existsSync(join(run.root, "hangs")));
  run.end();
  const { passed, output } = await run.result();
  assert.equal(passed, false);
  assert.match(output, /cancelled \d/);
});

test("tests that started and did not end were interrupted, each named with its suites", () => {
  const progress = new Progress();
  const entryFile = join(process.cwd(), "test/a.test.ts");
  const suite = { entryFile, name: "a suite", testId: 1, parentId: 0 };
  const ends = { entryFile, name: "ends", testId: 2, parentId: 1 };
  const hangs = { entryFile, name: "hangs", testId: 3, parentId: 1 };
  const file = { name: "test/a.test.ts", testId: 1, parentId: 0 };
  for (const event of [file, suite, ends, hangs]) progress.started(event);
  progress.ended(ends);
  progress.ended({ ...file, details: { duration_ms: 7, passed: false } });
  assert.deepEqual(progress.result(), {
    passed: false,
    interrupted: ["test/a.test.ts: a suite > hangs"],
    durations: [{ file: "test/a.test.ts", ms: 7 }],
  });
});

test("a file that something keeps running is ended at its limit, and says what is open", async (t) => {
  const run = start(t, [PASSES, LEAKS], { fileMs: SHORT_MS });
  const { passed, interrupted, output } = await run.result();
  assert.deepEqual([passed, interrupted], [false, []]);
  assert.match(output, /the file was ended, because it ran for 5 s; still open: .*Timeout/);
});

test("a run whose tests pass passes", async (t) => {
  const { passed, interrupted } = await start(t, [PASSES, PASSES], { fileMs: LONG_MS }).result();
  assert.deepEqual([passed, interrupted], [true, []]);
});
