import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { notesFile, takeNotes } from "../../src/compose/watchdog.ts";

const noteOf = (id: string) => {
  return { id, jobUid: "j", worker: "host/1/a", what: "filled", plugin: null, atMs: 1 } as const;
};

test("the notes of an embedded process that has ended reach its database, but withdrawn and torn ones", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-notes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = notesFile(folder);
  const lines = [{ note: noteOf("a") }, { note: noteOf("b") }, { withdrawn: "a" }].map((line) => JSON.stringify(line));
  writeFileSync(file, `${lines.join("\n")}\n{"note": {"id": "c", "job`);
  const written: string[] = [];
  const writeNote = async ({ id }: { readonly id: string }) => void written.push(id);
  await takeNotes(file, { writeNote });
  assert.deepEqual(written, ["b"]);
  assert.equal(existsSync(file), false);
  await takeNotes(file, { writeNote });
  assert.deepEqual(written, ["b"], "they are taken once");
});
