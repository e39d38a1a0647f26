import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import { admission, amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "../plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const LABELS = { gpu: "h100", zone: "a" };

const gangIn = (name: string, where: string) =>
  job({ name, clusters: [where], roles: { Worker: { replicas: 1, gpus: 8 } } });

const live = (one: Job, where: string): Job => ({
  ...one,
  status: { ...one.status, phase: "RUNNING" },
  admissions: [admission({ cluster: where, members: { Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } })],
});

test("room that came while a queue was full is used once the queue is not full any more", () => {
  const busy = node("e", "h100", { free: amounts(0) });
  const state = stateOf(
    snapshot({
      waiting: [gangIn("waits", "east")],
      queues: [queue("q", { h100: 1000 }, { maxRunningJobs: 1 })],
      clusters: [cluster("east", { nodes: [busy] }), cluster("west", { nodes: [node("w", "h100")] })],
    }),
  );
  const round = () => state.round(NOW, BOUNDS);
  const tell = (one: Job | null, version: number) =>
    state.apply({
      kind: "gang",
      uid: "uid-runs",
      version,
      gang: one === null ? null : { ...planGang(one), version },
    });
  assert.deepEqual(
    round().refused.map(({ cause }) => cause.kind),
    ["lacks"],
  );
  tell(live(gangIn("runs", "west"), "west"), 10);
  assert.deepEqual(
    round().refused.map(({ cause }) => cause.kind),
    ["queueFull"],
  );
  const key = { kind: "node" as const, name: "e" };
  const entry = { ...key, node: { ...busy, labels: LABELS, free: amounts(8) }, members: [] };
  state.apply({ kind: "capacity", cluster: "east", epoch: 1, since: 1, sequence: 2, changes: [{ key, entry }] });
  assert.deepEqual(round().admissions, [], "the queue is full");
  tell(null, 11);
  assert.deepEqual(
    round().admissions.map(({ jobUid, cluster: where }) => [jobUid, where]),
    [["uid-waits", "east"]],
  );
});
