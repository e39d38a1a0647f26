/** Secrets that the pages let a reader write: only their owner can read them, no commit or image has them. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commandsOf } from "./commands.ts";
import { allPages, root } from "./pages.ts";

/** What a command that writes a secret has: a private key, a random key, or the place of one. */
const SECRET = /-keyout|openssl (rand|genrsa|genpkey|ecparam)|keys\.yaml > |config view --flatten/;
/** Commands that keep the file for its owner by themselves. */
const PRIVATE = /robot create .* --to (\S+)/;

/** The files that a command writes. */
function writtenBy(text: string): readonly string[] {
  const named = [...text.matchAll(/(?:-keyout|--to|>) ([\w./-]+\.\w+)/g)].map(([, file = ""]) => file);
  return named.filter((file) => !file.startsWith("/"));
}

const writing = allPages().flatMap((page) => {
  const commands = commandsOf(page);
  return commands.flatMap(({ text, line }, at) => {
    if (!SECRET.test(text) && !PRIVATE.test(text)) return [];
    const before = commands.slice(0, at).map((one) => one.text);
    return writtenBy(text).map((file) => ({ page: page.path, line, text, file, before }));
  });
});

test("the pages write files with secrets", () => {
  const files = new Set(writing.map(({ file }) => file));
  for (const file of ["ca.key", "server.key", "me.key", "gangway.key", "keys.yaml", "gangway.env", "ci.token"])
    assert.ok(files.has(file), `${file}: ${[...files].join(", ")}`);
});

test("before a page writes a secret, it sets a umask that lets only the owner read", () => {
  for (const { page, line, text, before } of writing) {
    if (PRIVATE.test(text)) continue;
    assert.ok(before.includes("umask 077"), `${page}:${line}: ${text}`);
  }
});

test("git ignores each of these files, in the clone and below it", () => {
  for (const { file } of writing) {
    const { status } = spawnSync("git", ["check-ignore", "-q", "--no-index", file], { cwd: root });
    assert.equal(status, 0, `${file} is not ignored`);
  }
});

test("git ignores no file of the project", () => {
  const ignored = execFileSync("git", ["ls-files", "-i", "-c", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  assert.equal(ignored, "");
});

test("no image gets these files", () => {
  const text = readFileSync(join(root, ".dockerignore"), "utf8");
  assert.equal(readFileSync(join(root, "deploy/Dockerfile.dockerignore"), "utf8"), text);
  const patterns = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const isExcluded = (file: string) =>
    patterns.some((pattern) => {
      const source = pattern
        .replace(/^\*\*\//, "")
        .replaceAll(".", "\\.")
        .replaceAll("*", "[^/]*");
      return new RegExp(`^${source}$`).test(file.split("/").at(-1) ?? "");
    });
  for (const { file } of writing) assert.ok(isExcluded(file), `${file} gets into images`);
});
