import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FileTooLarge, readBoundedFile, readBoundedFileSync } from "../../src/runtime/read-bounded-file.ts";

const folder = mkdtempSync(join(tmpdir(), "gangway-bounded-"));
after(() => rmSync(folder, { recursive: true }));

/** Makes a file of so many bytes. */
function fileOf(bytes: number): string {
  const path = join(folder, `${bytes}-bytes`);
  writeFileSync(path, "x".repeat(bytes));
  return path;
}

/** Makes a pipe, and a program that writes so many bytes into it. */
function pipeOf(bytes: number): string {
  const path = join(folder, `pipe-of-${bytes}`);
  execFileSync("mkfifo", [path]);
  execFileSync("sh", ["-c", `head -c ${bytes} /dev/zero | tr '\\0' x > ${path} 2>/dev/null &`], { stdio: "ignore" });
  return path;
}

const noDevices = !existsSync("/dev/zero");

const cases: readonly {
  readonly name: string;
  readonly path: () => string;
  readonly bytesMax: number;
  readonly expected: { readonly length: number } | { readonly error: RegExp; readonly bytes?: number | null };
  readonly skip?: boolean;
}[] = [
  { name: "an empty file", path: () => fileOf(0), bytesMax: 10, expected: { length: 0 } },
  { name: "a file of exactly the limit", path: () => fileOf(10), bytesMax: 10, expected: { length: 10 } },
  {
    name: "a file of one byte more, with its name, its size and the limit",
    path: () => fileOf(11),
    bytesMax: 10,
    expected: { error: /11-bytes has 11 bytes; at most 10 are allowed/, bytes: 11 },
  },
  { name: "a file of several pieces", path: () => fileOf(300_000), bytesMax: 300_000, expected: { length: 300_000 } },
  { name: "a pipe within the limit", path: () => pipeOf(200_000), bytesMax: 200_000, expected: { length: 200_000 } },
  {
    name: "a pipe beyond the limit",
    path: () => pipeOf(200_001),
    bytesMax: 200_000,
    expected: { error: /pipe-of-200001 has more than 200000 bytes; at most 200000 are allowed/, bytes: null },
  },
  {
    name: "a device that never ends",
    path: () => "/dev/zero",
    bytesMax: 1_000_000,
    expected: { error: /\/dev\/zero has more than 1000000 bytes/, bytes: null },
    skip: noDevices,
  },
  {
    name: "a file that does not exist",
    path: () => join(folder, "none"),
    bytesMax: 10,
    expected: { error: /ENOENT/ },
  },
  { name: "a folder", path: () => folder, bytesMax: 1_000_000, expected: { error: /EISDIR/ } },
];

const readers = {
  readBoundedFile,
  readBoundedFileSync: async (...args: Parameters<typeof readBoundedFileSync>) => readBoundedFileSync(...args),
};

for (const [reader, read] of Object.entries(readers)) {
  for (const { name, path, bytesMax, expected, skip = false } of cases) {
    test(`${reader}: ${name}`, { skip }, async () => {
      const file = path();
      const outcome = await read(file, { bytesMax }).catch((error: unknown) => error);
      if (file.includes("pipe")) rmSync(file);
      if ("length" in expected) {
        assert.equal(outcome, "x".repeat(expected.length));
        return;
      }
      assert.ok(outcome instanceof Error);
      assert.match(outcome.message, expected.error);
      if (expected.bytes === undefined) return;
      assert.ok(outcome instanceof FileTooLarge);
      assert.equal(outcome.bytes, expected.bytes);
    });
  }
}

test("a regular file only: neither waits for a pipe nor reads a device", async () => {
  const pipe = join(folder, "silent-pipe");
  execFileSync("mkfifo", [pipe]);
  const limit = { bytesMax: 10, regularOnly: true };
  await assert.rejects(readBoundedFile(pipe, limit), /silent-pipe is not a regular file/);
  if (!noDevices) await assert.rejects(readBoundedFile("/dev/zero", limit), /\/dev\/zero is not a regular file/);
  assert.equal(await readBoundedFile(fileOf(3), limit), "xxx");
});
