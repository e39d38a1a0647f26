import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { CreateJobRequestSchema } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { hasOpenssl } from "../../support/certificates.ts";
import { postgresServer } from "../../support/postgres.ts";
import { hasRedisServer } from "../../support/redis-server.ts";
import { benchAdmit } from "./admit.ts";
import { benchAuth } from "./auth.ts";
import { benchCost } from "./cost.ts";
import { runLoad } from "./fair.ts";
import { BASELINE } from "./fair-loads.ts";
import { benchFlood } from "./flood.ts";
import { benchGang } from "./gang.ts";
import { benchPlan, benchPolicies } from "./plan.ts";
import { benchProcesses } from "./processes.ts";
import { benchRecord } from "./record.ts";
import { benchScale } from "./scale.ts";
import { benchStart } from "./start.ts";
import { benchSubmit, numberedRequests } from "./submit.ts";
import { benchTokens } from "./tokens.ts";
import { benchWatch } from "./watch.ts";

const server = await postgresServer();
const noServers = server === null || !hasRedisServer();
/** These start so many processes that they take minutes. */
const noLong = noServers || process.env["GANGWAY_LONG_BENCHES"] === undefined;

test("the bench of submits ends with a ratio for each pair", async () => {
  const lines: string[] = [];
  const one = { callers: [2], batch: 20, finished: 100, orders: ["name"] };
  const tiny = { ...one, seconds: 0.1, profile: true, database: "memory" };
  const ratios = await benchSubmit(tiny, (line) => void lines.push(line));
  const names = Object.keys(ratios);
  assert.deepEqual(names.slice(0, 3), [
    "submit, 2 callers / echo",
    "submit, 2 callers / echo with an insert",
    "submit in batches of 20 / bare insert",
  ]);
  assert.match(names[3] ?? "", /^get, 2 callers \/ echo of \d+ bytes$/);
  assert.ok(names.filter((name) => name.startsWith("list ")).length > 15, names.join("\n"));
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
  assert.ok(lines.some((line) => line.includes("self time")));
});

test("jobs of the bench of submits have so many replicas, and templates of their own if that is wanted", () => {
  const made = (distinct: boolean) =>
    [1, 2].map((number) => {
      const bytes = numberedRequests({ replicas: 16, distinct })(number);
      const { job } = fromBinary(CreateJobRequestSchema, bytes);
      const specs = Object.entries(job?.spec?.replicaSpecs ?? {});
      const counts = Object.fromEntries(specs.map(([role, { replicas }]) => [role, replicas]));
      return { name: job?.metadata?.name ?? "", counts, templates: specs.map(([, { template }]) => template) };
    });
  const [first, second] = made(false);
  assert.deepEqual([first?.counts, first?.name], [{ Master: 1, Worker: 15 }, "one-000000000001"]);
  assert.notEqual(second?.name, first?.name);
  assert.deepEqual(second?.templates, first?.templates);
  for (const { name, templates } of made(true)) {
    assert.equal(templates.length, 2);
    for (const template of templates) {
      const [container] = (template as { spec: { containers: { command: string[]; env: object[] }[] } }).spec
        .containers;
      assert.equal(container?.command.at(-1), name);
      assert.deepEqual(container?.env, [{ name: "TRIAL", value: name }]);
    }
  }
});

test("the bench of admissions admits and creates everything, and cleans up", async () => {
  const lines: string[] = [];
  const clusters = { kind: "simulated", count: 2 } as const;
  const tiny = { clusters, postgres: null, singles: 6, gangs: 3, nodes: 2, profile: false };
  const ratios = await benchAdmit(tiny, (line) => void lines.push(line));
  assert.deepEqual(Object.keys(ratios), ["pods admitted (9 jobs)", "pods admitted and created"]);
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
  assert.equal(lines.length, 3);
});

test("the bench of records admits gangs beside callers, and measures both", { skip: noServers }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: server ?? "", gangs: 20, callers: 2, batch: 8, seconds: 0.2 };
  const ratios = await benchRecord(tiny, (line) => void lines.push(line));
  assert.deepEqual(Object.keys(ratios), ["gangs in batches", "callers' p99"]);
  assert.ok(
    Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)),
    lines.join("\n"),
  );
});

test("the bench of tokens ends with a ratio for each pair, and hands a token over", { skip: noServers }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: server ?? "", seconds: 0.1, callers: [2], held: [10], turns: 3 };
  const ratios = await benchTokens(tiny, (line) => void lines.push(line));
  assert.equal(Object.keys(ratios).length, 14, lines.join("\n"));
  for (const ratio of Object.values(ratios)) assert.ok(ratio > 0, lines.join("\n"));
  assert.match(lines.at(-1) ?? "", /^a release until the next holder's grant: p50 [\d.]+ ms, p99 /);
});

test("the bench of watches gives every watcher its changes, each encoded once for all of them", async () => {
  const lines: string[] = [];
  const readers = { watchers: 12, filters: 3, stalled: 2 };
  const load = { namespaces: 4, perSecond: 40, seconds: 0.5 };
  const tiny = { ...readers, ...load, postgres: null, profile: true };
  const figures = await benchWatch(tiny, (line) => void lines.push(line));
  assert.ok(figures.changes > 0 && figures.selected < figures.changes, lines.join("\n"));
  assert.equal(figures.received, figures.expected, lines.join("\n"));
  assert.equal(figures.encodings, figures.selected, lines.join("\n"));
  assert.ok(figures.p99Ms > 0 && figures.p99StalledMs > 0 && figures.p99FloorMs >= 0, lines.join("\n"));
  assert.ok(lines.some((line) => line.includes("self time")));
});

