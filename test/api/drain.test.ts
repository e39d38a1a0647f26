/** What calls get while the server stops. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startFixture } from "./fixture.ts";
import { MemoryStore } from "./memory-store.ts";

const { method } = JobService;
const DRAIN_MS = 15_000;

/** A server with a read that ends when the test says so. Its drain ends at once, or never. */
async function slowServer(t: TestContext, drain: "endsAtOnce" | "neverEnds") {
  const clock = systemClock();
  const sleep = async (ms: number, signal?: AbortSignal) => {
    if (ms < DRAIN_MS) return clock.sleep(ms, signal);
    return clock.sleep(drain === "endsAtOnce" ? 0 : 10 * DRAIN_MS, signal);
  };
  const asked = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const reads = {
    ...new MemoryStore().reads,
    getJob: async () => {
      asked.resolve();
      await finish.promise;
      return null;
    },
  };
  const fixture = await startFixture(t, { reads, clock: { ...clock, sleep } });
  const running = fixture.call(method.getJob, { name: "mnist" });
  await asked.promise;
  return { ...fixture, running, finish: finish.resolve };
}

test("a call that is under way is answered, and no other call or connection is taken meanwhile", async (t) => {
  const { api, call, running, finish } = await slowServer(t, "neverEnds");
  const closed = api.close();
  const late = await call(method.listJobs, {});
  assert.equal(late.error?.code, "UNAVAILABLE");
  finish();
  assert.equal((await running).error?.code, "NOT_FOUND", "it is answered as if the server went on");
  await closed;
});

test("a call that is not answered in time is UNAVAILABLE with a time to repeat it", async (t) => {
  const { api, running, finish, internal } = await slowServer(t, "endsAtOnce");
  await api.close();
  const { error } = await running;
  assert.equal(error?.code, "UNAVAILABLE");
  assert.equal(error?.reason, "SERVER_STOPPING");
  assert.equal(error?.retries, true);
  finish();
  assert.deepEqual(internal, []);
});
