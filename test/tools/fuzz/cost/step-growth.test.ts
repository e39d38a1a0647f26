/**
 * What a worker does until the pods of a grown job run, counted without a clock. It must not grow faster than the pods
 * that it builds. The simulated cluster is in this process too, and is not counted.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { fastClock, until } from "../../../cluster/harness.ts";
import { jobOf } from "../../../core/reconcile/world.ts";
import { workerScene } from "../../../worker/scene.ts";
import { Chance } from "../chance.ts";
import { operationsProblem, type SizeCount } from "./judge.ts";
import { MEMBERS, smallTemplate } from "./members.ts";
import { OperationsCounter } from "./operations.ts";
import { type Filling, filling } from "./texts.ts";

const INPUTS = Number(process.env["GANGWAY_COST_JOBS"] ?? 12);
const BYTES = 60_000;
/** Steps come together or apart as the cluster's answers do, so that what small jobs do varies. */
const STEPS_MAX = 12;
/** On a busy machine a job that cannot start is stepped far more often before that is seen. Each step costs as much. */
const MANY_STEPS = 4 * STEPS_MAX;
/** Far apart, for the same reason: what grows as the square of its size makes a byte cost four times as much. */
const SHARES = [1 / 16, 1 / 4, 1];
const GROWTH_MAX = 3;
/** A job whose pods nodes cannot hold waits for ever. What was done for it until then counts. */
const RUN_MS_MAX = 4_000;
/** What is too much in each of so many runs is too much. */
const RUNS_MAX = 3;

const COUNTED = /\/(src\/(?!adapters\/simcluster\/|core\/simcluster\/)|node_modules\/(@kubernetes|undici)\/)/;
const counter = new OperationsCounter(COUNTED);
after(() => counter.close());
const { store, start, direct } = await workerScene(fastClock(10));
let jobs = 0;

type Growing = { readonly at: number; readonly size: number; readonly filled: Filling };

/** Returns the size of the pods, and what was done until they ran. Null: they cannot run. */
async function run(growing: readonly Growing[]): Promise<SizeCount | null> {
  const template = smallTemplate();
  Object.assign(template.metadata.annotations, { "sim.gangway.dev/run": "forever", "sim.gangway.dev/pull": "1ms" });
  for (const { at, size, filled } of growing) MEMBERS[at]?.grow(template, size, filled);
  const uid = `grown-${jobs++}`;
  const spec = { kind: "Job", replicaSpecs: { Worker: { replicas: 2, template: template as unknown as JsonObject } } };
  const job = jobOf({ ...spec, runPolicy: {} }, { uid, name: uid, namespace: "default" });
  const before = store.loads;
  const operations = await counter.count(async () => {
    store.add(job);
    store.admit(uid, "sim");
    await until(
      () => {
        const { phase, conditions } = store.job(uid)?.status ?? { phase: "FAILED" as const, conditions: [] };
        const isOver = conditions.some(({ type, status }) => type === "Failed" && status === "True");
        return phase === "RUNNING" || isOver || hasProblem(uid);
      },
      `${uid} runs`,
      RUN_MS_MAX,
    ).catch(() => undefined);
  });
  const query = { labelSelector: `gangway.dev/job-uid=${uid}` };
  const listed = await direct.request({ method: "GET", path: "/api/v1/pods", query });
  const pods = listed.kind === "failed" ? [] : ((listed.object["items"] ?? []) as readonly unknown[]);
  const rounds = Math.max(1, (store.loads - before) / MANY_STEPS);
  return pods.length === 0 ? null : { bytes: JSON.stringify(pods).length, operations: operations / rounds };
}

/** Of each size, the run that did least: more steps only add. Leaves out sizes that cannot run. */
function leastOf(runs: readonly (readonly (SizeCount | null)[])[]): readonly SizeCount[] {
  return SHARES.flatMap((_, at) => {
    const counts = runs.flatMap((counts) => counts[at] ?? []);
    return counts.toSorted((a, b) => a.operations - b.operations).slice(0, 1);
  });
}

function hasProblem(uid: string): boolean {
  const status = store.job(uid)?.status;
  return (
    (status?.attempts.system ?? 0) + (status?.attempts.user ?? 0) > 0 || (status?.podProblems?.problems.length ?? 0) > 0
  );
}

test(`the steps of ${INPUTS} grown jobs do no more than the size of their pods allows`, async (t) => {
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
  t.diagnostic(`GANGWAY_SEED=${seed} GANGWAY_COST_JOBS=${INPUTS} npm test -- test/tools/fuzz/cost/step-growth.test.ts`);
  start();
  await run([]);
  const smallest = await run([]);
  assert.ok(smallest !== null, "the smallest job runs");
  const base = { ...smallest, operations: smallest.operations * STEPS_MAX };
  const findings: string[] = [];
  for (let number = 0; number < INPUTS; number += 1) {
    const chance = Chance.ofCall(seed, number);
    const at = chance.int(0, MEMBERS.length - 1);
    const filled = filling(chance);
    const size = Math.ceil(BYTES / (MEMBERS[at]?.itemBytes ?? 1));
    const runs: (readonly (SizeCount | null)[])[] = [];
    let problem: string | null = null;
    do {
      const counts: (SizeCount | null)[] = [];
      for (const share of SHARES) counts.push(await run([{ at, size: Math.ceil(size * share), filled }]));
      runs.push(counts);
      problem = operationsProblem(base, leastOf(runs), GROWTH_MAX);
    } while (problem !== null && runs.length < RUNS_MAX);
    if (problem !== null) findings.push(`${MEMBERS[at]?.name} × ${size} of ${JSON.stringify(filled.unit)}: ${problem}`);
  }
  assert.deepEqual(findings, []);
});
