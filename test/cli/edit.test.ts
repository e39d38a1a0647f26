import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { openTextEditor } from "../../src/cli/shell/text-editor.ts";
import { startProgram } from "../../src/cli/tokens/child-program.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run, type World } from "./harness.ts";

type Saved = (text: string, opened: number) => string;

type OnOpen = (of: {
  readonly store: Awaited<ReturnType<typeof startFixture>>["store"];
  readonly world: World;
}) => void | Promise<void>;

/** A service with a job, and `edit` with an editor that is a function. */
async function edited(t: TestContext, save: Saved, { onOpen = () => {} }: { onOpen?: OnOpen } = {}) {
  const fixture = await startFixture(t);
  const world = { address: fixture.api.address, files: { "job.yaml": pytorchManifest("mnist") } };
  assert.equal((await run(["submit", "job.yaml"], world)).exitCode, 0);
  const shown: string[] = [];
  let removed = false;
  const openEditor = async (file: string) => ({
    path: `/tmp/${file}`,
    edit: async (text: string) => {
      shown.push(text);
      if (shown.length === 1) await onOpen({ store: fixture.store, world });
      return { kind: "text", text: save(text, shown.length) } as const;
    },
    remove: async () => {
      removed = true;
    },
  });
  const ran = await run(["edit", "mnist"], { ...world, openEditor });
  const [job] = [...fixture.store.jobs.values()].map((one) => one.job);
  assert.ok(job);
  return { ...ran, shown, job, wasRemoved: () => removed, world };
}

const replaced =
  (from: string, to: string): Saved =>
  (text) => {
    assert.ok(text.includes(from), text);
    return text.replace(from, to);
  };

