import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { startFixture } from "../api/fixture.ts";
import type { MemoryStore } from "../api/memory-store.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

type Store = MemoryStore;

/** Submits with --wait, and changes the service as soon as a line of output asks for it. */
async function submitAndWait(
  t: TestContext,
  options: {
    names: readonly string[];
    args?: readonly string[];
    on: (line: string, store: Store) => void;
    overrides?: (store: () => Store) => Parameters<typeof startFixture>[1];
    world?: World;
  },
): Promise<Ran> {
  let store: Store | null = null;
  const lateStore = () => store ?? assert.fail("there is no store yet");
  const fixture = await startFixture(t, options.overrides?.(lateStore));
  store = fixture.store;
  const files = Object.fromEntries(options.names.map((name) => [`jobs/${name}.yaml`, pytorchManifest(name)]));
  const onOutput = (line: string) => options.on(line, fixture.store);
  const args = ["submit", "-f", "jobs", "--wait", ...(options.args ?? [])];
  return run(args, { address: fixture.api.address, files, onOutput, ...options.world });
}

function move(store: Store, name: string, phase: JobPhase): void {
  const { job } = store.jobs.get(`default/${name}`) ?? assert.fail(`no job ${name}`);
  const waiting = phase === "WAITING" ? job.status.waiting : null;
  const failure: Job["status"]["failure"] =
    phase === "FAILED"
      ? { code: "ExitCode", kind: "USER", message: "exit code 1", container: null, exitCode: 1 }
      : null;
  store.put({ ...job, version: job.version + 1, status: { ...job.status, phase, waiting, failure } });
}

test("progress is shown until every job has succeeded", async (t) => {
  const ran = await submitAndWait(t, {
    names: ["a", "b"],
    on: (line, store) => {
      if (/a {2}WAITING/.test(line)) move(store, "a", "RUNNING");
      if (/a {2}RUNNING/.test(line)) move(store, "a", "SUCCEEDED");
      if (/b {2}WAITING/.test(line)) move(store, "b", "SUCCEEDED");
    },
  });
  assert.equal(ran.exitCode, 0, ran.stderr);
  assert.match(ran.stdout, /^pytorchjob\/a created\npytorchjob\/b created\n/);
  assert.deepEqual(
    ran.stdout.split("\n").flatMap((line) => /pytorchjob\/a {2}([A-Z]+)/.exec(line)?.[1] ?? []),
    ["WAITING", "RUNNING", "SUCCEEDED"],
  );
});

for (const phase of ["FAILED", "CANCELLED"] as const) {
  test(`a job that ends as ${phase} gives status 1, after the others have ended`, async (t) => {
    const ran = await submitAndWait(t, {
      names: ["a", "b"],
      on: (line, store) => {
        if (/a {2}WAITING/.test(line)) move(store, "a", phase);
        if (line.includes(phase)) move(store, "b", "SUCCEEDED");
      },
    });
    assert.equal(ran.exitCode, 1, ran.stderr);
    assert.match(ran.stdout, /b {2}SUCCEEDED/);
    if (phase === "FAILED") assert.match(ran.stdout, /a {2}FAILED {2}ExitCode: exit code 1/);
  });
}

test("wait takes jobs by their properties, as the commands that change jobs do", async (t) => {
  const { api, store } = await startFixture(t);
  const world = { address: api.address, files: { "a.yaml": pytorchManifest("a"), "b.yaml": pytorchManifest("b") } };
  await run(["submit", "a.yaml", "b.yaml"], world);
  const onOutput = (line: string) => {
    for (const name of ["a", "b"]) if (line.includes(`${name}  WAITING`)) move(store, name, "SUCCEEDED");
  };
  const ran = await run(["wait", "--queue", "default"], { ...world, onOutput });
  assert.equal(ran.exitCode, 0, ran.stderr);
  assert.match(ran.stdout, /a {2}SUCCEEDED/);
  assert.match(ran.stdout, /b {2}SUCCEEDED/);
  assert.equal((await run(["wait", "-l", "no=such"], world)).exitCode, 3);
  for (const args of [["wait"], ["wait", "a", "--all"]]) assert.equal((await run(args, world)).exitCode, 2);
});

test("a job that is deleted meanwhile has not succeeded", async (t) => {
  const ran = await submitAndWait(t, {
    names: ["a"],
    on: (line, store) => {
      if (/a {2}WAITING/.test(line)) store.forget(store.jobs.get("default/a")?.job ?? assert.fail());
    },
  });
  assert.equal(ran.exitCode, 1);
  assert.match(ran.stdout, /a {2}was deleted; how it ended is not known/);
});

