import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action, ActOutcome } from "../../src/core/reconcile/decision.ts";
import { JobMemory } from "../../src/worker/job-memory.ts";
import { learnRefusals } from "../../src/worker/learn-refusals.ts";
import { QuotaMemory } from "../../src/worker/quota-memory.ts";
import { gangOf } from "./harness.ts";

const job = gangOf();
const createPod = (change: { readonly cluster?: string; readonly cpu?: string } = {}): Action => {
  const { cluster = "east", cpu = "1" } = change;
  const spec = { containers: [{ name: "main", resources: { requests: { cpu } } }] };
  const manifest = { metadata: { name: "p" }, spec };
  return { kind: "createPod", cluster, namespace: "team", anchor: "a", manifest } as Action;
};
const deletePod: Action = {
  kind: "deletePod",
  cluster: "east",
  namespace: "team",
  name: "p",
  uid: "u",
  force: false,
} as Action;

const throttled: ActOutcome = { kind: "failed", reason: "TooManyRequests", message: "later", retryAfterMs: 5_000 };
const overQuota: ActOutcome = {
  kind: "failed",
  reason: "Forbidden",
  message: "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1",
};

function learned(quotas: QuotaMemory, outcome: ActOutcome, atMs: number) {
  const acted = [{ action: createPod(), outcome }];
  return learnRefusals({ memory: new JobMemory(), quotas }, job, { acted, held: [] }, atMs);
}

test("a server that asks to wait is not called for that namespace, except for deletes", () => {
  const quotas = new QuotaMemory();
  assert.deepEqual(learned(quotas, throttled, 1_000), { kind: "failed", waitMs: 5_000 });
  assert.notEqual(quotas.whyHeld(createPod(), 5_999), null);
  assert.notEqual(quotas.whyHeld({ ...createPod(), kind: "createService" } as Action, 5_999), null);
  assert.equal(quotas.whyHeld(createPod({ cluster: "west" }), 1_000), null);
  assert.equal(quotas.whyHeld(deletePod, 1_000), null);
  assert.equal(quotas.waitMs(createPod(), 2_000), 4_000);
  assert.equal(quotas.whyHeld(createPod(), 6_000), null);
});

test("a failure without a time to wait waits only for the job's own backoff, whatever quotas are full", () => {
  const quotas = new QuotaMemory();
  assert.deepEqual(learned(quotas, overQuota, 0), { kind: "held", waitMs: 2_000 });
  const broken: ActOutcome = { kind: "failed", reason: "InternalError", message: "oh" };
  assert.deepEqual(learned(quotas, broken, 0), { kind: "failed", waitMs: 0 });
});

test("a pod waits for the later of quota and server, and a pod that fits the quota waits for the server alone", () => {
  const quotas = new QuotaMemory();
  learned(quotas, overQuota, 0);
  learned(quotas, { ...throttled, retryAfterMs: 1_000 }, 0);
  assert.equal(quotas.waitMs(createPod(), 0), 2_000);
  const fits = createPod({ cpu: "0" });
  assert.equal(quotas.waitMs(fits, 0), 1_000);
  assert.equal(quotas.whyHeld(fits, 1_000), null);
  assert.notEqual(quotas.whyHeld(createPod(), 1_000), null);
});

test("a quota's refusal with a time to wait counts for the quota and for the server", () => {
  const quotas = new QuotaMemory();
  assert.deepEqual(learned(quotas, { ...overQuota, retryAfterMs: 3_000 }, 0), { kind: "held", waitMs: 3_000 });
});

test("an action that is held back has the words of what held it at that time", () => {
  const quotas = new QuotaMemory();
  learned(quotas, overQuota, 0);
  learned(quotas, { ...throttled, retryAfterMs: 3_000 }, 0);
  assert.match(quotas.whyHeld(createPod(), 1_999) ?? "", /^exceeded quota: q/);
  assert.match(quotas.whyHeld(createPod(), 2_000) ?? "", /^cluster east has asked Gangway to wait/);
  assert.equal(quotas.whyHeld(createPod(), 3_000), null);
  assert.equal(quotas.whyHeld(deletePod, 0), null);
});

test("what a quota refused one pod for is told to other jobs without the name of that pod", () => {
  const quotas = new QuotaMemory();
  const message = `pods "secret-worker-0" is forbidden: ${overQuota.kind === "failed" ? overQuota.message : ""}`;
  learned(quotas, { ...overQuota, message } as ActOutcome, 1_000);
  const why = quotas.whyHeld(createPod(), 1_500) ?? "";
  assert.match(why, /pods are forbidden here: exceeded quota: q, requested/);
  assert.doesNotMatch(why, /secret/);
});
