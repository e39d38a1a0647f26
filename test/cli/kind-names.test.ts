/** Arguments as in kubectl: kinds before names, objects that are no jobs, and words that mean nothing. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { nearCommand } from "../../src/cli/run/unknown-words.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

const FILES = Object.fromEntries(["a", "b", "c"].map((name) => [`${name}.yaml`, pytorchManifest(name)]));

async function served(t: TestContext, files: Readonly<Record<string, string>> = FILES) {
  const fixture = await startFixture(t);
  fixture.store.removesDeleted = true;
  const gangway = (line: string, more: World = {}): Promise<Ran> =>
    run(line.split(" "), { address: fixture.api.address, files, ...more });
  for (const file of Object.keys(files)) assert.equal((await gangway(`submit ${file}`)).exitCode, 0);
  const phases = async () => (await gangway("get -o jsonpath={.jobs[*].status.phase}")).stdout;
  const state = async () => (await gangway("get -o json")).stdout;
  return { ...fixture, gangway, phases, state };
}

/** Command lines, and what they print. */
const understood: readonly (readonly [string, string | RegExp])[] = [
  ["get pytorchjob a b -o name", "pytorchjob/a\npytorchjob/b\n"],
  ["get pytorchjobs a,b -o name", "pytorchjob/a\npytorchjob/b\n"],
  ["get pytorch a -o name", "pytorchjob/a\n"],
  ["get PyTorchJob a -o name", "pytorchjob/a\n"],
  ["get pytorchjobs.kubeflow.org a -o name", "pytorchjob/a\n"],
  ["get pytorchjobs.v1.kubeflow.org/a -o name", "pytorchjob/a\n"],
  ["get jobs -o name", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["get -o name jobs", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["get jobs a -o name", "pytorchjob/a\n"],
  ["get job/a jobs/b pytorchjobs/c -o name", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["get pytorchjob -o name", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["get pytorchjobs -o name", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["get tfjobs", ""],
  ["list pytorch --phase waiting -o name", "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
  ["describe pytorchjob a", /waits/],
  ["explain job a", /waits/],
  ["suspend pytorchjob a b", "pytorchjob/a suspended\npytorchjob/b suspended\n"],
  ["resume jobs a b", "pytorchjob/a resumed\npytorchjob/b resumed\n"],
  ["scale pytorchjob a Worker=3", "pytorchjob/a scaled\n"],
  ["rerun pytorchjobs a --name d", "pytorchjob/d created\n"],
  ["cancel pytorchjobs --all --yes", /^(pytorchjob\/\w cancelled\n){4}$/],
  ["delete pytorchjob a", "pytorchjob/a deleted\n"],
  ["delete jobs b c", "pytorchjob/b deleted\npytorchjob/c deleted\n"],
];
test("a kind may stand before names, in all its spellings", async (t) => {
  const { gangway } = await served(t);
  for (const [line, out] of understood) {
    const ran = await gangway(line);
    const shown = `$ gangway ${line}\n${ran.stdout}${ran.stderr}[${ran.exitCode}]`;
    assert.equal(ran.exitCode, 0, shown);
    if (typeof out === "string") assert.equal(ran.stdout, out, shown);
    else assert.match(ran.stdout, out, shown);
  }
});

/** Command lines that must change nothing, and what they say. */
const refused: Readonly<Record<string, RegExp>> = {
  "delete tfjob a": /there is no tfjob\/a: a is a PyTorchJob/,
  "delete tf a b": /there is no tf\/a: a is a PyTorchJob\nerror: there is no tf\/b: b is .*\nnothing was changed\n$/,
  "delete pytorchjob a nosuch": /not found: job default\/nosuch .*\nnothing was changed\n$/,
  "delete pytorchjbo a": /pytorchjbo names no job, and is no kind: did you mean PyTorchJob\?\nnothing was changed\n$/,
  "delete pytorchjbo a --ignore-not-found": /pytorchjbo names no job, and is no kind: did you mean PyTorchJob\?/,
  "delete pytorchjbo/a": /there is no pytorchjbo\/a: a is a PyTorchJob; pytorchjbo is no kind: did you mean PyTorchJob/,
  "delete deployment a": /not found: job default\/deployment does not exist\nnothing was changed/,
  "delete pytorchjob":
    /^error: not found: job default\/pytorchjob .*\npytorchjob is a kind: give names of jobs after it\n$/,
  "delete pytorchjob a tfjob/b": /after the kind pytorchjob, give names of jobs without a kind, not tfjob\/b/,
  "delete pytorchjob a -l x=y --yes": /not both/,
  "delete pytorchjobs -l x=y --kind tfjob --yes": /either the kind pytorchjobs or --kind, not both/,
  "delete a b/": /a job must be NAME or KIND\/NAME, not b\//,
  "cancel a nosuch": /nothing was changed/,
  "suspend a tfjob/b": /nothing was changed/,
  "update a nosuch --priority 3": /nothing was changed/,
  "update a b --label =": /KEY=VALUE/,
  "scale a Worker=3 Worker": /TYPE=NUMBER/,
  "scale a b Worker=3": /give one job, as NAME, KIND\/NAME or KIND NAME, not a b/,
  "rerun a nosuch": /nothing was changed/,
  "delete queue a": /delete takes jobs, and queue is none; .* use "gangway queue delete a"; a job .* job\/queue\n$/,
  "delete queue/a": /use "gangway queue delete a"/,
  "delete clusters a": /use "gangway cluster remove a"/,
  "delete ns a": /use "gangway namespace delete a"/,
  "delete pod a": /delete takes jobs, and pod is none; nothing was changed/,
  "delete -o a queue b": /unknown option|takes jobs/,
  "cancel pods a": /cancel takes jobs, and pods is none/,
  "cancel --kind pytorchjbo --yes": /there is no kind pytorchjbo; did you mean PyTorchJob\?/,
  "cancel --kind nonsense --yes": /there is no kind nonsense; the kinds are PyTorchJob, TFJob, /,
  "label a x=y": /unknown command 'label'; labels of jobs change with "gangway update JOB --label KEY=VALUE"/,
  "kill a": /unknown command 'kill'; jobs are ended with "gangway cancel"/,
  "cancle a": /unknown command 'cancle'; did you mean "gangway cancel"\?/,
  "delet a": /unknown command 'delet'; did you mean "gangway delete"\?/,
};
test("an argument that is not understood changes nothing", async (t) => {
  const { gangway, state } = await served(t);
  const before = await state();
  for (const [line, says] of Object.entries(refused)) {
    const ran = await gangway(line);
    assert.ok(ran.exitCode === 2 || ran.exitCode === 3, `${line}: ${ran.exitCode}`);
    assert.match(ran.stderr, says, line);
    assert.equal(ran.stdout, "", line);
    assert.equal(await state(), before, line);
  }
});

test("alone, a kind or an object in the singular is the name of a job that has it", async (t) => {
  const { gangway } = await served(t, { "tf.yaml": pytorchManifest("tf"), "cluster.yaml": pytorchManifest("cluster") });
  for (const name of ["tf", "cluster"]) {
    assert.equal((await gangway(`get ${name} -o jsonpath={.metadata.name}`)).stdout, name);
    assert.match((await gangway(`explain ${name}`)).stdout, /waits/);
    assert.equal((await gangway(`cancel ${name}`)).stdout, `pytorchjob/${name} cancelled\n`);
    assert.equal((await gangway(`delete ${name}`)).stdout, `pytorchjob/${name} deleted\n`);
  }
});

test("a job whose name is a kind is reached as job/NAME", async (t) => {
  const { gangway, phases } = await served(t, {
    "tf.yaml": pytorchManifest("tf"),
    "a.yaml": pytorchManifest("a"),
  });
  const unclear = await gangway("cancel tf a");
  assert.equal(unclear.exitCode, 3);
  assert.match(unclear.stderr, /^error: tf is a kind here, and the name of a job, too: for the job, write job\/tf\n/);
  assert.equal(await phases(), "JOB_PHASE_WAITING JOB_PHASE_WAITING");
  assert.equal((await gangway("cancel job/tf a")).stdout, "pytorchjob/tf cancelled\npytorchjob/a cancelled\n");
});

/** What get, list and describe do with objects that are no jobs. */
const objects: readonly (readonly [string, string | RegExp])[] = [
  ["get queues -o name", /^queue\/default\n/],
  ["get -o name queues", /^queue\/default\n/],
  ["-n other get -o name queue default", "queue/default\n"],
  ["get queue/default -o name", "queue/default\n"],
  ["get queues default research -o name", "queue/default\nqueue/research\n"],
  ["get queue/default queue/research -o name", "queue/default\nqueue/research\n"],
  ["get queues default research", /^NAME .*\ndefault .*\nresearch .*\n$/],
  ["list queues -o name", /^queue\/default\n/],
  ["describe queue default -o name", "queue/default\n"],
  ["queue describe default -o name", "queue/default\n"],
  ["queue ls -o name", /^queue\/default\n/],
  ["get ns -o name", /^namespace\/default\n/],
  ["get namespaces default -o name", "namespace/default\n"],
  ["get pools -o name", /^$|^pool\//],
  ["get clusters", ""],
  ["cluster ls", ""],
  ["get pods a", ""],
  ["get events a", ""],
  ["get kinds -o name", /^PyTorchJob\n/],
  ["get priorityclasses -o name", ""],
];
test("get, list and describe lead to the commands of other objects", async (t) => {
  const { gangway } = await served(t);
  assert.equal((await gangway("queue create research")).exitCode, 0);
  for (const [line, out] of objects) {
    const ran = await gangway(line);
    const shown = `$ gangway ${line}\n${ran.stdout}${ran.stderr}[${ran.exitCode}]`;
    assert.equal(ran.exitCode, 0, shown);
    if (typeof out === "string") assert.equal(ran.stdout, out, shown);
    else assert.match(ran.stdout, out, shown);
  }
});

/** The words that one slip of a finger makes of a word. */
function slips(word: string): readonly string[] {
  const places = Array.from({ length: word.length + 1 }, (_, at) => at);
  const letters = [..."abcdefghijklmnopqrstuvwxyz-"];
  return places.flatMap((at) => {
    const [head, tail] = [word.slice(0, at), word.slice(at)];
    const swapped = tail.length < 2 ? [] : [`${head}${tail[1]}${tail[0]}${tail.slice(2)}`];
    const others = letters.flatMap((letter) => [head + letter + tail, head + letter + tail.slice(1)]);
    return [head + tail.slice(1), ...swapped, ...others];
  });
}

test("no slip in a word that reads suggests a command that changes something", async () => {
  const { stdout } = await run(["__complete", ""]);
  const names = stdout.trim().split("\n");
  const changes = ["submit", "apply", "create", "rerun", "update", "edit", "scale", "suspend", "resume", "cancel"];
  const more = ["delete", "alloc", "release", "migrate", "serve", "up", "login", "logout"];
  for (const change of [...changes, ...more]) assert.ok(names.includes(change), change);
  const reads = names.filter((name) => !changes.includes(name) && !more.includes(name));
  for (const read of reads) {
    for (const word of slips(read).filter((one) => !names.includes(one))) {
      const near = nearCommand(word, names);
      assert.ok(near !== null && reads.includes(near), `${word} suggests ${near}`);
    }
  }
});

test("an unknown option names the option that is one slip away, and none that confirms a change", async () => {
  const lines = { "list --phaes x": "--phase", "list --quue=x": "--queue", "submit --dryrun": "--dry-run" };
  for (const [line, option] of Object.entries(lines)) {
    const ran = await run(line.split(" "));
    assert.equal(ran.exitCode, 2);
    assert.ok(ran.stderr.endsWith(`(did you mean ${option}?)\n`), ran.stderr);
  }
  for (const line of ["cluster remove east --force", "cancel --all --ye", "delete a --label x"]) {
    const ran = await run(line.split(" "));
    assert.equal(ran.exitCode, 2);
    assert.doesNotMatch(ran.stderr, /did you mean/i, line);
  }
});
