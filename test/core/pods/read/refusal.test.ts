import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  learn,
  leaveAlone,
  mayAsk,
  type QuotaBackoff,
  quotaUse,
} from "../../../../src/core/pods/read/quota-backoff.ts";
import { readRefusal } from "../../../../src/core/pods/read/refusal.ts";

const quota = (rest: string) => `pods "p" is forbidden: exceeded quota: team${rest}`;

const cases = {
  "a quota of several resources": [
    "Forbidden",
    quota(
      ", requested: limits.memory=2Gi,requests.cpu=1500m,requests.nvidia.com/gpu=8" +
        ", used: limits.memory=1Gi,requests.cpu=1,requests.nvidia.com/gpu=4" +
        ", limited: limits.memory=2Gi,requests.cpu=2,requests.nvidia.com/gpu=8",
    ),
    {
      kind: "quota",
      ceilings: { "limits.memory": 2 ** 30 * 1000, "requests.cpu": 1000, "requests.nvidia.com/gpu": 4000 },
    },
  ],
  "a quota below its use": [
    "Forbidden",
    quota(", requested: pods=1, used: pods=4, limited: pods=2"),
    { kind: "quota", ceilings: { pods: 0 } },
  ],
  "a quota of which only the requested amounts are said": [
    "Forbidden",
    quota(", requested: pods=2,requests.cpu=0, used: , limited: "),
    { kind: "quota", ceilings: { pods: 1999, "requests.cpu": 0 } },
  ],
  "a quota of which nothing is used": [
    "Forbidden",
    quota(", requested: pods=3, used: , limited: pods=2"),
    { kind: "quota", ceilings: { pods: 2000 } },
  ],
  "a quota that has room again for exactly what was requested": [
    "Forbidden",
    quota(", requested: pods=2, used: pods=1, limited: pods=3"),
    { kind: "quota", ceilings: { pods: 1999 } },
  ],
  "amounts that cannot be read": [
    "Forbidden",
    quota(", requested: pods=two,=1, requests.cpu = 2, used: requests.cpu=1, limited: requests.cpu=2"),
    { kind: "quota", ceilings: { "requests.cpu": 1000 } },
  ],
  "a quota that says no more": ["Forbidden", quota(""), { kind: "quota", ceilings: {} }],
  "a right that is missing": ["Forbidden", "pods is forbidden: User cannot create", { kind: "transient" }],
  "a pod that is wrong": ["Invalid", "spec.containers: Required", { kind: "permanent", code: "BadTaskFormat" }],
  "a pod that cannot be read": ["BadRequest", "cannot be handled", { kind: "permanent", code: "BadTaskFormat" }],
  "a pod that is too large": ["RequestEntityTooLarge", "", { kind: "permanent", code: "EntityTooLarge" }],
  "a pod that is too large for etcd": [
    "InternalError",
    "etcdserver: request is too large",
    { kind: "permanent", code: "EntityTooLarge" },
  ],
  "too many requests": ["TooManyRequests", "later", { kind: "transient" }],
  "a server's error": ["InternalError", "oh", { kind: "transient" }],
} as const;

for (const [name, [reason, message, expected]] of Object.entries(cases)) {
  test(`${name}: ${expected.kind}`, () => assert.deepEqual(readRefusal({ reason, message }), expected));
}

test("reading a refusal never throws", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string().map(quota),
    fc.string().map((s) => quota(`, requested: ${s}, used: ${s}, limited: ${s}`)),
  );
  fc.assert(
    fc.property(fc.constantFrom("Forbidden", "Invalid", ""), text, (reason, message) => {
      const refusal = readRefusal({ reason, message });
      if (refusal.kind !== "quota") return;
      for (const ceiling of Object.values(refusal.ceilings)) assert.ok(ceiling >= 0);
    }),
  );
});

const resource = fc.constantFrom("requests.cpu", "limits.memory", "requests.nvidia.com/gpu");
const amounts = fc.dictionary(resource, fc.nat({ max: 10 }), { minKeys: 1 });

test("pods above a ceiling wait until it expires, smaller pods do not; waits are bounded and end", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ ceilings: amounts, afterMs: fc.nat({ max: 300_000 }) }), { minLength: 1 }),
      amounts,
      (refusals, wanted) => {
        let known = null as QuotaBackoff | null;
        let nowMs = 0;
        for (const { ceilings, afterMs } of refusals) {
          nowMs += afterMs;
          const before = known as QuotaBackoff | null;
          known = learn(before, ceilings, nowMs);
          assert.ok(known.lapsesAtMs > nowMs && known.lapsesAtMs <= nowMs + 120_000);
          if (before !== null && nowMs < before.lapsesAtMs) assert.equal(known.lapsesAtMs, before.lapsesAtMs);
          const larger = Object.fromEntries(Object.entries(ceilings).map(([name, ceiling]) => [name, ceiling + 1]));
          assert.equal(mayAsk(known, larger, nowMs), false);
          assert.equal(mayAsk(known, {}, nowMs), true, "a pod that asks for none of it");
          const fits = Object.entries(known.ceilings).every(([name, ceiling]) => (wanted[name] ?? 0) <= ceiling);
          assert.equal(mayAsk(known, wanted, nowMs), fits);
          assert.equal(mayAsk(known, larger, known.lapsesAtMs), true);
        }
      },
    ),
  );
});

test("a server gets no calls for the longest time that it asked for, at most two minutes", () => {
  const answers = fc.array(
    fc.record({ retryAfterMs: fc.integer({ min: -1, max: 300_000 }), afterMs: fc.nat(200_000) }),
  );
  fc.assert(
    fc.property(answers, (list) => {
      let [nowMs, untilMs] = [0, 0];
      for (const { retryAfterMs, afterMs } of list) {
        nowMs += afterMs;
        const before = untilMs;
        untilMs = leaveAlone(before, retryAfterMs, nowMs);
        assert.ok(untilMs >= before && untilMs >= nowMs + Math.min(retryAfterMs, 120_000));
        assert.ok(untilMs <= Math.max(before, nowMs + 120_000));
      }
    }),
  );
});

test("refusals in a row wait twice as long each, up to two minutes", () => {
  const waits: number[] = [];
  let known = learn(null, { pods: 0 }, 0);
  waits.push(known.lapsesAtMs);
  while (waits.length < 8) {
    const nowMs = known.lapsesAtMs;
    known = learn(known, { pods: 0 }, nowMs);
    waits.push(known.lapsesAtMs - nowMs);
  }
  assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 120_000, 120_000]);
});

test("a pod uses its requests, its limits and one pod of a quota", () => {
  const resources = { requests: { cpu: "1", "nvidia.com/gpu": "2" }, limits: { cpu: "2", "nvidia.com/gpu": "2" } };
  const use = quotaUse({
    containers: [
      { name: "a", resources },
      { name: "b", resources },
    ],
  });
  assert.deepEqual(use, {
    pods: 1000,
    "count/pods": 1000,
    cpu: 2000,
    "requests.cpu": 2000,
    "limits.cpu": 4000,
    "nvidia.com/gpu": 4000,
    "requests.nvidia.com/gpu": 4000,
    "limits.nvidia.com/gpu": 4000,
  });
});
