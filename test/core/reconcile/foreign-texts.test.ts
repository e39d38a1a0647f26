/** Texts of clusters and plugins, of any length, in everything that is recorded, shown and logged of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { failureFromStatus, unreachable } from "../../../src/adapters/cluster/kube-failure.ts";
import { setCondition } from "../../../src/core/job/conditions.ts";
import { describeBlocked, obstacleName } from "../../../src/core/plan/explain/blocked-messages.ts";
import { changed, refuse, refuseFor, withHead } from "../../../src/core/plan/explain/refuse.ts";
import type { BlockedPod } from "../../../src/core/plan/model/blocked-pod.ts";
import type { RefusedCreate } from "../../../src/core/reconcile/decision-draft.ts";
import { afterCall } from "../../../src/core/reconcile/plugins/plugin-outcome.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { FOREIGN_BYTES_MAX } from "../../../src/runtime/foreign-text.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { thrownText } from "../../../src/runtime/thrown-text.ts";
import { shownError } from "../../../src/telemetry/events.ts";
import { kindsWith } from "../../support/kinds.ts";
import { etlEntry } from "../kinds/plugin-world.ts";
import { pytorch, Scene } from "./scene.ts";
import { admit, CONFIG, jobOf, recorded, START_MS } from "./world.ts";

const LONG = "é, ".repeat(100_000);

/** All texts within a value, by their paths. */
function textsOf(value: unknown, path = ""): readonly (readonly [string, string])[] {
  if (typeof value === "string") return [[path, value]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [...textsOf(name), ...textsOf(inner, `${path}.${name}`)]);
}

function assertShort(value: unknown, bytesMax = FOREIGN_BYTES_MAX): void {
  for (const [path, text] of textsOf(value)) assert.ok(Buffer.byteLength(text) <= bytesMax, `${path}: ${text.length}`);
}

/** A long text. A counterexample shows only this. */
const MARK = "<long>";
const waiting = (reason: string) => ({ state: { waiting: { reason, message: MARK } } });
const ended = (exitCode: number) => ({ state: { terminated: { exitCode, reason: "Error", message: MARK } } });
const containers = [
  waiting("ImagePullBackOff"),
  waiting("InvalidImageName"),
  waiting(MARK),
  ended(1),
  ended(137),
  { ...ended(0), lastState: ended(1).state },
].map((one) => ({ name: "pytorch", ready: false, restartCount: 0, ...one }));
const conditions = ["PodScheduled", "Ready", "Unschedulable", "DisruptionTarget"].map((type) => {
  return { type, status: type === "DisruptionTarget" ? "True" : "False", reason: MARK, message: MARK };
});
const podStatuses = fc.record({
  phase: fc.constantFrom("Pending", "Running", "Failed", MARK),
  reason: fc.constantFrom("", "Evicted", MARK),
  message: fc.constantFrom("", MARK),
  conditions: fc.subarray(conditions),
  containerStatuses: fc.array(fc.constantFrom(...containers), { maxLength: 1 }),
});
const refusals: fc.Arbitrary<RefusedCreate | null> = fc.constantFrom(null, "EntityTooLarge", "Forbidden").map((code) =>
  code === null
    ? null
    : {
        admission: 1,
        name: "j-worker-0",
        attempt: 1,
        reason: "FailedCreatePod",
        message: MARK,
        ...(code === "Forbidden" ? { code: null, remedy: "make it" } : { code }),
      },
);

function withLongTexts<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll(JSON.stringify(MARK), JSON.stringify(LONG)));
}

