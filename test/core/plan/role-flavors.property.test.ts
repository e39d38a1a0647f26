/** One gang alone, against every way to give each of its replica types a flavor. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ofRole } from "../../../src/core/job/flavor-labels.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { plan } from "../../support/plan.ts";
import { AT, amounts, cluster, flavor, job, node, queue, snapshot } from "./plan-world.ts";

const GPU = "nvidia.com/gpu";
/** In the order in which members are admitted. */
const ROLES = ["Chief", "PS", "Evaluator", "Worker"];
const MODELS = ["h100", "a100", "l4"];

const someWorld = fc
  .record({
    types: fc.array(fc.record({ replicas: fc.integer({ min: 1, max: 3 }), gpus: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 2,
      maxLength: 4,
    }),
    /** What the queue has left of each model, and what a node of it has. */
    quotas: fc.array(fc.nat(12), { minLength: 2, maxLength: 3 }),
    free: fc.array(fc.nat(14), { minLength: 3, maxLength: 3 }),
    used: fc.nat(3),
  })
  .map(({ types, quotas, free, used }) => ({
    types,
    used,
    models: quotas.map((quota, at) => ({ quota, free: free[at] ?? 0 })),
  }));

type World = typeof someWorld extends fc.Arbitrary<infer W> ? W : never;

function snapshotOf({ types, models, used }: World, more: Readonly<Record<string, number>> = {}): PlanSnapshot {
  const roles = types.map(({ replicas, gpus }, at) => [ROLES[at] ?? "", { replicas, gpus }] as const);
  const nominal = models.map(({ quota }, at) => {
    const model = MODELS[at] ?? "";
    return [model, quota + used + (more[`gpu/${model}`] ?? 0)] as const;
  });
  const inUse = Object.fromEntries(nominal.map(([model]) => [`gpu/${model}`, used]));
  const nodes = models.map(({ free }, at) => {
    return node(`n${at}`, MODELS[at] ?? "", { allocatable: amounts(14, 1000), free: amounts(free, 1000) });
  });
  return snapshot({
    waiting: [job({ name: "x", roles: Object.fromEntries(roles) })],
    queues: [queue("q", Object.fromEntries(nominal), { used: inUse })],
    clusters: [cluster("east", { nodes, flavors: MODELS.map(flavor) })],
  });
}

/** The first choice, in the order of the types and of the queue's quotas, that a test allows. Null: none is. */
function firstOf({ types, models }: World, fits: (needs: readonly number[]) => boolean): readonly string[] | null {
  const search = (picked: readonly number[]): readonly number[] | null => {
    if (picked.length === types.length) {
      const needs = models.map((_, at) => {
        return types.reduce((sum, { replicas, gpus }, type) => sum + (picked[type] === at ? replicas * gpus : 0), 0);
      });
      return fits(needs) ? picked : null;
    }
    for (const at of models.keys()) {
      const found = search([...picked, at]);
      if (found !== null) return found;
    }
    return null;
  };
  return search([])?.map((at) => `gpu/${MODELS[at]}`) ?? null;
}

function flavorsIn({ types }: World, from: PlanSnapshot): readonly string[] | null {
  const [planned] = plan(from, AT).admissions;
  if (planned === undefined) return null;
  return types.map((_, at) => ofRole(planned.flavors, ROLES[at] ?? "")[GPU] ?? "");
}

/** Only the 70th of 81 choices has the nodes: l4, a100, a100, l4. */
const FITS_LATE: World = {
  types: [3, 1, 1, 1].map((gpus) => ({ replicas: 1, gpus })),
  used: 0,
  models: [
    { quota: 5, free: 0 },
    { quota: 5, free: 2 },
    { quota: 4, free: 4 },
  ],
};

test("each type gets the first flavor with which all types have quota and nodes", () => {
  const met = { together: 0, apart: 0, refused: 0 };
  fc.assert(
    fc.property(someWorld, (world) => {
      const expected = firstOf(world, (needs) => {
        return needs.every(
          (need, at) => need <= (world.models[at]?.quota ?? 0) && need <= (world.models[at]?.free ?? 0),
        );
      });
      const kind = expected === null ? "refused" : new Set(expected).size === 1 ? "together" : "apart";
      met[kind] += 1;
      // Whether pods of many sizes fit one node is exact: each pod takes whole GPUs of it.
      assert.deepEqual(flavorsIn(world, snapshotOf(world)), expected);
    }),
    { numRuns: 300, examples: [[FITS_LATE]] },
  );
  assert.ok(met.together > 20 && met.apart > 20 && met.refused > 20, JSON.stringify(met));
});

/** Each type fits some flavor alone, but not all types beside each other: 10 or more of 8, whatever the others get. */
const FITS_NOWHERE: World = {
  types: [4, 6, 1, 1].map((gpus) => ({ replicas: 1, gpus })),
  used: 2,
  models: [0, 0, 6].map((quota) => ({ quota, free: 0 })),
};

test("a gang that lacks quota is admitted with exactly what the refusal says that it lacks, or never", () => {
  const met = { lacks: 0, never: 0 };
  fc.assert(
    fc.property(someWorld, (one) => {
      const world = { ...one, models: one.models.map((model) => ({ ...model, free: 1000 })) };
      const from = snapshotOf(world);
      const [refusal] = plan(from, AT).refusals;
      if (refusal === undefined) return;
      const once = firstOf(world, (needs) =>
        needs.every((need, at) => need <= (world.models[at]?.quota ?? 0) + world.used),
      );
      assert.equal(refusal.reason, once === null ? "AboveQuota" : "QuotaExhausted");
      met[once === null ? "never" : "lacks"] += 1;
      if (once === null) return;
      const more: Record<string, number> = {};
      // Flavors that never have the quota are named too, but the reason is about the others.
      const lacking = refusal.quotas.filter(({ reason }) => reason === "QuotaExhausted");
      for (const { flavor: pool, need, used, limit } of lacking) {
        more[pool] = Math.max(more[pool] ?? 0, need - (limit - used));
      }
      assert.ok(
        Object.values(more).every((lack) => lack > 0 && lack <= world.used),
        JSON.stringify(more),
      );
      assert.notEqual(flavorsIn(world, snapshotOf(world, more)), null);
    }),
    { numRuns: 500, examples: [[FITS_NOWHERE]] },
  );
  assert.ok(met.lacks > 5 && met.never > 5, JSON.stringify(met));
});
