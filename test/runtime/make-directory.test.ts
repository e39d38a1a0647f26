import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDirectory } from "../../src/runtime/make-directory.ts";

test("a directory is made with those above it, and one that is there stays as it is", (t) => {
  const root = mkdtempSync(join(tmpdir(), "gangway-directory-"));
  t.after(() => rmSync(root, { recursive: true }));
  const path = join(root, "a", "b", "c");
  makeDirectory(path);
  writeFileSync(join(path, "kept"), "");
  makeDirectory(path);
  assert.ok(statSync(join(path, "kept")).isFile());
  assert.throws(() => makeDirectory(join(path, "kept", "below")), /ENOTDIR/);
});

test("where no directory can be made, that is said at once", { skip: !existsSync("/proc/self") }, () => {
  assert.throws(() => makeDirectory("/proc/none/below"), /ENOENT.*\/proc\/none/);
});
