/** Tables of a terminal: no line is wider than it. Pipes and `-o wide` get every text in full. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { jobsTable, MARK_TEXT } from "../../src/cli/output/job-text.ts";
import { type Column, columnsOfWatch, renderTable } from "../../src/cli/output/table.ts";
import { JobPhase, JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

const REASON = "needs 64 pods of 8 nvidia.com/gpu (gpu/h100); 12 fit now on h100-east; for the first Worker pod, all";
const NAME = "llama-pretrain-70b-run-17";

const tables = fc
  .array(fc.record({ drop: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }), right: fc.boolean() }), {
    minLength: 1,
    maxLength: 9,
  })
  .chain((shapes) =>
    fc.record({
      columns: fc.constant(
        shapes.map(({ drop, right }, at): Column => {
          const isDropped = drop !== undefined && at < shapes.length - 1;
          return { title: `COLUMN${at}`, ...(isDropped && { drop }), ...(right && { align: "right" as const }) };
        }),
      ),
      rows: fc.array(fc.array(fc.string({ maxLength: 60 }), { minLength: shapes.length, maxLength: shapes.length })),
      width: fc.integer({ min: 1, max: 150 }),
    }),
  );

test("no line of a table is wider than the terminal, and what fits is not cut", () => {
  fc.assert(
    fc.property(tables, ({ columns, rows, width }) => {
      const full = renderTable(columns, rows, { columns: null, color: false });
      const shown = renderTable(columns, rows, { columns: width, color: false });
      assert.equal(shown.length, rows.length + 1);
      for (const line of shown) assert.ok(line.length <= width, `${line.length} > ${width}: ${line}`);
      if (full.every((line) => line.length <= width) && columns.every(({ align }) => align === undefined)) {
        assert.ok(shown.join("\n").length <= full.join("\n").length);
      }
    }),
  );
});

test("a table that fits keeps all its columns and texts", () => {
  const columns: readonly Column[] = [{ title: "A" }, { title: "B", drop: 1 }, { title: "C" }];
  const rows = [["x", "y", "z".repeat(60)]];
  const full = renderTable(columns, rows, { columns: null, color: false });
  assert.deepEqual(renderTable(columns, rows, { columns: 66, color: false }), full);
});

test("columns go in their order until the last column has room, which is then cut", () => {
  const columns: readonly Column[] = [
    { title: "NAME" },
    { title: "KIND", drop: 2 },
    { title: "AGE", drop: 1 },
    { title: "REASON" },
  ];
  const rows = [["a".repeat(20), "PyTorchJob", "10s", "r".repeat(50)]];
  const headings = (width: number) => renderTable(columns, rows, { columns: width, color: false })[0]?.split(/ +/);
  assert.deepEqual(headings(60), ["NAME", "KIND", "AGE", "REASON"]);
  assert.deepEqual(headings(58), ["NAME", "AGE", "REASON"]);
  assert.deepEqual(headings(46), ["NAME", "REASON"]);
  const [, row = ""] = renderTable(columns, rows, { columns: 42, color: false });
  assert.equal(row, `${"a".repeat(20)}  ${"r".repeat(19)}…`);
});

const job = create(JobSchema, {
  metadata: { name: NAME, namespace: "default" },
  spec: { kind: "PyTorchJob", runPolicy: { schedulingPolicy: { queue: "research-vision" } } },
  status: {
    phase: JobPhase.RESTARTING,
    totalReplicas: 128,
    admission: { cluster: "h100-east-2", simulated: true },
    failure: { code: "ExitCode", message: REASON },
  },
});

test("in a terminal, the cluster has a mark in place of a word; elsewhere it has the word", () => {
  const options = { nowMs: 0, withNamespace: false, wide: false };
  const marked = jobsTable([job], { ...options, marks: true });
  assert.ok(marked.hasMarks && marked.rows[0]?.includes("h100-east-2*"));
  const plain = jobsTable([job], options);
  assert.ok(!plain.hasMarks && plain.rows[0]?.includes("h100-east-2 (simulated)"));
});

test("the columns of a watch depend on the terminal alone", () => {
  const columns = [{ title: "NAME", minWidth: 24 }, { title: "KIND", minWidth: 10, drop: 1 }, { title: "REASON" }];
  const titles = (width: number | null) => columnsOfWatch(columns, width).map(({ title }) => title);
  assert.deepEqual(titles(58), ["NAME", "KIND", "REASON"]);
  assert.deepEqual(titles(57), ["NAME", "REASON"]);
  assert.deepEqual(titles(null), ["NAME", "KIND", "REASON"]);
});

async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  const files = { "a.yaml": pytorchManifest(NAME) };
  const gangway = (line: string, more: World = {}): Promise<Ran> =>
    run(line.split(" "), { address: api.address, files, isTty: true, columns: 80, ...more });
  assert.equal((await gangway("submit a.yaml")).exitCode, 0);
  const { job } = store.jobs.get(`default/${NAME}`) ?? assert.fail("no job");
  store.put({
    ...job,
    status: { ...job.status, waiting: { reason: "NoCapacity", message: REASON, position: 1, sinceMs: 0 } as never },
  });
  const event = { type: "Normal", reason: "PyTorchJobWaiting", message: REASON, atMs: 1, version: 1 } as const;
  store.events.push({ ...event, jobUid: job.uid });
  return { gangway, store, job };
}

for (const line of ["list", "list -A", `get ${NAME}`, `events ${NAME}`, `explain ${NAME}`]) {
  test(`${line.replace(NAME, "NAME")} does not wrap at 80, 60 and 40 columns, and is not cut elsewhere`, async (t) => {
    const { gangway } = await served(t);
    if (!line.startsWith("explain")) {
      for (const columns of [80, 60, 40]) {
        const { stdout } = await gangway(line, { columns });
        for (const text of stdout.split("\n")) assert.ok(text.length <= columns, `${columns}: ${text}`);
        assert.match(stdout, /…$/m);
      }
    }
    for (const [words, world] of [
      [`${line} -o wide`, {}],
      [line, { isTty: false }],
    ] as const) {
      const { stdout } = await gangway(words, world);
      assert.ok(stdout.includes(REASON) || line.startsWith("explain"), stdout);
      assert.doesNotMatch(stdout, /…/);
    }
  });
}

for (const words of [["watch"], ["list", "--watch"], ["watch", "-A"]]) {
  test(`${words.join(" ")} does not wrap, and every row has the columns of the headings`, async (t) => {
    const { gangway, store, job } = await served(t);
    const stop = new AbortController();
    let rows = 0;
    const onOutput = (text: string) => {
      rows += text.split("\n").length - 1;
      if (rows === 2) store.put({ ...job, version: 9, status: { ...job.status, phase: "RUNNING", waiting: null } });
      if (text.includes("RUNNING")) stop.abort();
    };
    const ran = await gangway(words.join(" "), { signal: stop.signal, onOutput });
    const lines = ran.stdout.trimEnd().split("\n");
    assert.ok(lines.length >= 3, ran.stdout);
    for (const line of lines) assert.ok(line.length <= 80, line);
    assert.match(
      lines[0] ?? "",
      words.includes("-A") ? /^NAMESPACE +NAME +PHASE / : /^NAME +PHASE +CLUSTER +PODS +REASON$/,
    );
  });
}

test("events of earlier jobs of a name are shown only with --all", async (t) => {
  const { gangway, store, job } = await served(t);
  store.forget(job);
  assert.equal((await gangway("submit a.yaml")).exitCode, 0);
  const later = store.jobs.get(`default/${NAME}`)?.job ?? assert.fail("no job");
  assert.notEqual(later.uid, job.uid);
  const event = { type: "Normal", reason: "PyTorchJobCreated", message: "anew", atMs: 2, version: 1 } as const;
  store.events.push({ ...event, jobUid: later.uid });
  const one = await gangway(`events ${NAME} -o name`);
  assert.deepEqual(one, {
    exitCode: 0,
    stdout: "PyTorchJobCreated\n",
    stderr: "1 event of earlier jobs of this name is left out; --all shows it\n",
  });
  assert.equal((await gangway(`events ${NAME} --all -o name`)).stdout, "PyTorchJobWaiting\nPyTorchJobCreated\n");
});

test("the mark of simulated clusters is one sentence", () => {
  assert.equal(MARK_TEXT, "* simulated cluster: no program runs there");
});
