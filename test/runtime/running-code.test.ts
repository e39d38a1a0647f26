import assert from "node:assert/strict";
import { test } from "node:test";
import { RunningCode, readCode, sharedCode } from "../../src/runtime/running-code.ts";
import { SlowDown } from "../../src/runtime/slow-down.ts";

test("another thread sees which code runs, and that none runs before, between and after", () => {
  const shared = sharedCode();
  const running = new RunningCode(shared);
  const seen = () => readCode(shared) ?? assert.fail("nothing changes meanwhile");
  assert.equal(seen().sequence, 0);
  const first = running.run("first", seen);
  assert.equal(seen().sequence, 0);
  const second = running.run("second, ä", seen);
  assert.deepEqual([first.text, second.text, seen().text], ["first", "second, ä", ""]);
  assert.notEqual(first.sequence, second.sequence);
});

test("a section inside of another one is part of it", () => {
  const shared = sharedCode();
  const running = new RunningCode(shared);
  running.run("outer", () => {
    const outer = readCode(shared);
    assert.deepEqual(
      running.run("inner", () => readCode(shared)),
      outer,
    );
    assert.deepEqual(readCode(shared), outer);
  });
});

test("code that throws has ended", () => {
  const shared = sharedCode();
  const running = new RunningCode(shared);
  assert.throws(() => running.run("fails", () => assert.fail("it fails")));
  assert.equal(readCode(shared)?.sequence, 0);
});

test("a text that is too long is cut", () => {
  const shared = sharedCode();
  const { text = "" } = new RunningCode(shared).run("x".repeat(1_000), () => readCode(shared)) ?? {};
  assert.match(text, /^x{200,400}$/);
});

test("a part that blocks for t waits 10 t, and one that does not is not slowed", () => {
  const slow = new SlowDown();
  slow.ran(499, 0);
  assert.equal(slow.waitMs(0), 0);
  slow.ran(500, 1_000);
  assert.deepEqual([slow.waitMs(1_000), slow.waitMs(5_000), slow.waitMs(6_000)], [5_000, 1_000, 0]);
});
