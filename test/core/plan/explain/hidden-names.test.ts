/** Why a gang waits, without the names of others: all words that name somebody, and what stays of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reportedWithoutNames, withoutNames } from "../../../../src/core/plan/explain/hidden-names.ts";
import { refuse, refuseFor, withHead } from "../../../../src/core/plan/explain/refuse.ts";
import {
  overtakenMessage,
  preemptedMessage,
  preemptingMessage,
  reservedForMessage,
  reservingMessage,
  takingOverMessage,
} from "../../../../src/core/plan/model/preemption-messages.ts";

const mayName = (holder: string) => holder.startsWith("mine/");
const gang = { uid: "u", generation: 1 };
const quota = (heldBy: readonly string[], reason = "QuotaExhausted") => ({
  queue: "nlp",
  flavor: "gpu/h100",
  scope: { kind: "pool", pool: "gpu/h100" } as const,
  reason,
  need: 4,
  used: 8,
  limit: 8,
  reserved: 2,
  heldBy,
});
const refused = (...quotas: readonly ReturnType<typeof quota>[]) =>
  refuseFor(gang as Parameters<typeof refuseFor>[0], { quotas, clusters: [], stoppedByQuota: true });

test("holders that are hidden are left out of the list and of the words, and the numbers stay", () => {
  const said = reportedWithoutNames(refused(quota(["mine/a", "other/b", "caller bob, (carl)"])), mayName);
  assert.equal(
    said.message,
    "needs 4 of gpu/h100; pool gpu/h100 uses 8 of 8 (held by mine/a, another job, another caller)",
  );
  assert.deepEqual(said.quotas[0]?.heldBy, ["mine/a"]);
  const kept = reportedWithoutNames(refused(quota(["other/b"], "Reserved")), mayName);
  assert.match(kept.message, /and keeps 2 for another job$/);
});

const head = (message: string) =>
  withHead(refuse(gang, { reason: "BehindHead", message: "waits behind other/b, the head of the strict queue nlp" }), {
    ...refused(),
    message,
  }).message;
const recorded: Readonly<Record<string, { message: string; shown: string }>> = {
  "a head": {
    message: head("it has no room"),
    shown: "waits behind another job, the head of the strict queue nlp: it has no room",
  },
  "a head that may be named": {
    message: "waits behind mine/b, the head of the strict queue nlp",
    shown: "waits behind mine/b, the head of the strict queue nlp",
  },
  "holders of a record, with a caller of any name": {
    message: refused(quota(["mine/a", "caller x) (held by y"])).message,
    shown: "needs 4 of gpu/h100; pool gpu/h100 uses 8 of 8 (held by others)",
  },
  "a reservation of a record": {
    message: refused(quota(["other/b"], "Reserved")).message,
    shown: "needs 4 of gpu/h100; pool gpu/h100 uses 8 of 8, and keeps 2 for others",
  },
  "a reservation without a name": {
    message: refused(quota([], "Reserved")).message,
    shown: "needs 4 of gpu/h100; pool gpu/h100 uses 8 of 8, and keeps 2 for the first of its waiting line",
  },
  "the nominee": {
    message: `Admission 1 to c1 is undone: ${preemptedMessage("other/b", "InClusterQueue")}.`,
    shown: "Admission 1 to c1 is undone: it was preempted for another job, which comes before it in the same queue.",
  },
  "the victims": {
    message: preemptingMessage("c1", ["mine/a", "other/b", "other/c"]),
    shown: preemptingMessage("c1", ["mine/a", "another job", "another job"]),
  },
  "the jobs that a reservation waits for": {
    message: reservingMessage("c1", ["other/b", "mine/a", "other/c"], 0),
    shown: reservingMessage("c1", ["another job", "mine/a", "another job"], 0),
  },
  "many jobs that a reservation waits for": {
    message: reservingMessage("c1", Array(7).fill("other/b"), Number.POSITIVE_INFINITY),
    shown: reservingMessage("c1", Array(7).fill("another job"), Number.POSITIVE_INFINITY),
  },
  "the job that has a reservation": {
    message: reservedForMessage("other/b", "c1", 0),
    shown: reservedForMessage("another job", "c1", 0),
  },
  "the jobs whose reservations give tokens": {
    message: takingOverMessage("c1", ["mine/a", "other/b"]),
    shown: takingOverMessage("c1", ["mine/a", "another job"]),
  },
  "the nominees that a job passes, and their victims": {
    message: preemptingMessage("c1", ["other/c"], ["mine/a", "other/b"]),
    shown: preemptingMessage("c1", ["another job"], ["mine/a", "another job"]),
  },
  "the job that takes a nominee's place": {
    message: `it is no longer nominated for cluster c1; ${overtakenMessage("other/b")}`,
    shown: `it is no longer nominated for cluster c1; ${overtakenMessage("another job")}`,
  },
};
for (const [name, { message, shown }] of Object.entries(recorded)) {
  test(`recorded words are shown without ${name}`, () => {
    assert.notEqual(message, "");
    assert.equal(withoutNames(message, mayName), shown);
    assert.equal(withoutNames(shown, mayName), shown, "and stay so");
  });
}
