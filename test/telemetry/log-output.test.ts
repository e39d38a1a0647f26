import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { openLog } from "../../src/telemetry/log-output.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";

const LENGTH = 1000;
/** More than a pipe takes. */
const LINES = 3_000;

/** A process that writes lines to a pipe which nobody reads yet. */
async function startWriter(lines: number, length: number, ...more: readonly string[]) {
  const args = [String(lines), String(length), ...more];
  const child = fork(join(import.meta.dirname, "log-writer.ts"), args, { silent: true });
  await within("the lines are written", WAIT_MS_MAX, once(child, "message"));
  return child;
}

/** The numbers of the lines that its output has until it ends. */
async function readAll(child: Awaited<ReturnType<typeof startWriter>>): Promise<readonly number[]> {
  assert.ok(child.stdout);
  const output = await within("the end of the output", WAIT_MS_MAX, text(child.stdout));
  return output.trimEnd().split("\n").map(Number);
}

const counted = (lines: number) => Array.from({ length: lines }, (_, line) => line);

test("a reader that does not read keeps no process from going on, and loses no line", async () => {
  const child = await startWriter(LINES, LENGTH);
  const read = readAll(child);
  child.send("exit");
  assert.deepEqual(await read, counted(LINES));
});

test("lines that wait when a process exits are written first", async () => {
  const child = await startWriter(LINES, LENGTH);
  child.send("exit");
  // It cannot exit before somebody reads.
  assert.deepEqual(await readAll(child), counted(LINES));
});

test("a process whose reader has gone while lines wait exits all the same", async () => {
  const child = await startWriter(LINES, LENGTH, "stays");
  const exited = once(child, "exit");
  child.stdout?.destroy();
  assert.deepEqual(await within("the exit", WAIT_MS_MAX, exited), [0, null]);
});

test("lines that find no room to wait are dropped and counted", async () => {
  const length = 1_000_000;
  const lines = 60;
  const child = await startWriter(lines, length);
  const told = once(child, "message");
  const read = readAll(child);
  const [{ dropped }] = (await within("the dropped lines are told", WAIT_MS_MAX, told)) as [{ dropped: number }];
  child.send("exit");
  const numbers = await read;
  assert.ok(dropped > 0);
  assert.deepEqual(numbers, counted(lines - dropped));
});

test("a line is in its file before the call returns", () => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-log-"));
  try {
    const file = join(folder, "new", "log");
    openLog(file, () => assert.fail("nothing is dropped")).write("line\n");
    assert.equal(readFileSync(file, "utf8"), "line\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