test("the editor shows the manifest without its status, below a help in comments", async (t) => {
  const { exitCode, stdout, shown, wasRemoved } = await edited(t, (text) => text);
  assert.deepEqual([exitCode, stdout], [0, "pytorchjob/mnist: no change\n"]);
  const [text = ""] = shown;
  assert.match(text, /^# Change the job, save the file, and end the editor\./);
  assert.match(text, /\napiVersion: gangway\.dev\/v1\nkind: PyTorchJob\nmetadata:\n {2}name: mnist\n/);
  assert.doesNotMatch(text, /^status:|uid:|resourceVersion:/m);
  assert.equal(wasRemoved(), true);
});

test("an empty file changes nothing", async (t) => {
  const { exitCode, stdout } = await edited(t, () => "# nothing\n\n");
  assert.deepEqual([exitCode, stdout], [0, "pytorchjob/mnist: no change\n"]);
});

const changes: Record<string, { save: Saved; holds: (job: Awaited<ReturnType<typeof edited>>["job"]) => boolean }> = {
  "the priority": { save: replaced("priority: 0", "priority: 7"), holds: ({ spec }) => spec.priority === 7 },
  "the number of replicas": {
    save: replaced("replicas: 2", "replicas: 3"),
    holds: ({ spec }) => spec.replicaSpecs["Worker"]?.replicas === 3,
  },
  suspension: {
    save: replaced("suspend: false", "suspend: true"),
    holds: ({ spec }) => spec.runPolicy.suspend === true,
  },
  "the labels": {
    save: replaced("metadata:\n", "metadata:\n  labels: {team: a, app.kubernetes.io/name: b}\n"),
    holds: ({ labels }) => labels["team"] === "a" && labels["app.kubernetes.io/name"] === "b",
  },
  "several of them": {
    save: (text) => text.replace("replicas: 2", "replicas: 4").replace("priority: 0", "priority: -1"),
    holds: ({ spec }) => spec.replicaSpecs["Worker"]?.replicas === 4 && spec.priority === -1,
  },
};
for (const [what, { save, holds }] of Object.entries(changes)) {
  test(`an edit changes ${what}`, async (t) => {
    const { exitCode, stdout, stderr, job, shown } = await edited(t, save);
    assert.deepEqual([exitCode, stdout], [0, "pytorchjob/mnist edited\n"], stderr);
    assert.ok(holds(job));
    assert.equal(shown.length, 1);
  });
}

const refusals: Record<string, { save: Saved; says: RegExp }> = {
  "an image": {
    save: replaced("image: example.com/train", "image: example.com/other"),
    says: /# {3}spec\.replicaSpecs\.Master\.template\.spec\.containers\[0\]\.image: cannot change after/,
  },
  "the name": { save: replaced("name: mnist", "name: other"), says: /# {3}metadata\.name: cannot change after/ },
  "a replica type": { save: replaced("Worker:", "Evaluator:"), says: /# {3}spec/ },
  "an unknown field": { save: replaced("spec:\n", "spec:\n  colour: red\n"), says: /colour/ },
  "text that is no YAML": { save: replaced("spec:\n", "spec: {\n"), says: /# {3}.* at line \d+/ },
  "two jobs": {
    save: (text) => `${text}---\n${text.replaceAll("mnist", "b")}`,
    says: /# {3}the text must have one job/,
  },
  "a number that the service refuses": {
    save: replaced("replicas: 2", "replicas: 100001"),
    says: /# {3}error: invalid argument.*\n(# .*\n)*.*spec\.replicaSpecs\.Worker/,
  },
};
for (const [what, { save, says }] of Object.entries(refusals)) {
  test(`${what} is refused: the editor opens again with the reason, and the same text gives up`, async (t) => {
    const again: Saved = (text, opened) => (opened === 1 ? save(text, opened) : text);
    const { exitCode, stderr, shown, job, wasRemoved } = await edited(t, again);
    assert.equal(exitCode, 3);
    assert.equal(shown.length, 2);
    assert.match(shown[1] ?? "", /^# pytorchjob\/mnist was not changed:\n/);
    assert.match(shown[1] ?? "", says);
    assert.match(stderr, /\nnothing was changed; the text is in \/tmp\/mnist\.yaml\n$/);
    assert.equal(wasRemoved(), false, "the text is kept");
    assert.equal(job.version, 1);
  });
}

test("a refused text can be corrected, and errors name lines of the file", async (t) => {
  const save: Saved = (text, opened) =>
    opened === 1 ? text.replace("spec:\n", "spec: {\n") : text.replace("spec: {\n", "spec:\n").replace(": 0", ": 5");
  const { exitCode, stdout, shown, job } = await edited(t, save);
  assert.deepEqual([exitCode, stdout, job.spec.priority], [0, "pytorchjob/mnist edited\n", 5]);
  const [, line = ""] = /at line (\d+)/.exec(shown[1] ?? "") ?? [];
  assert.ok(Number(line) > 5, "the comments above count");
});

test("an editor that always saves another wrong text is not opened for ever", async (t) => {
  const { exitCode, stderr, shown } = await edited(t, (text, opened) =>
    text.replace(/^kind: .*/m, `kind: No${opened}`),
  );
  assert.equal(exitCode, 3);
  assert.equal(shown.length, 10);
  assert.match(stderr, /the text was refused 10 times/);
});

const raised: Saved = (text, opened) => (opened === 1 ? text.replace("replicas: 2", "replicas: 3") : text);

test("a job whose status changes meanwhile is changed all the same", async (t) => {
  const { exitCode, shown, job } = await edited(t, raised, {
    onOpen: ({ store }) => {
      for (const [key, one] of store.jobs) store.jobs.set(key, { ...one, job: { ...one.job, version: 7 } });
    },
  });
  assert.deepEqual([exitCode, shown.length], [0, 1]);
  assert.deepEqual([job.version, job.spec.replicaSpecs["Worker"]?.replicas], [8, 3]);
});

test("a job that somebody else edits meanwhile is not changed without a look", async (t) => {
  const { exitCode, shown, job, stderr } = await edited(t, raised, {
    onOpen: async ({ world }) => {
      assert.equal((await run(["update", "mnist", "--priority", "3"], world)).exitCode, 0);
    },
  });
  assert.deepEqual([exitCode, shown.length], [3, 2]);
  assert.match(shown[1] ?? "", /^# {3}the job was changed meanwhile/m);
  assert.match(stderr, /nothing was changed/);
  assert.deepEqual([job.spec.priority, job.spec.replicaSpecs["Worker"]?.replicas], [3, 2]);
});

test("a job that is cancelled meanwhile, or does not exist, is an error", async (t) => {
  const ended = await edited(t, raised, {
    onOpen: async ({ world }) => void (await run(["cancel", "mnist"], world)),
  });
  assert.equal(ended.exitCode, 3);
  assert.match(ended.stderr, /^error: failed precondition: .*is being cancelled/);
  const unknown = await run(["edit", "nobody"], ended.world);
  assert.equal(unknown.exitCode, 3);
  assert.match(unknown.stderr, /not found/);
});

const ports = (command: string) => ({
  command,
  startProgram: (argv: readonly string[], onFailure: (reason: string) => void) =>
    startProgram(argv, { PATH: process.env["PATH"] }, onFailure),
  takeSignals: () => () => {},
});

test("the editor is a command of the shell, and its file is the user's alone", async () => {
  const editor = await openTextEditor("job.yaml", ports("sed -i s/one/two/"));
  assert.deepEqual(await editor.edit("one\n"), { kind: "text", text: "two\n" });
  assert.equal(statSync(editor.path).mode & 0o077, 0);
  assert.equal(readFileSync(editor.path, "utf8"), "two\n");
  await editor.remove();
  assert.equal(existsSync(editor.path), false);
});

test("an editor that fails or does not exist is an error with its status", async () => {
  for (const [command, status] of [
    ["false", 1],
    ["no-such-editor", 127],
  ] as const) {
    const editor = await openTextEditor("job.yaml", ports(command));
    const reason = `the editor "${command}" ended with status ${status}`;
    assert.deepEqual(await editor.edit(""), { kind: "failed", reason });
    await editor.remove();
  }
});
