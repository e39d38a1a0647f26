/** The file with limits of callers: what it gives, and what is refused. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { CALL_LIMIT_DEFAULTS } from "../../src/core/access/call-limits.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-limits-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function fromFile(text: string) {
  const path = join(directory, "limits.yaml");
  writeFileSync(path, text);
  return readConfig(directory, { GANGWAY_LIMITS_FILE: path }).limitsFile;
}

test("a file changes the defaults, and gives limits to subjects and groups", () => {
  assert.equal(readConfig(directory, {}).limitsFile, null);
  const source = fromFile(`
defaults: {callsPerSecond: 20, watches: none}
callers:
  - {subject: "robot:ci", callsPerSecond: 500, burst: 0}
  - {group: "login:ml", waitingRequests: 1000, robots: 0}
`);
  assert.deepEqual(source?.value, {
    defaults: { ...CALL_LIMIT_DEFAULTS, callsPerSecond: 20, watches: null },
    callers: [
      { by: { kind: "subject", name: "robot:ci" }, limits: { callsPerSecond: 500, burst: 0 } },
      { by: { kind: "group", name: "login:ml" }, limits: { waitingRequests: 1000, robots: 0 } },
    ],
  });
});

const refused = {
  "limits: {}": "limits is unknown; known are defaults, callers",
  "defaults: {calls: 3}": "defaults.calls is unknown; known are callsPerSecond, burst, callsInFlight",
  "defaults: {callsPerSecond: 0}": "defaults.callsPerSecond must be a whole number from 1 to 1000000, or none",
  "defaults: {burst: -1}": "defaults.burst must be a whole number from 0 to 1000000, or none",
  "defaults: {watches: 1.5}": "defaults.watches must be a whole number from 1 to 1000000, or none",
  "defaults: {logStreams: many}": "defaults.logStreams must be a whole number from 1 to 1000000, or none",
  "callers: {}": "callers must be a list",
  "callers: [{watches: 3}]": "callers[0] must have either subject or group",
  "callers: [{subject: a, group: b}]": "callers[0] must have either subject or group",
  "callers: [{subject: 3}]": "callers[0].subject must be a text that is not empty",
  "[]": "it must be an object",
} as const;
for (const [text, message] of Object.entries(refused)) {
  test(`refused: ${text}`, () => {
    assert.throws(
      () => fromFile(text),
      (error: Error) => error.message.startsWith("GANGWAY_LIMITS_FILE names ") && error.message.includes(message),
    );
  });
}
