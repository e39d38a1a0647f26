import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import { applyAdmission, applyRefusal } from "../../../../src/core/plan/apply/apply-plan.ts";
import { refuse } from "../../../../src/core/plan/explain/refuse.ts";
import type { PlannedAdmission } from "../../../../src/core/plan/model/plan-types.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { admission, job, NOW } from "../plan-world.ts";

const AT = { kinds: OWN_KINDS, nowMs: NOW };

const roles = { Worker: { replicas: 2, gpus: 8 } };
const flavors = { "nvidia.com/gpu": "gpu/h100" };

function planned(parts: Partial<PlannedAdmission>): PlannedAdmission {
  return {
    kind: "admit",
    jobUid: "uid-a",
    askHash: "",
    generation: 1,
    admission: 2,
    cluster: "east",
    admissionCounter: 7,
    members: { Worker: 2 },
    flavors,
    flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
    allocations: [],
    ...parts,
  };
}

/** Left by an older admission that has gone. */
const old = admission({ cluster: "west", state: "undone", tokensReleasedMs: 5, goneMs: 6 });

test("an admission joins the job's others, live from now on, and the job no longer waits", () => {
  const waiting = { reason: "NoCapacity", message: "m", sinceMs: 1 };
  const made = job({ name: "a", roles, admissions: [old] });
  const before = { ...made, status: { ...made.status, waiting } };
  const applied = applyAdmission(before, planned({}), AT);
  assert.equal(applied?.before, before);
  assert.deepEqual(applied.admission, {
    number: 2,
    cluster: "east",
    admitTimeMs: NOW,
    members: { Worker: 2 },
    flavors,
    flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: NOW,
  });
  assert.deepEqual(applied.after.admissions, [old, applied.admission]);
  assert.deepEqual(
    [applied.after.version, applied.after.status.phase, applied.after.status.waiting],
    [4, "ADMITTED", null],
  );
  assert.equal(applied.event.reason, "PyTorchJobAdmitted");
});

test("a growth changes the members of the live admission alone", () => {
  const live = admission({ cluster: "east", number: 2, members: { Worker: 1 }, flavors });
  const before = job({ name: "a", roles, admissions: [old, live] });
  const applied = applyAdmission(before, planned({ kind: "grow" }), AT);
  const grown = { ...live, members: { Worker: 2 } };
  assert.deepEqual(applied, {
    before,
    after: { ...before, admissions: [old, grown], version: 4 },
    admission: grown,
    event: {
      type: "Normal",
      reason: "PyTorchJobGrown",
      message: "PyTorchJob a has grown to 2 members in cluster east.",
    },
  });
});

const waits = job({ name: "a", roles });
const runs = (parts: Partial<Parameters<typeof admission>[0]>) =>
  job({ name: "a", roles, admissions: [admission({ cluster: "east", number: 2, ...parts })] });

const late: Record<string, { job: Job; kind: PlannedAdmission["kind"] }> = {
  "an admission of a job that is admitted already": { job: runs({}), kind: "admit" },
  "an admission of a job that was suspended": {
    job: { ...waits, spec: { ...waits.spec, runPolicy: { ...waits.spec.runPolicy, suspend: true } } },
    kind: "admit",
  },
  "an admission while pods of an older one may run": {
    job: job({ name: "a", roles, admissions: [{ ...old, tokensReleasedMs: null }] }),
    kind: "admit",
  },
  "a growth of a job without admissions": { job: waits, kind: "grow" },
  "a growth of another admission": { job: runs({ number: 3 }), kind: "grow" },
  "a growth of an admission that was undone": { job: runs({ state: "undone" }), kind: "grow" },
  "a growth in another cluster": { job: runs({ cluster: "west" }), kind: "grow" },
};
for (const [name, { job: now, kind }] of Object.entries(late)) {
  test(`${name} is too late`, () => assert.equal(applyAdmission(now, planned({ kind }), AT), null));
}

test("a refusal says in the job's status why it waits", () => {
  const applied = applyRefusal(
    waits,
    refuse({ uid: waits.uid, generation: 1 }, { reason: "NoCapacity", message: "m" }),
    NOW,
  );
  const status = { ...waits.status, waiting: { reason: "NoCapacity", message: "m", sinceMs: NOW } };
  assert.deepEqual(applied, {
    before: waits,
    after: { ...waits, status, version: 4 },
    event: { type: "Normal", reason: "NoCapacity", message: "m" },
  });
});
