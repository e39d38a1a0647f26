import assert from "node:assert/strict";
import { test } from "node:test";
import { JobMemory } from "../../src/worker/job-memory.ts";

test("the wait after failures in a row doubles up to half a minute, and a success resets it", () => {
  const memory = new JobMemory();
  const delays = Array.from({ length: 7 }, () => memory.failed("j", 0, { progress: false }));
  assert.deepEqual(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  assert.equal(memory.holdsBack("j", 29_999), true);
  assert.equal(memory.holdsBack("j", 30_000), false);
  memory.succeeded("j");
  assert.equal(memory.holdsBack("j", 0), false);
  assert.equal(memory.size, 0, "nothing is kept of a job that is well");
});

test("a failure beside a success waits like a first failure", () => {
  const memory = new JobMemory();
  for (let times = 0; times < 5; times++) memory.failed("j", 0, { progress: false });
  assert.equal(memory.failed("j", 0, { progress: true }), 1_000);
});

test("the same warning is stored once a minute, and other warnings beside it", () => {
  const memory = new JobMemory();
  assert.equal(memory.mayNote("j", "no room", 0), true);
  assert.equal(memory.mayNote("j", "no room", 59_999), false);
  assert.equal(memory.mayNote("j", "no quota", 59_999), true);
  assert.equal(memory.mayNote("k", "no room", 59_999), true);
  assert.equal(memory.mayNote("j", "no room", 60_000), true);
});

const NOW = 1_000;
const rechecks = {
  "an unknown time, and none wanted": { recorded: null, wanted: null, write: false },
  "an unknown time, and one wanted": { recorded: null, wanted: 5_000, write: true },
  "an earlier time in the future": { recorded: 4_000, wanted: 5_000, write: false },
  "a time in the future, and none wanted": { recorded: 4_000, wanted: null, write: false },
  "a later time than wanted": { recorded: 6_000, wanted: 5_000, write: true },
  "the same time": { recorded: 5_000, wanted: 5_000, write: false },
  "a time in the past, and a later one wanted": { recorded: 900, wanted: 5_000, write: true },
  "a time in the past, and none wanted": { recorded: 900, wanted: null, write: true },
};

for (const [name, { recorded, wanted, write }] of Object.entries(rechecks)) {
  test(`${name}: ${write ? "written" : "left alone"}`, () => {
    const memory = new JobMemory();
    memory.recorded("j", recorded);
    assert.equal(memory.mustWriteRecheck("j", wanted, NOW), write);
  });
}
