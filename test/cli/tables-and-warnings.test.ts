/** Habits of reading and submitting: tables without headings, orders, and what thirty jobs have in common. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

async function served(t: TestContext, names: readonly string[] = ["b", "a", "c"]) {
  const { api, store } = await startFixture(t);
  const files = Object.fromEntries(names.map((name) => [`${name}.yaml`, pytorchManifest(name)]));
  const gangway = (line: string, more: World = {}): Promise<Ran> =>
    run(line.split(" "), { address: api.address, files, ...more });
  for (const name of names) assert.equal((await gangway(`submit ${name}.yaml`)).exitCode, 0);
  return { gangway, store };
}

test("--no-headers prints tables without their headings", async (t) => {
  const { gangway } = await served(t);
  for (const line of ["get", "list", "get a", "queue list", "queue get default", "get queues", "kinds"]) {
    const full = (await gangway(line)).stdout;
    if (line === "kinds") continue;
    assert.match(full, /^NAME /, line);
    const bare = await gangway(`${line} --no-headers`);
    assert.equal(bare.exitCode, 0, bare.stderr);
    const rows = (text: string) => text.split("\n").map((row) => row.replaceAll(/\d+s/g, "").trim());
    assert.deepEqual(rows(bare.stdout), rows(full).slice(1), line);
  }
  assert.equal((await gangway("get --no-headers -o name")).stdout.split("\n").length, 4);
});

test("--sort-by takes names and paths as kubectl's users write them", async (t) => {
  const { gangway } = await served(t);
  await gangway("update c --priority 5");
  const sorted = async (path: string) =>
    (await gangway(`get -o name --sort-by ${path}`)).stdout.replaceAll(/\w+\/|\n/g, "");
  for (const path of ["name", ".metadata.name", "{.metadata.name}", "metadata.name"])
    assert.equal(await sorted(path), "abc", path);
  for (const path of ["age", ".metadata.creationTimestamp", "createTime"])
    assert.equal(await sorted(path), "bac", path);
  for (const path of ["priority", ".spec.priority"]) assert.match(await sorted(path), /^c/, path);
  const wrong = await gangway("get --sort-by .status.phase");
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /Allowed are name, metadata\.name, age, /);
});

test("a warning that thirty jobs share is one line", async (t) => {
  const { gangway } = await served(t, []);
  const typo = (name: string) => pytorchManifest(name).replace("image:", "imagePullPolcy: Always, image:");
  const stdin = Array.from({ length: 30 }, (_, at) => typo(`job-${at}`)).join("---\n");
  const all = await gangway("submit -", { stdin });
  assert.equal(all.exitCode, 0);
  const warnings = all.stderr.trim().split("\n");
  assert.ok(warnings.length <= 2, all.stderr);
  for (const warning of warnings) assert.match(warning, /^warning: stdin, document 1 and 29 more: .*imagePullPolcy/);
  const one = await gangway("submit -", { stdin: typo("alone") });
  assert.match(one.stderr, /^warning: stdin, document 1: /);
  const judged = await gangway("can-run -", { stdin });
  assert.ok(judged.stderr.trim().split("\n").length <= 2, judged.stderr);
});

test("a printed job whose labels were changed names the command that changes them", async (t) => {
  const { gangway } = await served(t, ["a"]);
  await gangway("update a --label team=nlp --label old=1");
  const { stdout } = await gangway("get a -o yaml");
  const changed = stdout.replace("team: nlp", "team: cv\n    tier: gold").replace(/\n +old: "1"/, "");
  assert.notEqual(changed, stdout);
  const applied = await gangway("apply -f -", { stdin: changed });
  assert.equal(applied.exitCode, 3);
  const [, command = ""] = /note: only its labels differ; "gangway (.*)" changes them\n$/.exec(applied.stderr) ?? [];
  assert.equal(command, "update a --label team=cv --label tier=gold --label old-");
  assert.equal((await gangway(command)).exitCode, 0);
  assert.equal((await gangway("apply -f -", { stdin: changed })).stdout, "pytorchjob/a unchanged\n");
});
