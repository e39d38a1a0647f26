import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { KubeObject } from "../../src/adapters/simcluster/objects/kube-object.ts";
import { SimLog } from "../../src/adapters/simcluster/pods/pod-log.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { waitUntil } from "../support/bounded.ts";
import { create, fastClock, pod, podManifest, START_MS, seeded } from "./support.ts";

const nodes = [{ name: "n1", labels: {}, allocatable: { cpu: "64", memory: "512Gi" } }];
let cluster: SimCluster;
before(async () => {
  cluster = await startSimCluster({ name: "one", nodes, directory: null, clock: fastClock(50), random: seeded(7) });
});
after(() => cluster.close());

function start(name: string, sim: JsonObject = {}, spec: JsonObject = {}): void {
  create(cluster.model, "pods", "default", podManifest(name, { sim, spec }));
  cluster.settle();
}

async function log(name: string, query: Record<string, string> = {}) {
  const answer = await fetch(
    `${cluster.url}/api/v1/namespaces/default/pods/${name}/log?${new URLSearchParams(query).toString()}`,
  );
  return { status: answer.status, text: await answer.text() };
}

async function until(name: string, phase: string): Promise<void> {
  const hasPhase = () => pod(cluster.model, name)?.status?.["phase"] === phase;
  await waitUntil(`${name} is ${phase}`, hasPhase, { pollMs: 2 });
}

test("a followed log has a line at the start, one an interval and one at the end, and ends with the run", async () => {
  start("followed", { run: "10s", "log-every": "3s", "exit-code": "7" });
  await until("followed", "Running");
  const { status, text } = await log("followed", { follow: "true" });
  assert.equal(status, 200);
  assert.deepEqual(text.split("\n"), [
    "followed/main started on n1",
    "step 1",
    "step 2",
    "step 3",
    "followed/main ended with exit code 7",
    "",
  ]);
  assert.deepEqual(await log("followed"), { status: 200, text });
  const tail = await log("followed", { tailLines: "2", limitBytes: "12" });
  assert.equal(tail.text, "step 3\nfollo");
  assert.equal((await log("followed", { tailLines: "0" })).text, "");
  const stamped = (await log("followed", { timestamps: "true" })).text.trim().split("\n");
  const times = stamped.map((line) => Date.parse(line.split(" ")[0] ?? ""));
  assert.deepEqual(
    times.map((time) => time - times[0]!),
    [0, 3000, 6000, 9000, 10_000],
  );
  const since = await log("followed", { sinceTime: new Date(times[3]!).toISOString() });
  assert.equal(since.text.split("\n")[0], "step 3");
});

test("a container that was restarted in place has a log of its run and one of the run before", async () => {
  start("again", { run: "1s", "exit-code": "1,0", "log-every": "never" }, { restartPolicy: "OnFailure" });
  await until("again", "Succeeded");
  assert.equal((await log("again")).text, "again/main started on n1\nagain/main ended with exit code 0\n");
  assert.equal(
    (await log("again", { previous: "true" })).text,
    "again/main started on n1\nagain/main ended with exit code 1\n",
  );
});

test("refusals are worded as by kube-apiserver", async () => {
  start(
    "two",
    { pull: "1h" },
    {
      containers: [
        { name: "a", image: "x" },
        { name: "b", image: "x" },
      ],
    },
  );
  start("one", { run: "forever" });
  await until("one", "Running");
  const cases: Record<string, readonly [string, Record<string, string>, number, string]> = {
    "no such pod": ["none", {}, 404, 'pods "none" not found'],
    "several containers": ["two", {}, 400, "a container name must be specified for pod two, choose one of: [a b]"],
    "another container": ["one", { container: "x" }, 400, "container x is not valid for pod one"],
    "not started": [
      "two",
      { container: "b" },
      400,
      'container "b" in pod "two" is waiting to start: ContainerCreating',
    ],
    "no run before": ["one", { previous: "true" }, 400, 'previous terminated container "main" in pod "one" not found'],
    "a negative tail": [
      "one",
      { tailLines: "-1" },
      422,
      'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
    ],
  };
  for (const [title, [name, query, code, message]] of Object.entries(cases)) {
    const { status, text } = await log(name, query);
    assert.deepEqual([status, (JSON.parse(text) as { message: string }).message], [code, message], title);
  }
});

test("a log only grows, and its lines are in the order of their times", () => {
  const drawn = fc.record({
    everyMs: fc.integer({ min: 1, max: 5000 }),
    lengthMs: fc.integer({ min: 0, max: 60_000 }),
    looksMs: fc.array(fc.integer({ min: 0, max: 70_000 }), { minLength: 1, maxLength: 20 }),
  });
  fc.assert(
    fc.property(drawn, ({ everyMs, lengthMs, looksMs }) => {
      const object = { ...podManifest("p", { sim: { "log-every": `${everyMs}ms` } }) };
      const entry = { object: object as unknown as KubeObject };
      const runAt = (nowMs: number) => {
        const ended = nowMs >= START_MS + lengthMs;
        const run = { startedMs: START_MS, endedMs: ended ? START_MS + lengthMs : null, exitCode: ended ? 0 : null };
        return new SimLog(entry, "main", run);
      };
      const seen: string[] = [];
      for (const lookMs of looksMs.toSorted((a, b) => a - b)) {
        const nowMs = START_MS + lookMs;
        const log = runAt(nowMs);
        const { from, to } = log.range(nowMs);
        const lines = Array.from({ length: to - from }, (_, at) => log.line(from + at));
        assert.ok(lines.every((line, at) => at === 0 || line.atMs >= lines[at - 1]!.atMs));
        assert.ok(lines.every(({ atMs }) => atMs <= nowMs));
        const next = log.nextMs(nowMs);
        assert.ok(next === null || next > nowMs);
        for (const [at, line] of lines.entries()) {
          const text = JSON.stringify(line);
          if (seen[from + at] === undefined) seen[from + at] = text;
          assert.equal(text, seen[from + at]);
        }
      }
    }),
  );
});
