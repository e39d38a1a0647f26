/** How long refusals of a caller are held back, on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalPace } from "../../src/access/refusal-pace.ts";

function paced() {
  const of = { nowMs: 1_000 };
  const pace = new RefusalPace({ monotonicMs: () => of.nowMs });
  return { of, refuse: (subject: string) => pace.heldMs(subject) };
}

test("a caller that is seldom refused hears of it at once", () => {
  const { of, refuse } = paced();
  for (let refused = 0; refused < 1_000; refused++) {
    assert.equal(refuse("a"), 0);
    of.nowMs += 10;
  }
  of.nowMs += 1_000;
  for (let refused = 0; refused < 100; refused++) assert.equal(refuse("a"), 0);
  assert.equal(refuse("a"), 10);
});

test("a caller that calls on and on is refused a hundred times a second, and later than five seconds never", () => {
  const { of, refuse } = paced();
  const held = Array.from({ length: 2_000 }, () => refuse("a"));
  assert.deepEqual(held.slice(100, 103), [10, 20, 30]);
  assert.equal(Math.max(...held), 5_000);
  const beyond = held.slice(600);
  assert.ok(beyond.every((ms) => ms >= 2_500));
  for (let fromMs = 2_500; fromMs < 5_000; fromMs += 100) {
    const together = beyond.filter((ms) => ms >= fromMs && ms < fromMs + 100).length;
    assert.ok(together <= 60, `${together} of ${beyond.length} are answered within 100 ms`);
  }
  assert.equal(refuse("b"), 0, "another caller is not concerned");
  of.nowMs += 5_000;
  assert.equal(refuse("a"), 10, "once all are answered the pace goes on");
  of.nowMs += 6_000;
  assert.equal(refuse("a"), 0);
});

test("a refusal is held back for whole milliseconds, whatever the clock shows", () => {
  const { of, refuse } = paced();
  for (let refused = 0; refused < 200; refused++) {
    assert.ok(Number.isInteger(refuse("a")));
    of.nowMs += 0.37;
  }
});

test("a crowd of callers is forgotten", () => {
  const { refuse } = paced();
  for (let subject = 0; subject < 30_000; subject++) assert.equal(refuse(String(subject)), 0);
});
