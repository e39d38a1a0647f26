import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { callController } from "../../src/api/rpc/call.ts";
import { statusMessageOf, toStatus } from "../../src/api/rpc/rpc-error.ts";

/** What a handler throws that looks whether its caller is still there. */
function thrownAfterLeave(isGone: boolean): unknown {
  const call = Object.assign(new EventEmitter(), { cancelled: isGone });
  const { signal } = callController(call as never);
  if (!isGone) call.emit("cancelled");
  try {
    signal.throwIfAborted();
  } catch (cause) {
    return cause;
  }
  return assert.fail("the signal is aborted");
}

for (const [name, isGone] of [
  ["during the call", false],
  ["before its handler begins", true],
] as const) {
  test(`a handler that stops because its caller has left ${name} is no internal error`, () => {
    const cause = thrownAfterLeave(isGone);
    const internal: unknown[] = [];
    const note = (_reference: string, error: unknown) => void internal.push(error);
    const codes = [toStatus(cause, note).code, statusMessageOf(cause, note).code];
    assert.deepEqual([codes, internal], [[status.CANCELLED, status.CANCELLED], []]);
  });
}

test("an abort that is not the call's own is an internal error", () => {
  const internal: unknown[] = [];
  const cause = new DOMException("This operation was aborted", "AbortError");
  assert.equal(toStatus(cause, (_reference, error) => void internal.push(error)).code, status.INTERNAL);
  assert.deepEqual(internal, [cause]);
});
