import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { remedyOf } from "../../../../src/core/pods/read/refusal-remedy.ts";
import { reconcile } from "../../../../src/core/reconcile/reconcile.ts";
import { pytorch, Scene } from "../../reconcile/scene.ts";
import { CONFIG, recorded } from "../../reconcile/world.ts";

const POD = 'pods "j-worker-0" is forbidden: ';
const cases: Record<string, readonly [reason: string, message: string, remedy: RegExp | null]> = {
  "a missing namespace": ["NotFound", 'namespaces "team" not found', /namespace must exist/],
  "a namespace that is terminating": [
    "Forbidden",
    `${POD}unable to create new content in namespace team because it is being terminated`,
    /terminating/,
  ],
  "a missing service account": [
    "Forbidden",
    `${POD}error looking up service account team/a: serviceaccount "a" not found`,
    /service account must exist/,
  ],
  "a missing priority class": [
    "Forbidden",
    `${POD}no PriorityClass with name high was found`,
    /priority class must exist/,
  ],
  "a missing runtime class": [
    "Forbidden",
    `${POD}pod rejected: RuntimeClass "gvisor" not found`,
    /runtime class must exist/,
  ],
  "a full quota": [
    "Forbidden",
    `${POD}exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`,
    /ResourceQuota must have room/,
  ],
  "a quota that demands limits": ["Forbidden", `${POD}failed quota: q: must specify limits.cpu`, /must set what/],
  "a Pod Security level": [
    "Forbidden",
    `${POD}violates PodSecurity "restricted:latest": privileged`,
    /Pod Security level/,
  ],
  "a webhook": ["Forbidden", 'admission webhook "policy.example" denied the request: no', /webhook must allow/],
  "a missing permission": [
    "Forbidden",
    'pods is forbidden: User "g" cannot create resource "pods" in API group ""',
    /permission/,
  ],
  "a limit range": ["Forbidden", `${POD}maximum cpu usage per Container is 1, but limit is 2`, /must allow the object/],
  "an object that goes": ["NotFound", 'pods "j" not found', null],
  "a full server": ["TooManyRequests", "too many requests", null],
  "an error of the server": ["InternalError", "etcdserver: request timed out", null],
  "no answer": ["", "connect ECONNREFUSED", null],
};
describe("what has to change before a cluster takes an object", () => {
  for (const [name, [reason, message, remedy]] of Object.entries(cases)) {
    test(name, () => {
      const found = remedyOf({ reason, message });
      if (remedy === null) assert.equal(found, null);
      else assert.match(found ?? "", remedy);
    });
  }
});

describe("a gang whose cluster refuses its pods", () => {
  const refusedFor = (seconds: number, remedy: string | null) => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 0 } }));
    const what = { admission: 1, name: "j-worker-0", attempt: 1, reason: "FailedCreatePod", code: null };
    const refused = { ...what, message: `${POD}no`, ...(remedy === null ? {} : { remedy }) };
    const step = () => {
      const observed = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
      const decision = reconcile(scene.job, observed, scene.nowMs, CONFIG, { refused });
      scene.job = recorded(scene.job, decision);
      return decision;
    };
    step();
    step();
    scene.nowMs += seconds * 1_000;
    return { scene, decision: step() };
  };

  test("is undone after a minute, says what has to change, and tries that cluster last", () => {
    const { scene, decision } = refusedFor(60, "the service account must exist there");
    const { status, admissions } = scene.job;
    assert.deepEqual([status.phase, status.waiting?.reason, admissions[0]?.state], ["WAITING", "Backoff", "undone"]);
    assert.match(status.waiting?.message ?? "", /c1 refuses its pods: .*; the service account must exist there\.$/);
    assert.equal(status.backoff?.lastCluster, "c1");
    assert.equal(decision.record?.events.at(-1)?.reason, "PyTorchJobClusterRefused");
  });

  test("may be helped within a minute", () => {
    const { scene, decision } = refusedFor(59, "the service account must exist there");
    assert.equal(scene.job.status.phase, "STARTING");
    assert.ok((decision.recheckAtMs ?? 0) <= scene.nowMs + 1_000);
  });

  test("stays if a retry may succeed", () => {
    assert.equal(refusedFor(600, null).scene.job.status.phase, "STARTING");
  });
});
