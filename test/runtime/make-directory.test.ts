import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDirectory, makePrivateDirectory } from "../../src/runtime/make-directory.ts";

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

test("a private directory is closed to other users, also if it exists and its mode is another", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-private-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const fresh = join(folder, "below", "fresh");
  makePrivateDirectory(fresh);
  assert.equal(modeOf(fresh), "700");
  for (const mode of [0o777, 0o755, 0o710, 0o701]) {
    chmodSync(fresh, mode);
    makePrivateDirectory(fresh);
    assert.equal(modeOf(fresh), "700", mode.toString(8));
  }
});

test("a directory of another user that others may enter is refused", { skip: process.getuid?.() !== 0 }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-private-"));
  t.after(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const module = new URL("../../src/runtime/make-directory.ts", import.meta.url).href;
  const program = `import { makePrivateDirectory } from ${JSON.stringify(module)}; process.setuid(65534);
    try { makePrivateDirectory(${JSON.stringify(folder)}); } catch (error) { process.stdout.write(error.message); }`;
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" });
  assert.match(
    said,
    /^will not use .*: other users may enter it \(mode 755\), and this user may not change that; run chmod/,
  );
});
