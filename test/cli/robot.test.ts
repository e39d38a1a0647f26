import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { configFileAt } from "../../src/cli/auth/config-file.ts";
import { startFixture } from "../api/fixture.ts";
import { run, type World } from "./harness.ts";

test("a robot is created with its token in a file for its owner alone, listed, and revoked", async (t) => {
  const { api } = await startFixture(t);
  const folder = mkdtempSync(join(tmpdir(), "gangway-robot-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "ci.token");
  const writePrivateFile: World["writePrivateFile"] = (file, text) => configFileAt(file).write(text);
  const gangway = (line: string, more: World = {}) =>
    run(line.split(" "), { address: api.address, writePrivateFile, ...more });
  assert.equal((await gangway("robot list")).stderr, "no robots\n");
  const made = await gangway(`robot create ci --to ${path} --ttl 24h`);
  assert.equal(made.stdout, `robot/ci created; its token is in ${path}\n`);
  assert.match(readFileSync(path, "utf8"), /^gwt_[\w-]{43}\n$/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const secret = readFileSync(path, "utf8").trim();
  const list = (await gangway("robot list")).stdout;
  assert.match(list, /^NAME +STATE +SCOPE +OWNER +EXPIRES +LAST USED\nci +active +installation +anonymous +\d{4}-/);
  for (const format of ["json", "yaml", "name"]) {
    assert.doesNotMatch((await gangway(`robot list -o ${format}`)).stdout, new RegExp(secret.slice(4)));
  }
  assert.equal((await gangway("robot revoke ci")).stdout, "robot/ci revoked\n");
  assert.match((await gangway("robot list")).stdout, /\nci +revoked/);

  for (const [flag, scope] of [
    ["--namespace nlp", "namespace/nlp"],
    ["--project ml", "project/ml"],
  ]) {
    const name = scope?.replace("/", "-");
    assert.equal((await gangway(`robot create ${name} --to ${join(folder, `${name}.token`)} ${flag}`)).exitCode, 0);
    assert.match((await gangway("robot list")).stdout, new RegExp(`\n${name} +active +${scope} +anonymous`));
  }
  const both = await gangway("robot create x --to x --namespace nlp --project ml");
  assert.deepEqual([both.exitCode, both.stderr], [2, "error: give at most one of --project and --namespace\n"]);

  const taken = await gangway(`robot create other --to ${path}`, { files: { [path]: secret } });
  assert.deepEqual([taken.exitCode, taken.stdout], [2, ""], "a file that exists is not overwritten");
  const broken = await gangway("robot create other --to x", {
    writePrivateFile: () => Promise.reject(new Error("full")),
  }).catch((error: Error) => error.message);
  assert.equal(broken, "full");
  assert.match((await gangway("robot list")).stdout, /\nother +revoked/, "a token that nobody has is revoked");
  assert.equal((await gangway("robot create no")).exitCode, 2);
  assert.equal((await gangway(`robot create ci --to ${path}`)).exitCode, 3);
  assert.equal((await gangway("robot revoke nobody")).exitCode, 3);
});
