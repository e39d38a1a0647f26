import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readManifests } from "../../src/cli/manifest/read-manifests.ts";
import { readSources } from "../../src/cli/manifest/sources.ts";
import { processIo } from "../../src/cli/shell/process-io.ts";
import { within } from "../support/bounded.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { parseDocuments } from "./parse-documents.ts";

const BIN = join(import.meta.dirname, "../../bin/gangway");
const io = processIo(process, () => {});

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "gangway-read-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const floods: Record<string, { text: string; says: RegExp }> = {
  "500,000 brackets": { text: "[".repeat(500_000), says: /document 1: line 1 must nest at most 64 levels/ },
  "a long line of lists": { text: "- ".repeat(400_000), says: /must nest at most 64 levels/ },
  "600,000 commas": { text: `[${",".repeat(600_000)}]`, says: /must have at most 500000 words and marks/ },
  "2,000 aliases": {
    text: `a: &a []\nb: [${"*a,".repeat(2_000)}]`,
    says: /must have at most 1000 anchors and aliases/,
  },
  "aliases of aliases": {
    text: Array.from({ length: 30 }, (_, at) => `a${at}: &a${at} [${`*a${at - 1},`.repeat(at && 9)}]`).join("\n"),
    says: /must have at most 1000000 values/,
  },
  "90,000 keys": {
    text: Array.from({ length: 90_000 }, (_, at) => `k${at}: 1`).join("\n"),
    says: /must have at most 500000 words and marks/,
  },
  "a key twice": { text: "a: 1\na: 2", says: /line 2 has the key "a" for the second time in one object/ },
  "a key that is a prototype": { text: "__proto__: {a: 1}", says: /must not have the key "__proto__"/ },
};
for (const [name, { text, says }] of Object.entries(floods)) {
  test(`a manifest with ${name} is refused with its line`, () => {
    const { documents, errors } = parseDocuments({ name: "job.yaml", text });
    assert.deepEqual(documents, []);
    assert.match(errors.join("\n"), says);
  });
}

test("a manifest of 60,000 keys is read as every other", () => {
  const text = Array.from({ length: 60_000 }, (_, at) => `k${at}: 1`).join("\n");
  const { documents, errors } = parseDocuments({ name: "job.yaml", text });
  assert.deepEqual([documents.length, errors], [1, []]);
});

test("a file that never ends is read up to the limit, and one that is too large is refused", async (t) => {
  await assert.rejects(readSources(["/dev/zero"], io), {
    message: /\/dev\/zero cannot be read: it has more than 16777216/,
  });
  const path = join(directory(t), "big.yaml");
  writeFileSync(path, " ".repeat(65_537));
  await assert.rejects(readSources([path], io, 65_536), {
    message: /big\.yaml cannot be read: it has more than 65536 by/,
  });
});

test("an interruption is heard between the documents of a file", async (t) => {
  const path = join(directory(t), "many.yaml");
  writeFileSync(path, "a: 1\n---\n".repeat(100_000));
  const stop = new AbortController();
  const namespace = { name: "default", isExplicit: false };
  const reading = readManifests([path], { io: { ...io, signal: stop.signal }, kinds: OWN_KINDS, namespace });
  stop.abort();
  await assert.rejects(reading, { name: "AbortError" });
});

for (const command of [
  ["submit", "-f"],
  ["cluster", "add", "east", "--kubeconfig"],
]) {
  test(`Ctrl-C ends gangway ${command.join(" ")} while it reads from a pipe`, async (t) => {
    const pipe = join(directory(t), "pipe.yaml");
    execFileSync("mkfifo", [pipe]);
    const child = spawn(process.execPath, [BIN, ...command, pipe], { stdio: "ignore" });
    t.after(() => child.kill("SIGKILL"));
    const ended = once(child, "exit");
    // Opens once the command has opened the other end.
    const writer = await open(pipe, "w");
    t.after(() => writer.close());
    child.kill("SIGINT");
    const [code] = await within("the end of the command", 60_000, ended);
    assert.equal(code, 130);
  });
}
