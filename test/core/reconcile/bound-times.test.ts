import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../src/core/job/job.ts";
import { boundTimes } from "../../../src/core/reconcile/bound-times.ts";
import { pytorch, Scene } from "./scene.ts";

const HOUR_MS = 3_600_000;

/** All times of a record by their path. */
function timesOf(value: unknown, path = ""): readonly (readonly [string, number])[] {
  if (typeof value === "number") return /Ms\b/.test(path) ? [[path, value]] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => timesOf(member, `${path}.${name}`));
}

/** The same record with each time moved, as a clock has recorded it that was ahead. */
function moved<T>(value: T, ms: number, path = ""): T {
  if (typeof value === "number") return (/Ms\b/.test(path) ? value + ms : value) as T;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => moved(one, ms, path)) as T;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, moved(one, ms, `${path}.${name}`)])) as T;
}

function recordAhead(job: Job, ms: number): Job {
  return { ...job, status: moved(job.status, ms), admissions: moved(job.admissions, ms) };
}

function failing(): Scene {
  const scene = new Scene(pytorch()).start();
  scene.set("j-worker-0", "Failed", { exitCode: 1 });
  scene.step();
  return scene;
}

test("no time of a record stays in the future, but for waits, which end after their longest", () => {
  const ahead = fc.integer({ min: 0, max: 10_000 * HOUR_MS });
  fc.assert(
    fc.property(ahead, (ms) => {
      const scene = failing();
      const backoff = { undone: 1, notBeforeMs: scene.nowMs + 20_000 };
      const job = { ...scene.job, status: { ...scene.job.status, resizedMs: scene.nowMs, backoff } };
      const bound = boundTimes(recordAhead(job, ms), scene.nowMs);
      for (const [path, atMs] of timesOf([bound.status, bound.admissions])) {
        const mostMs = path.includes("notBeforeMs") ? 600_000 : 0;
        assert.ok(atMs <= scene.nowMs + mostMs + 1_000, `${path} is ${atMs - scene.nowMs} ms ahead`);
      }
      assert.equal(boundTimes(bound, scene.nowMs), bound, "what is bound stays as it is");
    }),
  );
});

test("a record without times in the future is not changed", () => {
  const { job, nowMs } = failing();
  assert.equal(boundTimes(job, nowMs), job);
});

test("a deadline holds at most as long as it says, from when a start in the future is first seen", () => {
  const scene = new Scene(pytorch({ activeDeadlineSeconds: 100 })).start();
  scene.job = recordAhead(scene.job, HOUR_MS);
  scene.step();
  assert.equal(scene.job.status.startTimeMs, scene.nowMs);
  scene.nowMs += 99_000;
  scene.step();
  assert.equal(scene.job.status.phase, "RUNNING");
  scene.nowMs += 1_000;
  scene.step();
  assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
});

test("a backoff in the far future ends after the longest backoff", () => {
  const scene = failing();
  scene.cluster.collect();
  scene.job = recordAhead(scene.job, HOUR_MS);
  scene.step();
  assert.deepEqual(scene.job.status.attempts.notBeforeMs, { "Worker/0": scene.nowMs + 360_000 });
  scene.nowMs += 180_000;
  scene.step();
  assert.deepEqual(scene.job.status.attempts.notBeforeMs["Worker/0"], scene.nowMs + 180_000, "it is not moved again");
});
