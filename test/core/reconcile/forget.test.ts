import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import type { ObjectView, ObservedCluster } from "../../../src/core/reconcile/observed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { pytorch } from "./scene.ts";
import { admit, CONFIG, jobOf, START_MS } from "./world.ts";

const NOW_MS = START_MS + 60_000;

/** A job that has ended and is deleted, and of which nothing is left, unless the parts say otherwise. */
function deleted(parts: { readonly job?: Partial<Job>; readonly admission?: Partial<Admission> } = {}): Job {
  const admitted = admit(jobOf(pytorch()), { cluster: "c1", nowMs: START_MS, number: 1 });
  const ended = { state: "ended" as const, tokensReleasedMs: START_MS, goneMs: START_MS, ...parts.admission };
  return {
    ...admitted,
    deleteTimeMs: START_MS,
    status: { ...admitted.status, phase: "SUCCEEDED", completionTimeMs: START_MS },
    admissions: admitted.admissions.map((one) => ({ ...one, ...ended })),
    ...parts.job,
  };
}

const empty = (cluster: string): ObservedCluster => ({ cluster, pods: [], services: [], configMaps: [] });
const service: ObjectView = { name: "s", uid: "s", labels: {}, controllerUid: null, admission: 1, deleting: true };

const cases: Record<string, { job: Job; seen?: readonly ObservedCluster[]; forget: boolean }> = {
  "nothing of it is left": { job: deleted(), forget: true },
  "it never had an admission": { job: deleted({ job: { admissions: [] } }), forget: true },
  "it is not deleted": { job: deleted({ job: { deleteTimeMs: null } }), forget: false },
  "it has not ended, so that its end is recorded first": {
    job: deleted({ job: { status: jobOf(pytorch()).status } }),
    forget: false,
  },
  "its tokens are held, in a cluster that is not seen": {
    job: deleted({ admission: { cluster: "c9", tokensReleasedMs: null } }),
    forget: false,
  },
  "its objects are not known to be gone, in a cluster that is not seen": {
    job: deleted({ admission: { cluster: "c9", goneMs: null } }),
    forget: false,
  },
  "an object of it is being deleted in another cluster": {
    job: deleted(),
    seen: [empty("c1"), { ...empty("c2"), services: [service] }],
    forget: false,
  },
};
for (const [name, { job, seen = [empty("c1")], forget }] of Object.entries(cases)) {
  test(`the record of a job is ${forget ? "" : "not "}removed if ${name}`, () => {
    assert.equal(reconcile(job, seen, NOW_MS, CONFIG).forget, forget);
  });
}