test("a timeout gives status 124", async (t) => {
  const ran = await submitAndWait(t, { names: ["a"], args: ["--timeout", "100ms"], on: () => {} });
  assert.equal(ran.exitCode, 124);
  assert.match(ran.stderr, /timed out: 1 of 1 jobs have not ended yet/);
});

test("an interruption ends the wait with status 130", async (t) => {
  const interruption = new AbortController();
  const ran = await submitAndWait(t, {
    names: ["a"],
    on: (line) => {
      if (line.includes("WAITING")) interruption.abort();
    },
    world: { signal: interruption.signal },
  });
  assert.equal(ran.exitCode, 130);
});

test("a stream that breaks off is continued from its cursor, and nothing between is lost", async (t) => {
  const cursors: string[] = [];
  const ran = await submitAndWait(t, {
    names: ["a"],
    on: (line, store) => {
      if (/a {2}RESTARTING/.test(line)) move(store, "a", "SUCCEEDED");
    },
    overrides: (store) => ({
      watch: {
        checkCursor: (cursor) => store().watch.checkCursor(cursor),
        watch: async function* (request, signal) {
          cursors.push(request.cursor);
          const isFirst = cursors.length === 1;
          for await (const entry of store().watch.watch(request, signal)) {
            yield entry;
            if (!isFirst || entry.type !== "BOOKMARK") continue;
            move(store(), "a", "RESTARTING");
            throw new UnavailableError("the store is away");
          }
        },
      },
    }),
  });
  assert.equal(ran.exitCode, 0, ran.stderr);
  assert.equal(cursors.length, 2);
  assert.equal(cursors[0], "");
  assert.notEqual(cursors[1], "");
  assert.match(ran.stdout, /WAITING[\s\S]*RESTARTING[\s\S]*SUCCEEDED/);
});

test("a listing that breaks off is begun again", async (t) => {
  const cursors: string[] = [];
  const ran = await submitAndWait(t, {
    names: ["a", "b"],
    on: (line, store) => {
      const name = /(\w) {2}WAITING/.exec(line)?.[1];
      if (name !== undefined) move(store, name, "SUCCEEDED");
    },
    overrides: (store) => ({
      watch: {
        checkCursor: (cursor) => store().watch.checkCursor(cursor),
        watch: async function* (request, signal) {
          cursors.push(request.cursor);
          for await (const entry of store().watch.watch(request, signal)) {
            yield entry;
            if (cursors.length === 1) throw new UnavailableError("the store is away");
          }
        },
      },
    }),
  });
  assert.equal(ran.exitCode, 0, ran.stderr);
  assert.deepEqual(cursors, ["", ""]);
});

test("delete returns once the job is gone, so that its name is free", async (t) => {
  const { api, store } = await startFixture(t);
  const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
  await run(["submit", "-f", "a.yaml"], world);
  const late = await run(["delete", "a", "--timeout", "50ms"], world);
  assert.deepEqual([late.exitCode, late.stdout], [124, ""]);
  assert.match(
    late.stderr,
    /^error: timed out: 1 of 1 jobs are not deleted yet: pytorchjob\/a\nTheir deletion goes on: /,
  );
  for (const args of [[], ["--wait"], ["--wait=true"]]) {
    await t.waitFor(() => assert.equal(store.watching, 0));
    const deleting = run(["delete", "a", ...args], world);
    await t.waitFor(() => assert.equal(store.watching, 1));
    store.forget(store.jobs.get("default/a")?.job ?? assert.fail());
    assert.deepEqual(await deleting, { exitCode: 0, stdout: "pytorchjob/a deleted\n", stderr: "" });
    assert.equal((await run(["submit", "a.yaml"], world)).stdout, "pytorchjob/a created\n");
  }
});

test("delete --wait=false only asks for the deletion", async (t) => {
  const { api, store } = await startFixture(t);
  const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
  await run(["submit", "-f", "a.yaml"], world);
  for (const flag of ["--wait=false", "--no-wait"]) {
    const asked = await run(["delete", "a", flag], world);
    assert.deepEqual(asked, { exitCode: 0, stdout: "pytorchjob/a is being deleted\n", stderr: "" });
  }
  assert.ok(store.jobs.has("default/a"));
  const late = await run(["submit", "a.yaml"], world);
  assert.equal(late.exitCode, 3, late.stdout);
});

