import assert from "node:assert/strict";
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { type LogEvents, openLog } from "../../src/telemetry/log-output.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";
import { noTinyDisk, TinyDisk } from "../support/tiny-disk.ts";

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

const NOTHING_DROPPED: LogEvents = {
  onDropped: (reason) => assert.fail(reason),
  onResumed: ({ reason }) => assert.fail(reason),
};

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
  const [{ dropped }] = (await within("the dropped lines are told", WAIT_MS_MAX, told)) as [
    { dropped: { lines: number; reason: string } },
  ];
  child.send("exit");
  const numbers = await read;
  assert.equal(dropped.reason, "slow_reader");
  assert.ok(dropped.lines > 0);
  assert.deepEqual(numbers, counted(lines - dropped.lines));
});

test("a line is in its file before the call returns", () => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-log-"));
  try {
    const file = join(folder, "new", "log");
    openLog(file, NOTHING_DROPPED).write("line\n");
    assert.equal(readFileSync(file, "utf8"), "line\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Files to which nothing can be written, by the code of the error. */
const UNWRITABLE = { ENOSPC: "/dev/full", EIO: "/proc/self/mem" };

for (const [code, file] of Object.entries(UNWRITABLE)) {
  test(`lines that fail with ${code} are dropped and counted`, { skip: !existsSync(file) }, () => {
    const reasons: string[] = [];
    const log = openLog(file, { ...NOTHING_DROPPED, onDropped: (reason) => void reasons.push(reason) });
    log.write("first\n");
    log.write("second\n");
    assert.deepEqual(reasons, [code, code]);
  });
}

/** A process whose files have at most a few blocks writes lines until several are dropped. */
const WITH_SMALL_FILES = `
  import { openLog } from ${JSON.stringify(new URL("../../src/telemetry/log-output.ts", import.meta.url).href)};
  const reasons = [];
  const log = openLog(process.argv[1], { onDropped: (reason) => reasons.push(reason), onResumed: () => {} });
  while (reasons.length < 3) log.write("x".repeat(99) + "\\n");
  process.stdout.write(reasons.join());
`;

test("lines that pass the limit of a file's size are dropped and counted", {
  skip: process.platform === "win32",
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-log-"));
  try {
    const line = 'ulimit -f 2; exec "$0" --input-type=module -e "$1" "$2"';
    const args = ["-c", line, process.execPath, WITH_SMALL_FILES, join(folder, "log")];
    assert.equal(execFileSync("sh", args, { encoding: "utf8" }), "EFBIG,EFBIG,EFBIG");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("once a full disk has room, lines follow whole, with a count of those that were dropped", {
  skip: noTinyDisk(),
}, () => {
  const disk = TinyDisk.mount(64 * 1024);
  assert.ok(disk);
  try {
    const other = join(disk.folder, "other");
    const file = join(disk.folder, "log");
    writeFileSync(other, Buffer.alloc(32 * 1024));
    let dropped = 0;
    const resumed: object[] = [];
    const log = openLog(file, {
      onDropped: () => {
        dropped += 1;
      },
      onResumed: (facts) => void resumed.push(facts),
    });
    // The disk's end is in the middle of a line.
    let lines = 0;
    for (; dropped < 3; lines += 1) log.write(`${String(lines).padEnd(LENGTH)}\n`);
    rmSync(other);
    log.write("after\n");
    assert.deepEqual(resumed, [{ lines: 3, reason: "ENOSPC" }]);
    log.write("later\n");
    assert.equal(resumed.length, 1);
    const written = readFileSync(file, "utf8").split("\n");
    const cut = written.splice(lines - dropped, 1)[0] ?? "";
    assert.ok(cut.length < LENGTH, "a part of the first dropped line is on a line of its own");
    assert.deepEqual(written.splice(lines - dropped), ["after", "later", ""]);
    assert.deepEqual(written.map(Number), counted(lines - dropped));
  } finally {
    disk.unmount();
  }
});
