import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { logText } from "../../src/telemetry/log-text.ts";

const TIME = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const AT = "2026-01-02T03:04:05.006Z";

const lines: Readonly<Record<string, readonly [facts: Readonly<Record<string, unknown>>, shown: string]>> = {
  "a message alone": [{ msg: "service stopped" }, "INFO  service stopped"],
  "a level": [{ level: 50, msg: "loop failed" }, "ERROR loop failed"],
  "members, and lists of words": [
    { msg: "process started", roles: ["api", "worker"], address: "127.0.0.1:7443", count: 3, ready: true },
    "INFO  process started roles=api,worker address=127.0.0.1:7443 count=3 ready=true",
  ],
  "nothing as a dash": [{ msg: "m", address: null, names: [] }, "INFO  m address=- names="],
  "texts that are no word in quotes": [{ msg: "m", a: "b c", d: 'x="1"', e: "" }, 'INFO  m a="b c" d="x=\\"1\\"" e=""'],
  "objects with dots, and errors without their stacks": [
    { msg: "m", error: { type: "Error", message: "not found", stack: "Error: not found\n  at x" }, a: { b: { c: 1 } } },
    'INFO  m error.type=Error error.message="not found" a.b.c=1',
  ],
  "lists of objects by number": [{ msg: "m", of: [{ a: 1 }, { a: 2 }] }, "INFO  m of.0.a=1 of.1.a=2"],
  "ends of lines and tabs as escapes": [{ msg: "a\nb\tc", d: "e\nf" }, 'INFO  a\\nb\\tc d="e\\nf"'],
  "characters that act on a terminal as escapes": [
    { msg: "\u001b[2J\u009b", name: "\u007f\u202eabc\u2028", "\u001bkey": "\r", list: ["\u001b[0m"] },
    'INFO  \\u001b[2J\\u009b name="\\u007f\\u202eabc\\u2028" \\u001bkey="\\r" list.0="\\u001b[0m"',
  ],
};
for (const [name, [facts, shown]] of Object.entries(lines)) {
  test(`a line for people shows ${name}`, () => {
    assert.equal(logText(`${JSON.stringify({ level: 30, time: TIME, ...facts })}\n`), `${AT} ${shown}`);
  });
}

test("a text that is no line of the log is shown as it is, on one line", () => {
  assert.equal(logText("not JSON \u001b\n"), "not JSON \\u001b");
});

test("the format is one of two, and otherwise that of the output", () => {
  const formatOf = (format: string) => readConfig("/", { GANGWAY_LOG_FORMAT: format }).logFormat;
  assert.deepEqual(["text", "json"].map(formatOf), ["text", "json"]);
  assert.equal(readConfig("/", {}).logFormat, null);
  assert.throws(() => formatOf("xml"), /GANGWAY_LOG_FORMAT is "xml"; allowed are text, json/);
});

const WRITER = join(import.meta.dirname, "log-line-writer.ts");
const hasScript = spawnSync("script", ["--version"]).status === 0;

function written(format: string, { terminal }: { readonly terminal: boolean }): string {
  const env = { ...process.env, GANGWAY_LOG_FORMAT: format };
  const command = `'${process.execPath}' '${WRITER}'`;
  const ran = terminal
    ? spawnSync("script", ["-qec", command, "/dev/null"], { env, encoding: "utf8" })
    : spawnSync("sh", ["-c", command], { env, encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stdout.trim();
}

test("the log of a process is JSON in a pipe, unless the setting says text", () => {
  assert.match(written("", { terminal: false }), /^\{.*"msg":"process started"\}$/);
  assert.match(written("text", { terminal: false }), /Z INFO {2}process started roles=api address="\\u001b\[2J"$/);
});

test("the log of a process is text in a terminal, unless the setting says JSON", {
  skip: hasScript ? false : "script is not on the PATH",
}, () => {
  assert.match(written("", { terminal: true }), /^\d{4}-\S+Z INFO {2}process started roles=api address="\\u001b\[2J"$/);
  assert.match(written("json", { terminal: true }), /^\{.*"msg":"process started"\}$/);
});
