import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { podView } from "../../src/core/pods/read/pod-view.ts";
import type { Observed } from "../../src/core/reconcile/observed.ts";
import { SeenTimes } from "../../src/worker/seen-times.ts";

const NOW_MS = 1_750_000_000_000;
const HOUR_MS = 3_600_000;

/** A pod of admission 1, as its cluster shows it with a clock that is ahead by so much. */
function observedAt(atMs: number, uid = "pod"): Observed {
  const at = new Date(atMs).toISOString();
  const conditions = [{ type: "PodScheduled", status: "False", lastTransitionTime: at }];
  const pod = podView({
    metadata: { name: uid, uid, creationTimestamp: at, labels: { "gangway.dev/admission": "1" } },
    spec: { containers: [] },
    status: { phase: "Pending", conditions },
  });
  return [{ cluster: "east", pods: [{ ...pod, admission: 1 }], services: [], configMaps: [] }];
}

/** A job that was admitted at that time. */
function admittedAt(admitTimeMs: number): Pick<Job, "admissions"> {
  const admission = { number: 1, cluster: "east", admitTimeMs, members: {}, flavors: {}, flavorLabels: {} };
  return {
    admissions: [{ ...admission, state: "live", tokensReleasedMs: null, goneMs: null, belowMinSinceMs: null }],
  };
}

function timesOf(observed: Observed): readonly unknown[] {
  return observed.flatMap(({ pods }) => pods.flatMap((pod) => [pod.createTimeMs, pod.conditions[0]?.sinceMs]));
}

test("a stamp of a cluster whose clock is ahead counts from when it was first seen", () => {
  const seen = new SeenTimes();
  const job = admittedAt(NOW_MS - 1_000);
  const observed = observedAt(NOW_MS + HOUR_MS);
  for (const laterMs of [0, 5_000, HOUR_MS / 2, 2 * HOUR_MS]) {
    assert.deepEqual(timesOf(seen.bound(observed, job, NOW_MS + laterMs)), [NOW_MS, NOW_MS], `after ${laterMs} ms`);
  }
});

test("no stamp of a cluster whose clock is behind is from before the admission", () => {
  const admitMs = NOW_MS - 60_000;
  const read = new SeenTimes().bound(observedAt(NOW_MS - HOUR_MS), admittedAt(admitMs), NOW_MS);
  assert.deepEqual(timesOf(read), [admitMs, admitMs]);
});

test("right stamps stay as they are, and nothing is remembered of them", () => {
  const seen = new SeenTimes();
  const observed = observedAt(NOW_MS - 5_000);
  assert.equal(seen.bound(observed, admittedAt(NOW_MS - 60_000), NOW_MS), observed);
  assert.equal(seen.size, 0);
});

test("the stamps that are remembered are bounded", () => {
  const seen = new SeenTimes();
  for (let pod = 0; pod < 10_100; pod += 1) {
    seen.bound(observedAt(NOW_MS + HOUR_MS, `pod-${pod}`), admittedAt(NOW_MS), NOW_MS);
  }
  assert.equal(seen.size, 10_000);
});
