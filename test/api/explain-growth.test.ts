import assert from "node:assert/strict";
import { test } from "node:test";
import { growthText } from "../../src/api/job/explain-growth.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Admission } from "../../src/core/job/status.ts";
import { gangOf } from "../../src/core/plan/model/plan-gang.ts";
import type { Simulation } from "../../src/core/plan/model/simulation.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
const { job } = new Scene(pytorch()).start();
const total = 3;

function withMembers(of: Partial<Admission>): Job {
  const [live] = job.admissions;
  assert.ok(live !== undefined);
  return { ...job, admissions: [{ ...live, ...of }] };
}

async function said(of: Job, { elastic = false, verdict = "WAITS" as Simulation["verdict"] } = {}) {
  const asked: Job[] = [];
  const message = "needs 1 of gpu/h100; queue default uses 8 of 8 (held by default/other)";
  const answer = { verdict, admission: null, reason: "", message, clusters: [], quotas: [], refusals: [] };
  const kind = {
    ...OWN_KINDS.kindOf("PyTorchJob")!,
    ...(elastic ? { elasticRoles: () => [{ name: "Worker", min: 1, max: null }] } : {}),
  };
  const simulate = async (part: Job) => {
    asked.push(part);
    return answer;
  };
  const text = await growthText(of, { simulate, kind, access, signal: new AbortController().signal });
  return { text, part: asked[0] };
}

test("gangs of all members, that would restart ended members, or that have ended do not grow", async () => {
  for (const of of [
    job,
    withMembers({ members: { Master: 1, Worker: 1 }, returned: { Worker: [0] }, partial: "RESTART" }),
    withMembers({ members: { Master: 1, Worker: 1 }, state: "ended" }),
    withMembers({ members: { Master: 1, Worker: 1 }, state: "undone" }),
  ]) {
    assert.deepEqual(await said(of), { text: "", part: undefined });
  }
});

test("a gang that gave tokens back says that it grows exactly if the planner lets it", async () => {
  for (const partial of [undefined, "KEEP", "RESTART"] as const) {
    const members = { Master: 1, Worker: 1 };
    const of = withMembers({ members, returned: { Worker: [0] }, ...(partial === undefined ? {} : { partial }) });
    const isListed = gangOf(of, OWN_KINDS, { generation: 1, lastAdmission: 1 }).growsNoMore !== true;
    assert.equal((await said(of)).text !== "", isListed, partial ?? "elastic");
  }
});

test("a gang that was admitted in part says to how many pods it grows, and what is in the way", async () => {
  const { text, part } = await said(
    withMembers({ members: { Master: 1, Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } }),
  );
  assert.equal(
    text,
    `; it would grow to ${total} pods: the rest needs 1 of gpu/h100; ` +
      "queue default uses 8 of 8 (held by default/other); " +
      'growth never preempts; "gangway cancel j -n ns", then "gangway rerun j -n ns --min-available 3"' +
      " waits for all, and may preempt",
  );
  assert.deepEqual(
    Object.entries(part?.spec.replicaSpecs ?? {}).map(([role, { replicas }]) => [role, replicas]),
    [["Worker", 1]],
  );
  assert.deepEqual(part?.spec.placement, { clusters: ["c1"], clusterSelector: {}, gpuModels: ["gpu/h100"] });
  assert.deepEqual([part?.status.phase, part?.admissions, part?.spec.preemptionPolicy], ["WAITING", [], "NEVER"]);
});

test("an elastic gang grows by as many as fit, another by all at once", async () => {
  const members = { Master: 0, Worker: 1 };
  const least = async (elastic: boolean) =>
    (await said(withMembers({ members }), { elastic })).part?.spec.runPolicy.schedulingPolicy.minAvailable;
  assert.deepEqual([await least(true), await least(false)], [1, 2]);
  assert.match(
    (await said(withMembers({ members }), { verdict: "FITS_NOW" })).text,
    /^; it would grow to 3 pods: the rest fits now;/,
  );
});
