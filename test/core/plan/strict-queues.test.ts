import assert from "node:assert/strict";
import { test } from "node:test";
import { queue } from "./plan-world.ts";
import { SmallFleet } from "./small-fleet.ts";

const ENOUGH = { h100: 100 };

/** Others wait for quota meanwhile: whether few or most gangs wait for the room, it is the same. */
for (const others of [0, 20]) {
  test(`a gang gets room that came while it stood behind its queue's head, beside ${others} others`, () => {
    const strict = queue("strict", ENOUGH, { strategy: "STRICT_FIFO" });
    const fleet = new SmallFleet([strict, queue("b", ENOUGH), queue("full", { h100: 1 })], [8], true);
    fleet.submit({ name: "runs", queue: "b", gpus: 8 });
    for (let at = 0; at < others; at++) fleet.submit({ name: `other-${at}`, queue: "full", gpus: 2 });
    fleet.step();
    fleet.submit({ name: "small", queue: "strict", gpus: 2 });
    fleet.step();
    assert.equal(fleet.causeOf("uid-small"), "lacks");
    fleet.submit({ name: "huge", queue: "strict", gpus: 16, priority: 100 });
    fleet.step();
    fleet.end("uid-runs");
    assert.deepEqual(fleet.step().admissions, []);
    assert.equal(fleet.causeOf("uid-small"), "behind uid-huge");
    fleet.end("uid-huge");
    const admitted = fleet.step().admissions.map(({ jobUid }) => jobUid);
    assert.deepEqual(admitted, ["uid-small"]);
  });
}
