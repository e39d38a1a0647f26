import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { Simulation } from "../../../src/core/plan/model/simulation.ts";
import { simulate } from "../../../src/core/plan/simulate.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { assertRecorded } from "../../support/recorded-text.ts";
import { simulateOn } from "../../support/simulate-on.ts";
import { maskedCluster, maskedQuota, withoutNodes } from "./answers.ts";
import { AT } from "./plan-world.ts";
import { Draw, QUEUES, randomJob, randomSnapshot } from "./random-world.ts";
import { Truth } from "./truth.ts";

const WORLDS = 300;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

function newJob(draw: Draw, clusters: readonly string[], alike: boolean): Job {
  const drawn = randomJob(draw, { name: "new", clusters, queues: QUEUES, alike });
  return { ...drawn, status: { ...drawn.status, backoff: null } };
}

function lineOf(seed: number, { clusters, quotas, message, ...simulation }: Simulation): string {
  const said = clusters.map(({ refusal, ...of }) => ({ ...of, refusal: refusal && maskedCluster(refusal) }));
  const lacking = quotas.map((quota) => ({ ...maskedQuota(quota), heldBy: [] }));
  const each = clusters.map(({ cluster, verdict, refusal }) => `${cluster} ${verdict} ${refusal?.reason ?? ""}`.trim());
  const admission = simulation.admission && withoutNodes(simulation.admission);
  const hash = contentHash({ ...simulation, admission, said, lacking }).slice(0, 12);
  return `${seed}: ${simulation.verdict} ${simulation.reason}; ${each.join(", ")}; ${hash}`;
}

test("simulations in random worlds stay as they were recorded", () => {
  const lines: string[] = [];
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const from = randomSnapshot(seed, { jobs: 6, nodes: 5, alike: seed % 2 === 0 });
    const clusters = from.clusters.map(({ name }) => name);
    lines.push(lineOf(seed, simulateOn(from, newJob(draw, clusters, seed % 3 === 0), AT)));
  }
  assertRecorded(new URL("simulations.txt", import.meta.url), `${lines.join("\n")}\n`);
});

test("a simulation leaves the state as it was: later rounds decide and say the same", () => {
  let reported = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const truth = new Truth(seed, { alike: seed % 2 === 0 });
    const [asked, other] = [new FleetState(), new FleetState()];
    const tell = (changes: readonly Change[]) => {
      for (const change of changes) for (const state of [asked, other]) state.apply(change);
    };
    tell(truth.load());
    for (let at = 0; at < 4; at++) {
      simulate(asked, newJob(truth.draw, ["east", "west"], at % 2 === 0), { ...AT, callers: [] });
      assert.equal(asked.hash(), other.hash(), `seed ${seed}`);
      const [made, expected] = [asked, other].map((state) => {
        const { refused, ...rest } = state.round(truth.nowMs, UNBOUNDED);
        return { rest, told: new Set(refused.map(({ gang }) => gang.uid)) };
      });
      assert.deepEqual(made?.rest, expected?.rest, `seed ${seed}`);
      const unreported = [...(expected?.told ?? [])].filter((uid) => made?.told.has(uid) !== true);
      assert.deepEqual(unreported, [], `seed ${seed}: gangs were not told why they wait`);
      reported += expected?.told.size ?? 0;
      tell(truth.change());
    }
  }
  assert.ok(reported > WORLDS, `${reported}`);
});
