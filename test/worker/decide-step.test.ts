import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { OUTSTANDING_MS } from "../../src/core/reconcile/decision-draft.ts";
import type { Observed } from "../../src/core/reconcile/observed.ts";
import { ArrivedPods } from "../../src/worker/arrived-pods.ts";
import { decideStep } from "../../src/worker/decide-step.ts";
import { JobMemory } from "../../src/worker/job-memory.ts";
import { PluginCalls } from "../../src/worker/plugin-calls.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { SeenTimes } from "../../src/worker/seen-times.ts";
import { SlowPlugins } from "../../src/worker/slow-plugins.ts";
import { clock } from "../cluster/harness.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { CONFIG } from "../core/reconcile/world.ts";

type Clusters = {
  readonly watched: Observed | null | WorkerPorts["clusters"]["observe"];
  readonly listed: Observed | null;
};

/** Decides a job whose watches report `watched`, and whose clusters list `listed` when they are asked. */
function decide(job: Job, nowMs: number, of: Clusters) {
  let lists = 0;
  const time = { ...clock, nowMs: () => nowMs };
  const ports: WorkerPorts = {
    clock: time,
    store: new Proxy({} as WorkerPorts["store"], { get: () => assert.fail("a decision writes nothing") }),
    clusters: {
      observe: typeof of.watched === "function" ? of.watched : () => of.watched as Observed | null,
      listJob: async () => {
        lists += 1;
        return of.listed;
      },
      act: () => assert.fail("a decision changes no cluster"),
      claim: () => assert.fail("nothing is claimed"),
      anchorLives: () => assert.fail("nothing is claimed"),
      seenJobs: () => [],
      namespaceOf: () => null,
    },
    member: { term: () => null },
    wakePlanner: () => undefined,
  };
  const slow = new SlowPlugins();
  const calls = new PluginCalls(ports, { kinds: CONFIG.kinds, slow, onError: () => undefined });
  const memory = { memory: new JobMemory(), seen: new SeenTimes(), placed: new ArrivedPods(() => undefined) };
  const context = { config: CONFIG, ...memory, calls, slow, failureLogs: null, onRan: () => undefined };
  const lease = { bucket: 0, epoch: 1 };
  return decideStep(ports, context, { job, lease, placement: null }, new AbortController().signal).then((decision) => {
    return { decision, lists, released: decision?.record?.admissions[0]?.tokensReleasedMs ?? null };
  });
}

/** A job that was cancelled while it ran: its pods are being deleted, and none can be under way any more. */
function cancelled(): { readonly scene: Scene; readonly full: Observed } {
  const scene = new Scene(pytorch()).start();
  scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
  scene.step();
  scene.nowMs += 2 * OUTSTANDING_MS;
  return { scene, full: [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })] };
}

const EMPTY: Observed = [{ cluster: "c1", pods: [], services: [], configMaps: [] }];

describe("a decision that would release tokens", () => {
  test("releases none while the cluster still lists pods that a lagging watch does not show", async () => {
    const { scene, full } = cancelled();
    const { released, lists } = await decide(scene.job, scene.nowMs, { watched: EMPTY, listed: full });
    assert.deepEqual([released, lists], [null, 1]);
  });

  test("releases none either while the watch still shows the other objects of the gang", async () => {
    const { scene, full } = cancelled();
    const watched = full.map((seen) => ({ ...seen, pods: [] }));
    const { released, lists } = await decide(scene.job, scene.nowMs, { watched, listed: full });
    assert.deepEqual([released, lists], [null, 1]);
  });

  test("is put off while the cluster cannot be listed", async () => {
    const { scene } = cancelled();
    const { decision } = await decide(scene.job, scene.nowMs, { watched: EMPTY, listed: null });
    assert.equal(decision, null);
  });

  test("releases them once the cluster lists no pod", async () => {
    const { scene } = cancelled();
    const { released } = await decide(scene.job, scene.nowMs, { watched: EMPTY, listed: EMPTY });
    assert.equal(released, scene.nowMs);
  });
});

test("a decision that releases no tokens costs no list", async () => {
  const { scene, full } = cancelled();
  const { released, lists } = await decide(scene.job, scene.nowMs, { watched: full, listed: EMPTY });
  assert.deepEqual([released, lists], [null, 0]);
});

test("nothing is decided before the watches have listed the job's clusters", async () => {
  const { scene, full } = cancelled();
  const { decision } = await decide(scene.job, scene.nowMs, { watched: null, listed: full });
  assert.equal(decision, null);
});

test("a deleted job of which nothing is left is forgotten, also if its cluster was removed since", async () => {
  const { scene } = cancelled();
  const gone = { tokensReleasedMs: scene.nowMs, goneMs: scene.nowMs };
  const job: Job = {
    ...scene.job,
    deleteTimeMs: scene.nowMs,
    admissions: scene.job.admissions.map((admission) => ({ ...admission, ...gone })),
  };
  const removed: WorkerPorts["clusters"]["observe"] = ({ clusters }) => (clusters.length === 0 ? [] : null);
  const { decision } = await decide(job, scene.nowMs, { watched: removed, listed: null });
  assert.equal(decision?.forget, true);
  const { decision: early } = await decide(scene.job, scene.nowMs, { watched: removed, listed: null });
  assert.equal(early, null, "an admission that is not gone needs its cluster");
});
