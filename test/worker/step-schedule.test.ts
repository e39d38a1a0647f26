import assert from "node:assert/strict";
import { test } from "node:test";
import { bucketOf } from "../../src/core/job/bucket.ts";
import { StepSchedule } from "../../src/worker/step-schedule.ts";

function started() {
  const clock = { nowMs: 1_000 };
  return { clock, schedule: new StepSchedule({ monotonicMs: () => clock.nowMs }) };
}

/** Steps a job to an end. */
function stepped(schedule: StepSchedule, jobUid: string, end: (schedule: StepSchedule) => void = () => undefined) {
  schedule.begin(jobUid);
  end(schedule);
  schedule.end(jobUid);
}

test("a step has waited since the first event that asked for it", () => {
  const { clock, schedule } = started();
  schedule.wake("a");
  clock.nowMs += 70;
  schedule.wake("a");
  clock.nowMs += 30;
  assert.deepEqual([schedule.takeWoken(), schedule.takeWoken()], [["a"], []]);
  assert.equal(schedule.begin("a"), 100);
  assert.equal(schedule.begin("b"), 0);
});

test("an event while a step runs lets the job be looked at again, although the step has left nothing to do", () => {
  const { schedule } = started();
  stepped(schedule, "a", () => schedule.settle("a"));
  assert.equal(schedule.isSettled("a"), true);
  stepped(schedule, "a", () => {
    schedule.wake("a");
    schedule.settle("a");
  });
  assert.equal(schedule.isSettled("a"), false);
});

test("a due job that is queued already moves its time itself", () => {
  const { schedule } = started();
  schedule.due("a", () => false);
  assert.deepEqual([schedule.takeDue("a"), schedule.size], [false, 0]);
  schedule.due("a", () => true);
  assert.deepEqual([schedule.takeDue("a"), schedule.takeDue("a")], [true, false]);
});

test("a step that could not run is tried again after waits that double, and not before", () => {
  const { clock, schedule } = started();
  const waits: number[] = [];
  for (let tries = 0; tries < 6; tries += 1) {
    stepped(schedule, "a", () => schedule.tryLater("a"));
    assert.equal(schedule.isHeld("a"), true);
    const fromMs = clock.nowMs;
    while (schedule.takePlanned().length === 0) clock.nowMs += 100;
    waits.push(clock.nowMs - fromMs);
  }
  assert.deepEqual(waits, [200, 400, 800, 1_600, 2_000, 2_000]);
  stepped(schedule, "a", () => schedule.stepAgain("a", 500));
  assert.deepEqual([schedule.isHeld("a"), schedule.planned, schedule.takePlanned()], [false, 1, []]);
  clock.nowMs += 500;
  assert.deepEqual([schedule.takePlanned(), schedule.planned, schedule.size], [["a"], 0, 0]);
});

test("a bucket is busy while a step of one of its jobs runs, also once the job belongs to another worker", () => {
  const { schedule } = started();
  schedule.wake("a");
  schedule.begin("a");
  schedule.tryLater("a");
  schedule.wake("b");
  schedule.forgetWhere(() => true);
  assert.deepEqual([schedule.isRunning("a"), schedule.isBusy(bucketOf("a"))], [true, true]);
  assert.deepEqual([schedule.takeWoken(), schedule.takePlanned(), schedule.size], [[], [], 1]);
  schedule.end("a");
  assert.deepEqual([schedule.isBusy(bucketOf("a")), schedule.size], [false, 0]);
});

test("of a job with nothing left to do it is forgotten that there is nothing once its objects are gone", () => {
  const { schedule } = started();
  for (const jobUid of ["a", "b"]) stepped(schedule, jobUid, () => schedule.settle(jobUid));
  schedule.keepSettled(new Set(["a"]));
  assert.deepEqual([schedule.isSettled("a"), schedule.isSettled("b"), schedule.size], [true, false, 1]);
});
