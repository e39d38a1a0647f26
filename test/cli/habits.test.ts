/** The habits that users bring from kubectl and other command lines: shorter forms, lists, selections and formats. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

function labelled(name: string, labels: string): string {
  return pytorchManifest(name).replace(`{name: ${name}}`, `{name: ${name}, labels: {${labels}}}`);
}

const FILES = {
  "a.yaml": labelled("a", "team: nlp, tier: gold"),
  "b.yaml": labelled("b", "team: nlp, example.com/x-y: q"),
  "c.yaml": pytorchManifest("c"),
};

async function served(t: TestContext, submitted: readonly string[] = Object.keys(FILES)) {
  const fixture = await startFixture(t);
  fixture.store.removesDeleted = true;
  const world: World = { address: fixture.api.address, files: FILES };
  const gangway = (line: string | readonly string[], more: World = {}): Promise<Ran> =>
    run(typeof line === "string" ? line.split(" ") : line, { ...world, ...more });
  for (const file of submitted) assert.equal((await gangway(["submit", file])).exitCode, 0);
  return { ...fixture, gangway };
}

/** A command line, and what it prints on stdout. */
const printed: Record<string, readonly (readonly [readonly string[], string | RegExp])[]> = {
  "submit takes files without -f, and has the names that other tools give it": [
    [["submit", "a.yaml", "b.yaml"], "pytorchjob/a unchanged\npytorchjob/b unchanged\n"],
    [["apply", "-f", "a.yaml"], "pytorchjob/a unchanged\n"],
    [["create", "a.yaml", "-f", "c.yaml"], "pytorchjob/a unchanged\npytorchjob/c unchanged\n"],
  ],
  "get without names lists, and ls is list": [
    [["get", "-o", "name"], "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
    [["ls", "-o", "name"], "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
    [["get", "-l", "team=nlp", "-o", "name"], "pytorchjob/a\npytorchjob/b\n"],
    [["list", "a", "-o", "name"], "pytorchjob/a\n"],
  ],
  "describe is explain": [[["describe", "a"], /^a waits|waits/]],
  "-n stands before or after the verb": [
    [["-n", "nlp", "submit", "a.yaml"], "pytorchjob/a created\n"],
    [["submit", "b.yaml", "-n", "nlp"], "pytorchjob/b created\n"],
    [["--namespace=nlp", "get", "-o", "name"], "pytorchjob/a\npytorchjob/b\n"],
    [["get", "a", "-n", "nlp", "-o", "jsonpath={.metadata.namespace}"], "nlp"],
    [["-n", "nlp", "cancel", "a"], "pytorchjob/a cancelled\n"],
  ],
  "lists with commas": [
    [["get", "a,b", "-o", "name"], "pytorchjob/a\npytorchjob/b\n"],
    [["list", "--phase", "waiting,running", "-o", "name"], "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
    [["list", "-l", "team=nlp,tier=gold", "-o", "name"], "pytorchjob/a\n"],
    [["list", "-l", "team==nlp", "-l", "tier=gold", "-o", "name"], "pytorchjob/a\n"],
    [["list", "--kind", "pytorchjob,tfjob", "-o", "name"], "pytorchjob/a\npytorchjob/b\npytorchjob/c\n"],
    [["suspend", "a,b", "c"], "pytorchjob/a suspended\npytorchjob/b suspended\npytorchjob/c suspended\n"],
  ],
  "-o wide has more columns": [
    [["get", "-o", "wide"], /^NAME .* ADMISSION +RESTARTS .* LABELS +REASON\na .*team=nlp,tier=gold/],
    [["kinds", "-o", "wide"], /^KIND /],
  ],
  "-o jsonpath, as kubectl's users write it": [
    [["get", "a", "-o", "jsonpath={.metadata.name}"], "a"],
    [["get", "a", "-o", "jsonpath=.metadata.name"], "a"],
    [["get", "a", "-o", "jsonpath={.kind} {.status.phase}{'\\n'}"], "PyTorchJob JOB_PHASE_WAITING\n"],
    [["get", "-o", "jsonpath={.jobs[*].metadata.name}"], "a b c"],
    [["get", "-o", "jsonpath={.items[*]['metadata']['name']}"], "a b c"],
    [["get", "-o", "jsonpath={.jobs[0:2].metadata.name}"], "a b"],
    [["get", "-o", "jsonpath={$.jobs[-1].metadata.name}"], "c"],
    [
      ["get", "-o", "jsonpath={range .jobs[*]}{.metadata.name}={.spec.kind};{end}"],
      "a=PyTorchJob;b=PyTorchJob;c=PyTorchJob;",
    ],
    [["get", "b", "-o", "jsonpath={.metadata.labels.example\\.com/x-y}"], "q"],
    [["get", "a", "-o", 'jsonpath={.status.conditions[?(@.type=="Created")].status}'], "True"],
    [["get", "-o", 'jsonpath={.jobs[?(@.metadata.labels.tier=="gold")].metadata.name}'], "a"],
    [["get", "a", "-o", "jsonpath={.spec.replicaSpecs.Worker.replicas}"], "2"],
    [["get", "a", "-o", "jsonpath={..image}"], "example.com/train example.com/train"],
    [["get", "a", "-o", "jsonpath={.metadata.labels}"], '{"team":"nlp","tier":"gold"}'],
    [["get", "a", "-o", "jsonpath={.no.such}"], ""],
  ],
  "-o custom-columns prints a row for each job": [
    [
      ["get", "-o", "custom-columns=NAME:.metadata.name,TIER:.metadata.labels.tier"],
      "NAME  TIER\na     gold\nb     <none>\nc     <none>\n",
    ],
    [["get", "a", "-o", "custom-columns=N:metadata.name,X:{.spec.replicaSpecs.*.replicas}"], "N  X\na  1,2\n"],
  ],
};

for (const [name, lines] of Object.entries(printed)) {
  test(name, async (t) => {
    const { gangway } = await served(t);
    for (const [argv, out] of lines) {
      const ran = await gangway(argv);
      const shown = `$ gangway ${argv.join(" ")}\n${ran.stdout}${ran.stderr}[${ran.exitCode}]`;
      assert.equal(ran.exitCode, 0, shown);
      if (typeof out === "string") assert.equal(ran.stdout, out, shown);
      else assert.match(ran.stdout, out, shown);
    }
  });
}

test("a wrong template is a usage error before the service is called", async () => {
  const wrong = [
    "jsonpath={.a",
    "jsonpath={range .a}",
    "jsonpath={end}",
    "jsonpath={.a[?(@.b=]}",
    "custom-columns=NAME",
  ];
  for (const output of [...wrong, "custom-columns=NAME:.a[", "jsonpath"]) {
    const ran = await run(["get", "-o", output], { address: "127.0.0.1:1" });
    assert.equal(ran.exitCode, 2, output);
    assert.match(ran.stderr, /^error: /, output);
  }
});

test("list -w shows the jobs, and then every change", async (t) => {
  const { gangway } = await served(t, ["a.yaml"]);
  const stop = new AbortController();
  let isSubmitted = false;
  let text = "";
  const onOutput = (more: string) => {
    text += more;
    if (text.includes("\na ") && !isSubmitted) {
      isSubmitted = true;
      void gangway("submit b.yaml");
    }
    if (text.includes("\nb ")) stop.abort();
  };
  const ran = await gangway("list -w", { signal: stop.signal, onOutput });
  assert.equal(ran.exitCode, 130);
  assert.match(ran.stdout, /^NAME .*\na .*\n(.*\n)*b /);
});

test("verbs change every job that is selected, after --yes", async (t) => {
  const { gangway, store } = await served(t);
  const asked = await gangway("cancel -l team=nlp");
  assert.deepEqual(
    [asked.exitCode, asked.stdout, asked.stderr],
    [2, "", "error: this would cancel 2 jobs: a, b; add --yes to do it\n"],
  );
  assert.deepEqual(await gangway("update --all --priority 3 --yes"), {
    exitCode: 0,
    stdout: "pytorchjob/a updated\npytorchjob/b updated\npytorchjob/c updated\n",
    stderr: "3 jobs updated\n",
  });
  assert.equal((await gangway("suspend --queue default --yes")).stderr, "3 jobs suspended\n");
  assert.equal((await gangway("resume -l tier=gold --yes")).stderr, "1 job resumed\n");
  assert.equal((await gangway("resume --all --yes")).stderr, "2 jobs resumed\n");
  assert.equal((await gangway("cancel -l team=nlp --yes")).stderr, "2 jobs cancelled\n");
  const { job } = store.jobs.get("default/c") ?? assert.fail("no job c");
  store.put({ ...job, status: { ...job.status, phase: "SUCCEEDED", waiting: null } });
  assert.equal((await gangway("cancel --all --yes")).stderr, "2 jobs cancelled\n");
  assert.equal((await gangway("delete --phase succeeded,failed")).exitCode, 2);
  assert.equal((await gangway("delete --phase succeeded,failed --yes")).stdout, "pytorchjob/c deleted\n");
});

test("a verb needs names or a selection, not both, and a selection stays in its namespace", async (t) => {
  const { gangway } = await served(t);
  for (const verb of ["cancel", "delete", "suspend", "resume", "update --priority 1"]) {
    assert.match((await gangway(verb)).stderr, /^error: give the names of the jobs to /, verb);
    assert.match((await gangway(`${verb} a -l team=nlp --yes`)).stderr, /not both/, verb);
    assert.match((await gangway(`${verb} a --all --yes`)).stderr, /not both/, verb);
  }
  assert.match((await gangway("cancel -l team=nlp=x --yes")).stderr, /must be KEY=VALUE/);
  assert.match((await gangway("cancel -l team=a,team=b --yes")).stderr, /two values/);
  assert.equal((await gangway("delete --all --yes -A")).stderr, "3 jobs deleted\n");
});

test("a job that the service refuses to change does not stop the others", async (t) => {
  const { gangway, store } = await served(t);
  const { job } = store.jobs.get("default/b") ?? assert.fail("no job b");
  store.put({ ...job, status: { ...job.status, phase: "SUCCEEDED", waiting: null } });
  const ran = await gangway("suspend a b c");
  assert.equal(ran.exitCode, 3);
  assert.equal(ran.stdout, "pytorchjob/a suspended\npytorchjob/c suspended\n");
  assert.match(ran.stderr, /^error: failed precondition: .*\n$/);
});

test("a name that no job has stops all, unless missing jobs are ignored", async (t) => {
  const { gangway } = await served(t);
  const ran = await gangway("cancel a nobody c");
  assert.deepEqual([ran.exitCode, ran.stdout], [3, ""]);
  assert.equal(ran.stderr, "error: not found: job default/nobody does not exist\nnothing was changed\n");
  const ignored = await gangway("cancel a nobody c --ignore-not-found");
  assert.deepEqual(ignored, { exitCode: 0, stdout: "pytorchjob/a cancelled\npytorchjob/c cancelled\n", stderr: "" });
  assert.deepEqual(await gangway("cancel nobody --ignore-not-found"), { exitCode: 0, stdout: "", stderr: "" });
});

test("a selection that no job passes is an error, unless missing jobs are ignored", async (t) => {
  const { gangway } = await served(t);
  const verbs = ["cancel", "delete", "suspend", "resume", "update --priority 1", "wait"];
  const selections = ["-l nosuch=label", "--queue nosuch", "--phase failed", "--kind tfjob", "--all -n other"];
  for (const verb of verbs) {
    const sure = verb === "wait" ? "" : " --yes";
    for (const selection of selections) {
      const ran = await gangway(`${verb} ${selection}${sure}`);
      assert.deepEqual([ran.exitCode, ran.stdout], [3, ""], `${verb} ${selection}`);
      assert.match(ran.stderr, /^error: no job of namespace \w+ passes the selection; --ignore-not-found makes /);
      const ignored = await gangway(`${verb} ${selection}${sure} --ignore-not-found`);
      assert.deepEqual(ignored, { exitCode: 0, stdout: "", stderr: "no jobs\n" }, `${verb} ${selection}`);
    }
  }
  assert.match((await gangway("cancel -A -l nosuch=label")).stderr, /^error: no job of any namespace passes/);
});

test("a selection whose jobs need no change is no error", async (t) => {
  const { gangway } = await served(t);
  assert.deepEqual(await gangway("resume -l team=nlp --yes"), {
    exitCode: 0,
    stdout: "",
    stderr: "nothing to resume: 2 jobs selected, and none that this would change\n",
  });
});

test("jobs that get prints as YAML can be submitted again, without a warning", async (t) => {
  const { gangway } = await served(t);
  for (const line of ["get a -o yaml", "get -o yaml", "get a b -o yaml", "get a -o json"]) {
    const { stdout } = await gangway(line);
    const again = await gangway("submit -", { stdin: stdout });
    assert.deepEqual([again.exitCode, again.stderr], [0, ""], line);
    assert.match(again.stdout, /^(pytorchjob\/\w unchanged\n)+$/, line);
    const elsewhere = stdout.replaceAll(/namespace: default|"namespace": "default"/g, (found) =>
      found.replace("default", "copies"),
    );
    const copied = await gangway("submit - --strict", { stdin: elsewhere });
    assert.equal(copied.exitCode, 0, `${line}\n${copied.stderr}`);
  }
});

async function endJob({ store }: Awaited<ReturnType<typeof served>>, name: string) {
  const { job } = store.jobs.get(`default/${name}`) ?? assert.fail(`no job ${name}`);
  store.put({
    ...job,
    status: { ...job.status, phase: "SUCCEEDED", waiting: null, completionTimeMs: Date.now() - 125_000 },
  });
}

test("submitting a job that has ended says so, and rerun makes it anew", async (t) => {
  const fixture = await served(t);
  const { gangway } = fixture;
  await endJob(fixture, "a");
  const note = /note: a has ended \(SUCCEEDED 2m\d+s ago\) and does not run again; "gangway rerun a" submits it anew/;
  const again = await gangway("submit a.yaml");
  assert.deepEqual([again.exitCode, again.stdout], [0, "pytorchjob/a unchanged\n"]);
  assert.match(again.stderr, note);
  const changed = FILES["a.yaml"].replace("replicas: 2", "replicas: 3");
  const differs = await gangway("submit -", { stdin: changed });
  assert.equal(differs.exitCode, 3);
  assert.match(differs.stderr, /\nnote: a has ended .*delete its record: "gangway delete a"\n$/);
  const rerun = await gangway("rerun a");
  assert.match(rerun.stdout, /^pytorchjob\/a-[a-z2-9]{6} created\n$/);
  const [, name = ""] = /\/(\S+)/.exec(rerun.stdout) ?? [];
  assert.equal(
    (await gangway(["get", name, "-o", "jsonpath={.metadata.labels}"])).stdout,
    '{"team":"nlp","tier":"gold"}',
  );
  assert.equal((await gangway("rerun pytorchjob/a --name a2")).stdout, "pytorchjob/a2 created\n");
  assert.match((await gangway("rerun a2 --replace")).stderr, /^error: a2 has not ended \(WAITING\)/);
  assert.match((await gangway("rerun a --replace --name b")).stderr, /cannot be combined/);
  assert.match((await gangway("rerun nobody")).stderr, /^error: not found/);
});

test("--ignore-foreign skips documents that are not jobs, by name", async (t) => {
  const { gangway } = await served(t, []);
  const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
  const stdin = `${service}---\n${pytorchManifest("a")}---\napiVersion: apps/v1\nkind: Deployment\n`;
  const refused = await gangway("submit -", { stdin });
  assert.deepEqual([refused.exitCode, refused.stdout], [3, ""]);
  assert.match(refused.stderr, /\nnothing was submitted; --ignore-foreign skips documents that are not jobs\n$/);
  assert.deepEqual(await gangway("submit - --ignore-foreign", { stdin }), {
    exitCode: 0,
    stdout: "pytorchjob/a created\n",
    stderr: "skipped stdin, document 1: Service web\nskipped stdin, document 3: Deployment\n",
  });
  const wrong = await gangway("submit - --ignore-foreign", { stdin: "apiVersion: kubeflow.org/v2\nkind: TrainJob\n" });
  assert.equal(wrong.exitCode, 3);
  assert.match(wrong.stderr, /\nnothing was submitted\n$/);
  const judged = await gangway("can-run - --ignore-foreign", { stdin: service });
  assert.match(judged.stderr, /^skipped stdin, document 1: Service web\nerror: there is no manifest in -\n/);
});

test("a List of kubectl is its items", async (t) => {
  const { gangway } = await served(t, []);
  const items = ["a", "b"].map((name) => `- ${pytorchManifest(name).trimEnd().replaceAll("\n", "\n  ")}\n`).join("");
  const ran = await gangway("submit -", { stdin: `apiVersion: v1\nkind: List\nitems:\n${items}` });
  assert.equal(ran.stdout, "pytorchjob/a created\npytorchjob/b created\n", ran.stderr);
});
