/** Contexts: services by name in a configuration file, and the order in which settings count. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { configFileAt } from "../../src/cli/auth/config-file.ts";
import { readConfig } from "../../src/config/config.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run, type World } from "./harness.ts";

function inFolder(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "gangway-context-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "deep", "config.yaml");
  const configFile = configFileAt(path);
  const gangway = (line: string, more: World = {}) =>
    run(line.split(" "), { configFile, files: { "a.yaml": pytorchManifest("a") }, ...more });
  return { path, configFile, gangway };
}

test("a context is set, used for calls and their namespace, and deleted", async (t) => {
  const { api } = await startFixture(t);
  const { path, gangway } = inFolder(t);
  assert.equal((await gangway("context list")).stderr, "no contexts\n");
  assert.equal((await gangway(`context set dev --address 127.0.0.1:1,${api.address} -n nlp`)).exitCode, 0);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal((await gangway("context set other --address 127.0.0.1:1")).exitCode, 0);
  assert.match((await gangway("context list")).stdout, /\n\* +dev +127\.0\.0\.1:1,127\.0\.0\.1:\d+ +nlp +-\n- +other/);
  assert.equal((await gangway("submit a.yaml")).stdout, "pytorchjob/a created\n");
  assert.equal((await gangway("get a -o jsonpath={.metadata.namespace}")).stdout, "nlp");
  assert.equal((await gangway("--context other list")).exitCode, 4);
  assert.equal(
    (await gangway(`list -o name --context other --address ${api.address} -n nlp`)).stdout,
    "pytorchjob/a\n",
  );
  assert.equal((await gangway("list -n default")).stderr, "no jobs\n");
  assert.equal((await gangway("list", { namespace: "default" })).stderr, "no jobs\n");
  assert.equal((await gangway("list", { address: "127.0.0.1:1" })).exitCode, 4);
  await gangway("context use other");
  assert.equal((await gangway("list")).exitCode, 4);
  await gangway("context delete other");
  assert.match((await gangway("context use other")).stderr, /^error: there is no context other; there are dev\n$/);
  assert.match((await gangway("list --context nowhere")).stderr, /^error: there is no context nowhere/);
});

const wrong: Record<string, RegExp> = {
  "[": /it is not YAML/,
  "- a": /must be an object with the members current and contexts/,
  "context: {}": /context is not a known member/,
  "contexts: {a: {addresses: [nowhere]}}": /contexts\.a\.addresses: nowhere is not HOST:PORT/,
  "contexts: {a: {address: h}}": /contexts\.a\.address is not a known member/,
  "contexts: {a: {namespace: A_B}}": /contexts\.a\.namespace must be the name of a namespace/,
  "current: gone": /there is no context gone/,
};
for (const [text, error] of Object.entries(wrong)) {
  test(`a file with ${text} is refused with its place`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gangway-context-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "config.yaml");
    writeFileSync(path, text);
    const ran = await run(["list"], { configFile: configFileAt(path), address: "127.0.0.1:1" });
    assert.equal(ran.exitCode, 2);
    assert.match(ran.stderr, error);
  });
}

test("settings of a context have rules", async (t) => {
  const { gangway } = inFolder(t);
  for (const line of ["set a", "set a/b --address h:1", "set a --address h", "set a -n N", "delete a", "use a"]) {
    assert.equal((await gangway(`context ${line}`)).exitCode, 2, line);
  }
});

test("the environment names the file", () => {
  assert.match(readConfig("/w", {}).contextsFile, /\/\.config\/gangway\/config\.yaml$/);
  assert.equal(readConfig("/w", { XDG_CONFIG_HOME: "/x" }).contextsFile, "/x/gangway/config.yaml");
  assert.equal(readConfig("/w", { GANGWAY_CONFIG: "my.yaml" }).contextsFile, "/w/my.yaml");
});
