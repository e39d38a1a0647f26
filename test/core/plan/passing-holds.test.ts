import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { queue } from "./plan-world.ts";
import { SmallFleet, type SmallGang } from "./small-fleet.ts";

const MINUTE = 60_000;

/** Two nodes with 8 GPUs each, in a queue with so much quota. `wide` has a reservation for both, and holds one. */
function reserved(quota: number) {
  const fleet = new SmallFleet([queue("q", { h100: quota }, { policy: DEFAULT_POLICY })], [8, 8], true);
  for (const name of ["a", "b"]) {
    fleet.submit({ name, queue: "q", gpus: 8, maxRuntimeMs: 30 * MINUTE });
    fleet.step();
  }
  fleet.submit({ name: "wide", queue: "q", gpus: 8, pods: 2 });
  fleet.nowMs += 10 * MINUTE;
  fleet.step();
  assert.equal(fleet.reserving().length, 1);
  fleet.end("uid-b");
  fleet.hold("uid-wide", 8);
  fleet.step();
  return fleet;
}

const passing: Record<string, Partial<SmallGang>> = {
  "that agrees to be taken back": { backfill: true },
  "that will have ended before": { maxRuntimeMs: MINUTE },
  "of a higher priority": { priority: 50 },
};
for (const [name, of] of Object.entries(passing)) {
  test(`a gang ${name} takes over what it needs of the tokens that a reservation holds`, () => {
    const fleet = reserved(16);
    fleet.submit({ name: "small", queue: "q", gpus: 1, ...of });
    const { preemptions, admissions, more } = fleet.step();
    assert.deepEqual(
      preemptions.map(({ planned, victims, takesOver }) => [planned.jobUid, victims, takesOver]),
      [["uid-small", [], [{ jobUid: "uid-wide", admission: 1 }]]],
    );
    assert.deepEqual([admissions, more], [[], true], "it boards in the next round, which comes at once");
    assert.deepEqual([fleet.heldBy("uid-wide"), fleet.heldBy("uid-small")], [7, 1]);
    assert.deepEqual(
      fleet.step().admissions.map(({ jobUid }) => jobUid),
      ["uid-small"],
    );
    assert.equal(fleet.used("q"), 16);
    assert.deepEqual(
      fleet.reserving().map(({ uid }) => uid),
      ["uid-wide"],
    );
  });
}

test("a gang that passes a reservation is admitted at once if the quota has tokens for it beside those on hold", () => {
  const fleet = reserved(17);
  fleet.submit({ name: "small", queue: "q", gpus: 1, backfill: true });
  const { preemptions, admissions } = fleet.step();
  assert.deepEqual([preemptions.length, admissions.map(({ jobUid }) => jobUid)], [0, ["uid-small"]]);
  assert.equal(fleet.heldBy("uid-wide"), 8);
});

test("several gangs take over from one reservation in one round, and it boards after them", () => {
  const fleet = reserved(16);
  for (const name of ["s1", "s2", "s3"]) fleet.submit({ name, queue: "q", gpus: 2, maxRuntimeMs: MINUTE });
  assert.equal(fleet.step().preemptions.length, 3);
  assert.equal(fleet.heldBy("uid-wide"), 2);
  assert.equal(fleet.step().admissions.length, 3);
  assert.equal(fleet.used("q"), 16);
  for (const uid of ["uid-s1", "uid-s2", "uid-s3", "uid-a"]) fleet.end(uid);
  assert.deepEqual(
    fleet.step().admissions.map(({ jobUid }) => jobUid),
    ["uid-wide"],
  );
});