test("the bench of starts measures each start, and an idle installation", { skip: noLong }, async () => {
  const lines: string[] = [];
  const tiny = { runs: 1, postgres: server ?? "", finished: 20, running: 2, seconds: 1, looksMax: 2 };
  const { statements } = await benchStart(tiny, (line) => void lines.push(line));
  assert.ok(statements > 0 && Number.isFinite(statements), lines.join("\n"));
  for (const name of ["node -e 0", "PGlite, same folder", "npm start, new folder", "gangway get", "idle, 20 finished"])
    assert.ok(
      lines.some((line) => line.startsWith(name)),
      lines.join("\n"),
    );
});

test("the bench of many jobs measures every call in both installations", { skip: noLong }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: server ?? "", finished: 300, live: 100, runs: 1, seconds: 1 };
  const ratios = await benchScale(tiny, (line) => void lines.push(line));
  const takeOvers = ["SIGTERM", "SIGKILL"].map((signal) => `take-over of the planner after ${signal}`);
  for (const name of ["submit", "list a queue", "watch p99 while it prunes / without", ...takeOvers])
    assert.ok(name in ratios, name);
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
  assert.ok(
    lines.some((line) => /^jobs +6\d\d rows/.test(line)),
    lines.join("\n"),
  );
});

test("the bench of processes calls each number of them", { skip: noServers }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: server ?? "", seconds: 0.3, callers: 4, counts: [1, 2] };
  const ratios = await benchProcesses(tiny, (line) => void lines.push(line));
  assert.equal(Object.keys(ratios).length, 6, lines.join("\n"));
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
});

test("the bench of floods measures each kind of calls with limits and without", { skip: noLong }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: null, seconds: 0.5, callers: 2, turns: 1, perSecond: 4 };
  const ratios = await benchFlood(tiny, (line) => void lines.push(line));
  assert.equal(Object.keys(ratios).length, 14, lines.join("\n"));
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
  assert.match(lines[0] ?? "", /^default limits, embedded: the flood had \d+\/s done, /);
});

const noKnown = noLong || !hasOpenssl();

test("the bench of authentication measures each method with each kind of calls", { skip: noKnown }, async () => {
  const lines: string[] = [];
  const tiny = { postgres: server ?? "", callers: 2, calls: 4, turns: 2 };
  const ratios = await benchAuth(tiny, (line) => void lines.push(line));
  assert.equal(Object.keys(ratios).length, 9, lines.join("\n"));
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
});

test("the bench of costs counts what a job needs from its submission to its end", async () => {
  const lines: string[] = [];
  const cost = await benchCost({ jobs: 10 }, (line) => void lines.push(line));
  assert.ok(cost.kubernetesCalls >= 2, "an anchor and a pod are created");
  assert.ok(cost.statements > 1 && cost.transactions > 0, lines.join("\n"));
});

test("the gang bench counts one write for each pod beside its anchor's, and none for finished jobs", async () => {
  const lines: string[] = [];
  const tiny = { kubeconfig: null, simulated: true, replicas: 40, finished: 30, idleSeconds: 0.3, profile: false };
  const figures = await benchGang(tiny, (line) => void lines.push(line));
  assert.ok((figures["gang pods created"] ?? 0) > 0);
  assert.ok((figures["writes per pod"] ?? 0) <= 1 + 2 / 40, lines.join("\n"));
  assert.equal(figures["changes of finished jobs"], 0);
});

test("the bench of the planner's state admits gangs, and its rounds after changes do", async () => {
  const lines: string[] = [];
  const tiny = { gangs: 200, nodes: 40, clusters: 2, asks: 20, queues: 10, rounds: 4, profile: false };
  const figures = await benchPlan(tiny, (line) => void lines.push(line));
  assert.ok((figures["  admissions"] ?? 0) > 0 && (figures["  refusals"] ?? 0) > 0, lines.join("\n"));
  assert.ok(lines.some((line) => line.startsWith("round after 100 changes, p99")));
});

test("the bench of policies preempts gangs, and ends with a ratio for each kind of round", async () => {
  const lines: string[] = [];
  const tiny = { gangs: 150, nodes: 20, clusters: 2, asks: 20, queues: 10, rounds: 2, profile: false };
  await benchPolicies(tiny, (line) => void lines.push(line));
  assert.ok(
    lines.some((line) => /^cold plan +\d+\.\d+ times$/.test(line)),
    lines.join("\n"),
  );
  assert.ok(
    lines.some((line) => /^ {2}preemptions +[1-9]\d* gangs$/.test(line)),
    lines.join("\n"),
  );
});

test("the bench of fair shares runs every gang of a load to its end, and never beats the lower bound", () => {
  const small = BASELINE.cohorts.map((cohort) => ({
    ...cohort,
    count: 1,
    queueSets: cohort.queueSets.map((set) => ({
      ...set,
      count: 2,
      workloadSets: set.workloadSets.map((work) => ({ ...work, count: work.count / 25 })),
    })),
  }));
  const { makespanMs, boundMs, lostPart, meanWaitMs } = runLoad({ ...BASELINE, cohorts: small });
  assert.ok(makespanMs >= boundMs && boundMs > 0, `${makespanMs} ms, lower bound ${boundMs} ms`);
  assert.ok(lostPart >= 0 && lostPart < 1, `${lostPart}`);
  assert.deepEqual([...meanWaitMs.keys()], ["small", "medium", "large"]);
});