test("an interruption ends the wait of delete", async (t) => {
  const { api, store } = await startFixture(t);
  const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
  await run(["submit", "-f", "a.yaml"], world);
  const stop = new AbortController();
  const deleting = run(["delete", "a"], { ...world, signal: stop.signal });
  await t.waitFor(() => assert.equal(store.watching, 1));
  stop.abort();
  assert.equal((await deleting).exitCode, 130);
});

test("watch prints each change as one JSON object a line until it is interrupted", async (t) => {
  const { api, store } = await startFixture(t);
  const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
  await run(["submit", "-f", "a.yaml"], world);
  const interruption = new AbortController();
  const ran = await run(["watch", "-o", "json"], {
    ...world,
    signal: interruption.signal,
    onOutput: (line) => {
      if (line.includes("JOB_PHASE_WAITING")) move(store, "a", "RUNNING");
      if (line.includes("JOB_PHASE_RUNNING")) interruption.abort();
    },
  });
  assert.equal(ran.exitCode, 130);
  const phases = ran.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).status.phase);
  assert.deepEqual(phases, ["JOB_PHASE_WAITING", "JOB_PHASE_RUNNING"]);
});

/** How a watch ends a job, and what its last line says. */
const gone: Readonly<
  Record<string, { readonly args: string; readonly end: (store: Store) => void; readonly says: object; row: RegExp }>
> = {
  "that was deleted": {
    args: "",
    end: (store) => store.forget(jobOf(store)),
    says: { deleted: true },
    row: /a .*\(deleted\)/,
  },
  "that was deleted while it passed the selection": {
    args: "--phase waiting",
    end: (store) => store.forget(jobOf(store)),
    says: { deleted: true },
    row: /a .*\(deleted\)/,
  },
  "that passes the selection no more": {
    args: "--phase waiting",
    end: leaveSelection,
    says: { leftOut: true },
    row: /a .*\(left out\)/,
  },
};

function jobOf(store: Store): Job {
  return store.jobs.get("default/a")?.job ?? assert.fail("no job a");
}

/** The stream ends the job, which still exists. */
function leaveSelection(store: Store): void {
  const kept = store.jobs.get("default/a") ?? assert.fail("no job a");
  store.forget(kept.job);
  store.jobs.set("default/a", kept);
}

for (const [name, { args, end, says, row }] of Object.entries(gone)) {
  test(`the last line of a watch tells of a job ${name}`, async (t) => {
    const { api, store } = await startFixture(t);
    const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
    await run(["submit", "-f", "a.yaml"], world);
    const watched = async (output: string, isLast: (text: string) => boolean) => {
      const interruption = new AbortController();
      let text = "";
      const onOutput = (more: string) => {
        const isFirst = text === "";
        text += more;
        if (isFirst) end(store);
        else if (isLast(text)) interruption.abort();
      };
      const words = ["watch", ...args.split(" ").filter((word) => word !== ""), ...output.split(" ")];
      const ran = await run(words, { ...world, signal: interruption.signal, onOutput });
      assert.equal(ran.exitCode, 130, ran.stderr);
      return ran.stdout;
    };
    const lines = (await watched("-o json", (text) => text.split("\n").length > 2)).trim().split("\n");
    const [first, last] = [JSON.parse(lines[0] ?? ""), JSON.parse(lines.at(-1) ?? "")];
    assert.deepEqual([first.deleted, first.leftOut], [undefined, undefined]);
    assert.deepEqual(last, { ...last, ...says });
    assert.equal(last.metadata.name, "a");
  });

  test(`the last row of a watch tells of a job ${name}`, async (t) => {
    const { api, store } = await startFixture(t);
    const world: World = { address: api.address, files: { "a.yaml": pytorchManifest("a") } };
    await run(["submit", "-f", "a.yaml"], world);
    const interruption = new AbortController();
    let isFirst = true;
    const onOutput = (more: string) => {
      if (isFirst) end(store);
      isFirst = false;
      if (row.test(more)) interruption.abort();
    };
    const words = ["watch", ...args.split(" ").filter((word) => word !== "")];
    const ran = await run(words, { ...world, signal: interruption.signal, onOutput });
    assert.match(ran.stdout.trimEnd().split("\n").at(-1) ?? "", row);
  });
}
