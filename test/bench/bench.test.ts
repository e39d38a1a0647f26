import assert from "node:assert/strict";
import { test } from "node:test";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { benchAdmit } from "./admit.ts";
import { benchCost } from "./cost.ts";
import { benchGang } from "./gang.ts";
import { benchPlan } from "./plan.ts";
import { benchRecord } from "./record.ts";
import { benchSubmit } from "./submit.ts";

const server = await postgresServer();
const noServers = server === null || !hasRedisServer();

test("the bench of submits ends with a ratio for each pair", async () => {
  const lines: string[] = [];
  const tiny = { seconds: 0.2, profile: true, database: "memory", callers: [2], batch: 20 };
  const ratios = await benchSubmit(tiny, (line) => void lines.push(line));
  assert.deepEqual(Object.keys(ratios), ["submit, 2 callers", "submit in batches of 20"]);
  assert.ok(Object.values(ratios).every((ratio) => ratio > 0 && Number.isFinite(ratio)));
  assert.ok(lines.some((line) => line.includes("self time")));
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
