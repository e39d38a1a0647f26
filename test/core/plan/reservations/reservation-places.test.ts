import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import { amounts, cluster, flavor, job, NOW, node, planGang, pool, queue } from "../plan-world.ts";

const MODELS = ["h100", "a100"];

/** A gang of one pod with 8 GPUs of any model. */
function gangOf(name: string, createTimeMs: number): PlanGang {
  return planGang(job({ name, queue: "q", createTimeMs, roles: { Worker: { replicas: 1, gpus: 8 } } }));
}

function running(name: string, model: string): PlanGang {
  const flavors = { "nvidia.com/gpu": `gpu/${model}` };
  const flavorLabels = { "nvidia.com/gpu": { gpu: model } };
  const ends = { state: "live" as const, tokensReleasedMs: null, goneMs: null };
  const live = { number: 1, admitTimeMs: 0, cluster: "east", members: { Worker: 1 }, flavors, flavorLabels, ...ends };
  return { ...gangOf(name, 0), waits: false, admissions: [live], lastAdmission: 1 };
}

function reserving(name: string, model: string, { createTimeMs, after }: { createTimeMs: number; after: string }) {
  const gang = gangOf(name, createTimeMs);
  const at = { cluster: "east", flavors: { "nvidia.com/gpu": `gpu/${model}` }, members: { Worker: 1 } };
  const victims = [{ jobUid: `uid-${after}`, admission: 1 }];
  const reservation = { sinceMs: 0, keepsQuota: true };
  return { ...gang, nomination: { ...at, generation: gang.generation, victims, sinceMs: 0, reservation } };
}

/**
 * Gangs fill two nodes with a100, and the node with h100 is gone, on which one gang with a reservation waits. Another
 * has one in the pool of a100, since 2 ms.
 */
function round(perPool: number, of: { readonly movesSinceMs: number }): readonly string[] {
  const state = new FleetState();
  const quotas = { h100: 8, a100: 16 };
  const policy = { ...DEFAULT_POLICY, reserveAfterMs: 1 };
  state.apply({ kind: "queue", name: "q", version: 1, queue: queue("q", quotas, { policy }) });
  for (const model of MODELS) {
    state.apply({ kind: "pool", name: `gpu/${model}`, version: 1, pool: pool(`gpu/${model}`) });
  }
  const { capacity: _, ...facts } = cluster("east", { nodes: [] });
  state.apply({ kind: "cluster", name: "east", version: 1, facts: { ...facts, flavors: MODELS.map(flavor) } });
  const changes = ["r1", "r2"].map((name) => {
    const key = { kind: "node", name } as const;
    const members = [{ jobUid: `uid-${name}`, admission: 1, role: "worker", index: 0 }];
    return { key, entry: { ...key, node: node(name, "a100", { free: amounts(0) }), members } };
  });
  state.apply({ kind: "capacity", cluster: "east", epoch: 1, since: null, sequence: 1, changes });
  const gangs = [
    ...["r1", "r2"].map((name) => running(name, "a100")),
    reserving("moves", "h100", { createTimeMs: of.movesSinceMs, after: "gone" }),
    reserving("stays", "a100", { createTimeMs: 2, after: "r1" }),
  ];
  for (const gang of gangs) state.apply({ kind: "gang", uid: gang.uid, version: 1, gang });
  const scope = { kind: "queue", pool: "gpu/a100", queue: "q" } as const;
  state.apply({ kind: "sum", scope, version: 1, used: 16 });
  const plan = state.round(NOW, { admissionsMax: 10, reservationsPerPool: perPool });
  return [
    ...plan.preemptions.map(({ planned }) => `${planned.jobUid} in ${planned.flavors["nvidia.com/gpu"]}`),
    ...plan.withdrawn.map((uid) => `${uid} withdrawn`),
  ];
}

test("a reservation moves to another pool if that has a place", () => {
  assert.deepEqual(round(2, { movesSinceMs: 3 }), ["uid-moves in gpu/a100"]);
});

test("a reservation ends that can only move to a pool which has as many as it may", () => {
  for (const movesSinceMs of [1, 3]) assert.deepEqual(round(1, { movesSinceMs }), ["uid-moves withdrawn"]);
});