test("law: no step records a text that is longer than a text of others may be", () => {
  const steps = fc.array(
    fc.record({ at: fc.nat(2), status: podStatuses, passMs: fc.constantFrom(0, 1_000, 200_000) }),
    {
      maxLength: 6,
    },
  );
  const limits = fc.constantFrom({}, { backoffLimit: 0 }, { schedulingPolicy: { scheduleTimeoutSeconds: 30 } });
  fc.assert(
    fc.property(limits, steps, refusals, (limit, happenings, refused) => {
      const scene = new Scene(pytorch(limit));
      for (let step = 0; step < 3; step += 1) scene.step();
      for (const { at, status, passMs } of happenings) {
        const pod = scene.cluster.pods()[at];
        if (pod !== undefined) scene.cluster.setPod(pod, withLongTexts(status) as JsonObject);
        scene.nowMs += passMs;
        const seen = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
        const { record } = reconcile(scene.job, seen, scene.nowMs, CONFIG, { refused: withLongTexts(refused) });
        if (record !== null) assertShort({ status: record.status, events: record.events });
        scene.step();
        scene.cluster.collect();
      }
    }),
    { numRuns: 60 },
  );
});

test("no call of a plugin leaves a longer text, whatever it answers or throws", () => {
  const config = { ...CONFIG, kinds: kindsWith(etlEntry) };
  const job = admit(jobOf({ kind: "EtlJob", replicaSpecs: {} }, {}, config.kinds), {
    cluster: null,
    nowMs: START_MS,
    number: 1,
  });
  const started = recorded(job, reconcile(job, [], START_MS, config));
  const plugin = started.status.plugin ?? assert.fail("the plugin is due");
  const call = { stage: "handle", plugin } as const;
  const info = { phase: "RETRYABLE_FAILURE", reason: LONG, failure: { code: LONG, kind: "USER", message: LONG } };
  const outcomes = [
    { kind: "failed", message: LONG },
    { kind: "returned", value: LONG },
    { kind: "returned", value: { phase: LONG } },
    { kind: "returned", value: { info } },
    { kind: "returned", value: { info: { ...info, phase: "PERMANENT_FAILURE" } } },
    { kind: "returned", value: { info: { phase: "RUNNING", reason: LONG } } },
  ] as const;
  for (const outcome of outcomes) {
    const { record } = afterCall(started, call, outcome, { nowMs: START_MS, config });
    assertShort({ status: record?.status, events: record?.events });
  }
});

const gang = { uid: "u", generation: 1 } as Parameters<typeof refuseFor>[0];
const obstacle = { kind: "taint", key: LONG, value: LONG, effect: LONG } as const;
const blocked = { role: "Worker", node: LONG, nodes: 1, placed: 0, never: false, obstacles: [obstacle] };
const words = describeBlocked(blocked as unknown as BlockedPod, {
  cluster: "c",
  gang: "1 pod",
  fit: 0,
  tooLarge: false,
});
const refusal = refuseFor(gang, {
  quotas: [],
  clusters: Array.from({ length: 50 }, (_, at) => {
    return { cluster: `c${at}`, reason: "Cordoned", message: words, flavor: null, need: 1, have: 0, blocked: null };
  }),
  stoppedByQuota: false,
});
const error = new Error(LONG, { cause: new Error(LONG) });

const made: Readonly<Record<string, () => unknown>> = {
  "the words about a node": () => words,
  "the name of an obstacle": () => obstacleName(obstacle as never),
  "a refusal": () => refusal.message,
  "the refusal behind a head": () =>
    withHead(refuse(gang, { reason: "BehindHead", message: "waits" }), refusal).message,
  "a refusal that has changed": () => changed(refusal).message,
  "a condition": () => setCondition([], { type: "Created", status: "True", reason: "R", message: LONG }, 0),
  "what an API server answers": () => failureFromStatus(422, { message: LONG, reason: LONG }),
  "why a cluster cannot be reached": () => [unreachable(error), unreachable(LONG)],
  "what was thrown": () => [thrownText(error), thrownText(LONG)],
};
for (const [name, make] of Object.entries(made)) {
  test(`${name} is no longer than a text of others may be`, () => {
    assertShort(make());
  });
}

test("a log line bounds the message, the stack and the members of an error", () => {
  const shown = shownError(Object.assign(new AggregateError([error], LONG), { detail: LONG, code: "X", of: { LONG } }));
  assertShort(shown, 2 * FOREIGN_BYTES_MAX);
  assert.equal((shown as { code: string }).code, "X");
});
