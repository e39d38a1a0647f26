/** Streams of jobs go on with a new token, and end if there is none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { streamJobs } from "../../src/cli/jobs/stream-jobs.ts";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import type { GangwayClient } from "../../src/cli/rpc/client.ts";
import { WatchJobsResponse_Type as Type } from "../../src/gen/gangway/v1/job_service_pb.ts";

const expired = new CallError(STATUS.UNAUTHENTICATED, "the token has expired");
const listed = { type: Type.BOOKMARK, cursor: "c1" };

/** Streams that yield these messages, each of which then ends with the error. */
async function eventsOf(streams: readonly (readonly object[])[]) {
  const cursors: string[] = [];
  async function* stream(_method: unknown, { cursor }: { readonly cursor: string }) {
    cursors.push(cursor);
    const next = streams[cursors.length - 1];
    if (next === undefined) throw new Error("it was called once more");
    yield* next;
    throw expired;
  }
  const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => undefined };
  const never = new AbortController().signal;
  const run = { client: { stream } as unknown as GangwayClient, deps: { clock, signal: never } };
  const kinds: string[] = [];
  try {
    const events = streamJobs(run, { filter: {}, retriesFirstCall: false, signal: never });
    for await (const { kind } of events) kinds.push(kind);
  } catch (error) {
    assert.equal(error, expired);
  }
  return { kinds, cursors };
}

test("a stream whose token has expired continues from its cursor with the next token", async () => {
  assert.deepEqual(await eventsOf([[listed], [listed], []]), {
    kinds: ["listed", "listed"],
    cursors: ["", "c1", "c1"],
  });
});

test("a token that does not count for the first call is not tried again", async () => {
  assert.deepEqual(await eventsOf([[]]), { kinds: [], cursors: [""] });
});
