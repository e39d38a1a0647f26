import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { linkedController } from "../../src/runtime/linked-controller.ts";
import { collectGarbage } from "../support/collect-garbage.ts";

function listenersOf(...sources: readonly AbortController[]): readonly number[] {
  return sources.map(({ signal }) => getEventListeners(signal, "abort").length);
}

test("it is aborted with the first of its sources, with that reason, and then listens to none", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const linked = linkedController(first.signal, second.signal);
  assert.deepEqual([linked.signal.aborted, listenersOf(first, second)], [false, [1, 1]]);
  second.abort("second");
  first.abort("first");
  assert.deepEqual([linked.signal.reason, listenersOf(first, second)], ["second", [0, 0]]);
});

test("it is aborted at once if a source is aborted already", () => {
  const source = new AbortController();
  const linked = linkedController(source.signal, AbortSignal.abort("before"));
  assert.deepEqual([linked.signal.reason, listenersOf(source)], ["before", [0]]);
});

test("it may be aborted by itself: its sources are not, and it listens to none", () => {
  const source = new AbortController();
  const linked = linkedController(source.signal);
  linked.abort("itself");
  assert.deepEqual([linked.signal.reason, source.signal.aborted, listenersOf(source)], ["itself", false, [0]]);
});

test("after it is disposed of it listens to no source, and is not aborted", () => {
  const source = new AbortController();
  const linked = linkedController(source.signal);
  linked[Symbol.dispose]();
  assert.deepEqual([linked.signal.aborted, listenersOf(source)], [false, [0]]);
});

test("it is aborted also if its source is aborted and collected before anything listens to it", async () => {
  const followed = async () => {
    const source = new AbortController();
    const { signal } = linkedController(source.signal);
    await turn();
    source.abort();
    return signal;
  };
  const signal = await followed();
  await turn();
  collectGarbage();
  assert.equal(signal.aborted, true);
});
