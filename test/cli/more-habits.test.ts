/** More habits: files that delete, goals of wait, selections of rerun and explain, events and pods of many jobs. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { JobPhase } from "../../src/core/job/status.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

const FILES = {
  "jobs/a.yaml": pytorchManifest("a").replace("{name: a}", "{name: a, labels: {sweep: lr}}"),
  "jobs/b.yaml": pytorchManifest("b").replace("{name: b}", "{name: b, labels: {sweep: lr}}"),
  "c.yaml": pytorchManifest("c"),
  "absent.yaml": pytorchManifest("absent"),
  "other.yaml": pytorchManifest("c").replace("PyTorchJob", "TFJob").replace("pytorchReplica", "tfReplica"),
};

async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  store.removesDeleted = true;
  const gangway = (line: string, more: World = {}): Promise<Ran> =>
    run(line.split(" "), { address: api.address, files: FILES, ...more });
  for (const file of ["jobs/", "c.yaml"]) assert.equal((await gangway(`submit ${file}`)).exitCode, 0);
  const move = (name: string, phase: JobPhase) => {
    const { job } = store.jobs.get(`default/${name}`) ?? assert.fail(`no job ${name}`);
    store.put({ ...job, version: job.version + 1, status: { ...job.status, phase, waiting: null } });
  };
  const names = async () => (await gangway("get -o name")).stdout.replaceAll(/pytorchjob\/|\n/g, "");
  return { gangway, store, move, names };
}

test("delete -f deletes the jobs of manifests, after checking all of them", async (t) => {
  const { gangway, names } = await served(t);
  const wrong = {
    "delete -f jobs/ -f absent.yaml":
      /absent\.yaml, document 1: job default\/absent does not exist\nnothing was deleted/,
    "delete -f nowhere.yaml": /nowhere\.yaml does not exist/,
    "delete -f c.yaml --all": /give either --filename, or names of jobs, or options that select jobs/,
    "delete a -f c.yaml": /does not exist|give either --filename/,
  };
  for (const [line, says] of Object.entries(wrong)) {
    const ran = await gangway(line);
    assert.ok(ran.exitCode > 0, line);
    assert.match(ran.stderr, says, line);
    assert.equal(await names(), "abc", line);
  }
  const ignored = await gangway("delete -f jobs/ -f absent.yaml --ignore-not-found");
  assert.deepEqual(ignored, { exitCode: 0, stdout: "pytorchjob/a deleted\npytorchjob/b deleted\n", stderr: "" });
  assert.equal(await names(), "c");
});

test("wait --for waits for a phase, for the end and for the deletion", async (t) => {
  const { gangway, move, store } = await served(t);
  move("a", "RUNNING");
  for (const goal of [
    "running",
    "condition=Running",
    "condition=running=true",
    "jsonpath={.status.phase}=JOB_PHASE_RUNNING",
  ])
    assert.equal((await gangway(`wait a --for=${goal}`)).exitCode, 0, goal);
  assert.equal((await gangway("wait a --for admitted")).exitCode, 0, "it has been admitted");
  const late = await gangway("wait a --for=condition=complete --timeout 20ms");
  assert.equal(late.exitCode, 124, late.stderr);
  assert.equal((await gangway("wait b --for running --timeout 20ms")).exitCode, 124);
  move("b", "FAILED");
  assert.equal((await gangway("wait b --for running")).exitCode, 1);
  move("a", "SUCCEEDED");
  assert.equal((await gangway("wait a --for=condition=complete")).exitCode, 0);
  const deleting = gangway("wait a --for=delete");
  await t.waitFor(() => assert.equal(store.watching, 1));
  assert.equal((await gangway("delete a")).exitCode, 0);
  assert.equal((await deleting).exitCode, 0);
  for (const goal of ["sleeping", "condition=", "jsonpath={.spec}=x"])
    assert.equal((await gangway(`wait c --for=${goal}`)).exitCode, 2, goal);
});

test("rerun and explain take several jobs, and selections", async (t) => {
  const { gangway, move, names } = await served(t);
  const explained = await gangway("explain -l sweep=lr");
  assert.match(explained.stdout, /^default\/a waits(.|\n)*\ndefault\/b waits/);
  assert.match((await gangway("explain a c")).stdout, /^default\/a waits(.|\n)*\ndefault\/c waits/);
  assert.equal((await gangway("explain -l no=such")).exitCode, 3);
  move("a", "SUCCEEDED");
  move("b", "FAILED");
  assert.match(
    (await gangway("rerun -l sweep=lr")).stderr,
    /^error: this would rerun 2 jobs: a, b; add --yes to do it\n$/,
  );
  assert.match((await gangway("rerun -l sweep=lr --name x --yes")).stderr, /--name is for one job, and these are 2/);
  const again = await gangway("rerun -l sweep=lr --replace --yes");
  assert.equal(again.exitCode, 0, again.stderr);
  assert.equal(again.stdout, "pytorchjob/a created\npytorchjob/b created\n");
  assert.equal((await names()).length, 3);
});

test("events without names are those of all jobs, in the order of their times", async (t) => {
  const { gangway, store, move } = await served(t);
  const push = (name: string, type: "Normal" | "Warning", atMs: number, message: string) => {
    const { job } = store.jobs.get(`default/${name}`) ?? assert.fail();
    store.events.push({ type, reason: "Said", message, atMs, version: atMs, jobUid: job.uid });
  };
  push("a", "Normal", 3_000, "third");
  push("b", "Warning", 2_000, "second");
  push("c", "Normal", 1_000, "first");
  const messages = (text: string) =>
    text
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/ {2,}/).at(-1));
  assert.deepEqual(messages((await gangway("events")).stdout), ["first", "second", "third"]);
  assert.deepEqual(messages((await gangway("get events -A")).stdout), ["first", "second", "third"]);
  assert.deepEqual(messages((await gangway("events -A --warnings")).stdout), ["second"]);
  assert.deepEqual(messages((await gangway("events a b")).stdout), ["second", "third"]);
  assert.match((await gangway("events -A")).stdout, /^NAMESPACE +JOB +AGE +TYPE +REASON +MESSAGE\ndefault +c /);
  assert.equal((await gangway("events a -l x=y")).exitCode, 2);
  const stop = new AbortController();
  let text = "";
  const onOutput = (more: string) => {
    const isFirst = text === "";
    text += more;
    if (isFirst) {
      push("b", "Warning", 4_000, "fourth");
      push("b", "Normal", 5_000, "fifth");
      move("b", "RUNNING");
    }
    if (text.includes("fourth")) stop.abort();
  };
  const watched = await gangway("events -A --warnings -w", { signal: stop.signal, onOutput });
  assert.equal(watched.exitCode, 130);
  assert.deepEqual(messages(watched.stdout), ["second", "fourth"]);
});
