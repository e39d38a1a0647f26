import assert from "node:assert/strict";
import { test } from "node:test";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { createIntake, SUBMISSIONS_WAITING_MAX } from "../../src/intake/intake.ts";
import type { IntakeStore } from "../../src/intake/ports.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { OWN_KINDS } from "../support/kinds.ts";

test("submissions beyond the bound fail at once as unavailable while the database does not answer", async () => {
  const away = Promise.withResolvers<never>();
  // The intake may read the facts only after the rejection: until then nothing else would handle it.
  away.promise.catch(() => undefined);
  const store = { facts: () => away.promise } as unknown as IntakeStore;
  const intake = createIntake({
    clock: { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {} },
    kinds: OWN_KINDS,
    store,
    podConfig: () => PLAIN_POD_CONFIG,
    randomBytes: (count) => new Uint8Array(count),
    wakePlanner: () => {},
    wakeJob: () => {},
  });
  const template = { spec: { containers: [{ name: "main", image: "x" }] } };
  const spec = { kind: "Job", replicaSpecs: { Worker: { template } } };
  const job = { namespace: "default", name: "a", generateName: "", labels: {}, annotations: {}, spec };
  const submission = { job, requestId: "", validateOnly: false, strict: false, createdBy: "alice" };
  const waiting = Array.from({ length: SUBMISSIONS_WAITING_MAX }, () => intake.submit(submission));
  await assert.rejects(intake.submit(submission), UnavailableError);
  away.reject(new UnavailableError("the database is away"));
  const outcomes = await Promise.allSettled(waiting);
  assert.ok(outcomes.every(({ status }) => status === "rejected"));
});
