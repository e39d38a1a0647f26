import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type HealthFacts, healthOf } from "../../src/adapters/cluster/health.ts";
import type { KubeFailure } from "../../src/adapters/cluster/kube-failure.ts";

const GRACE_MS = 40_000;
const failure = (status: number, code?: string): KubeFailure => ({
  kind: "failed",
  status,
  reason: "Some",
  message: "",
  retryAfterMs: null,
  ...(code === undefined ? {} : { code }),
});
const failures = fc.constantFrom(
  failure(0, "ECONNREFUSED"),
  failure(0, "CERT_HAS_EXPIRED"),
  failure(401),
  failure(403),
  failure(500),
  failure(503),
);
const forMs = fc.constantFrom(1, 5_000, GRACE_MS - 1, GRACE_MS, 10 * GRACE_MS);
const watch = fc.oneof(
  fc.constant({ failingForMs: 0, failure: null }),
  fc.record({ failingForMs: forMs, failure: failures }),
);
const facts: fc.Arbitrary<HealthFacts> = fc.record({
  problem: fc.constantFrom(null, null, "is another cluster"),
  probe: fc.oneof(
    fc.constant({ kind: "answers" } as const),
    fc.record({ kind: fc.constant("silent" as const), forMs }),
    fc.record({ kind: fc.constant("refuses" as const), forMs, why: fc.constant("no") }),
  ),
  watches: fc.array(watch, { minLength: 1, maxLength: 4 }),
});

test("a cluster is active only if nothing speaks against it, and after a failure only if no watch fails", () => {
  fc.assert(
    fc.property(facts, fc.boolean(), (of, wasActive) => {
      const judged = healthOf(of, { wasActive, graceMs: GRACE_MS });
      const worstMs = Math.max(...of.watches.map(({ failingForMs }) => failingForMs));
      const isWell = of.problem === null && of.probe.kind === "answers" && worstMs < (wasActive ? GRACE_MS : 1);
      assert.equal(judged.kind === "active", isWell);
    }),
  );
});

test("an outage is never called a refusal, nor a refusal an outage", () => {
  fc.assert(
    fc.property(facts, fc.boolean(), (of, wasActive) => {
      const judged = healthOf(of, { wasActive, graceMs: GRACE_MS });
      const isRefused = ({ failure: met }: HealthFacts["watches"][number]) =>
        [401, 403].includes(met?.status ?? 0) || met?.code === "CERT_HAS_EXPIRED";
      if (judged.kind === "unreachable") {
        assert.equal(of.problem, null);
        assert.ok(of.probe.kind === "silent" || !of.watches.some(isRefused));
      }
      if (judged.kind === "unusable" && of.problem === null && of.probe.kind !== "refuses") {
        assert.equal(of.probe.kind, "answers", "who does not answer refuses nothing");
        assert.ok(of.watches.some(isRefused));
      }
    }),
  );
});
