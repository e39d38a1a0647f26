import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile as readFileOf } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { followPodConfig } from "../../src/intake/follow-pod-config.ts";
import { waitUntil } from "../support/bounded.ts";

const readFile = (path: string) => readFileOf(path, "utf8");

test("a changed file applies once valid, an invalid one is reported once, a missing one changes nothing", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-pods-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "pods.yaml");
  writeFileSync(file, "serviceAccount: first");
  const read: string[] = [];
  const failures: string[] = [];
  const notes: string[] = [];
  // Each sleep ends when the test looks on, so that every text is looked at before the next is written.
  let wake: (() => void) | null = null;
  const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: () => new Promise<void>((done) => (wake = done)) };
  const telemetry = {
    podConfigRead: (facts: { readonly file: string }) => void read.push(facts.file),
    podConfigNoted: (facts: { readonly note: string }) => void notes.push(facts.note),
    loopFailed: ({ error }: { readonly error: unknown }) => void failures.push(String(error)),
  };
  const followed = followPodConfig({ clock, telemetry, readFile }, readConfig(directory, { GANGWAY_POD_CONFIG: file }));
  const stop = new AbortController();
  const running = followed.run(stop.signal);
  const lookAgain = async () => {
    const sleeping = wake;
    sleeping?.();
    await waitUntil("it sleeps again", () => wake !== sleeping, { pollMs: 1 });
    return followed.now().serviceAccount;
  };
  assert.equal(await lookAgain(), "first");
  assert.deepEqual([read, failures], [[], []], "what has not changed is not read");
  // As a mounted config map changes.
  writeFileSync(`${file}.new`, "serviceAccount: second");
  renameSync(`${file}.new`, file);
  assert.equal(await lookAgain(), "second");
  writeFileSync(file, "serviceAcount: third");
  assert.equal(await lookAgain(), "second");
  assert.equal(await lookAgain(), "second");
  rmSync(file);
  assert.equal(await lookAgain(), "second");
  writeFileSync(file, "serviceAccount: fourth");
  assert.equal(await lookAgain(), "fourth");
  assert.deepEqual(read, [file, file]);
  assert.equal(failures.length, 2);
  assert.match(failures[0] ?? "", /where serviceAcount is unknown: did you mean serviceAccount\?/);
  assert.deepEqual(notes, []);
  writeFileSync(file, "{ serviceAccount: fifth, inject-finalizer: true }");
  assert.equal(await lookAgain(), "fifth");
  assert.deepEqual(notes, ["inject-finalizer has no effect: pods are followed without finalizers"]);
  stop.abort();
  (wake as (() => void) | null)?.();
  await running;
});

test("without a file there is nothing to follow", async () => {
  const config = readConfig("/", {});
  const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: () => Promise.reject(new Error("nobody waits")) };
  const telemetry = {
    podConfigRead: () => assert.fail(),
    podConfigNoted: () => assert.fail(),
    loopFailed: () => assert.fail(),
  };
  const followed = followPodConfig({ clock, telemetry, readFile }, config);
  await followed.run(new AbortController().signal);
  assert.equal(followed.now(), config.podConfig);
});
