import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** Set to write the files instead of comparing with them: review what changes. */
const RECORD = process.env["GANGWAY_RECORD"] === "transcripts";

/** Compares a text with a file that was recorded. */
export function assertRecorded(file: URL, text: string): void {
  if (RECORD) writeFileSync(file, text);
  assert.ok(existsSync(file), `there is no ${file.pathname}: run this test with GANGWAY_RECORD=transcripts`);
  assert.equal(text, readFileSync(file, "utf8"));
}
