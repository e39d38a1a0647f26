import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDirectory } from "../../src/runtime/make-directory.ts";

test("creates a directory with its parents, and leaves an existing one as it is", (t) => {
  const root = mkdtempSync(join(tmpdir(), "gangway-directory-"));
  t.after(() => rmSync(root, { recursive: true }));
  const path = join(root, "a", "b", "c");
  makeDirectory(path);
  writeFileSync(join(path, "kept"), "");
  makeDirectory(path);
  assert.ok(statSync(join(path, "kept")).isFile());
  assert.throws(() => makeDirectory(join(path, "kept", "below")), /ENOTDIR/);
});

test("throws at once if the directory cannot be created", { skip: !existsSync("/proc/self") }, () => {
  assert.throws(() => makeDirectory("/proc/none/below"), /ENOENT.*\/proc\/none/);
});
