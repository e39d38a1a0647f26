/** The places of streams that follow logs: how callers share them, and what ends when another asks for its share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceError } from "@grpc/grpc-js";
import fc from "fast-check";
import { FollowerBound } from "../../src/api/job/follower-bound.ts";
import type { JobLogs } from "../../src/api/ports.ts";
import { RpcError } from "../../src/api/rpc/rpc-error.ts";
import { FOLLOWED_LOGS_MAX } from "../../src/core/job/container-log.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { anonymous } from "../support/anonymous.ts";
import { waitUntil } from "../support/bounded.ts";
import { knownCallers } from "../support/known-callers.ts";
import { callsOf, readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { withToken } from "./with-token.ts";

const { createJob, streamJobLogs } = JobService.method;

const step = fc.oneof(
  fc.record({ caller: fc.constantFrom("a", "b", "c"), logs: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ leaves: fc.nat() }),
);

test("a caller gets its even share whatever others hold, and none loses more than it has beyond its own", () => {
  const history = (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
    const bound = new FollowerBound();
    let open: { readonly caller: string; readonly logs: number; readonly leaving: AbortController }[] = [];
    const heldBy = (caller: string) => open.reduce((sum, one) => sum + (one.caller === caller ? one.logs : 0), 0);
    for (const one of steps) {
      if ("leaves" in one) {
        const [left] = open.length === 0 ? [] : open.splice(one.leaves % open.length, 1);
        left?.leaving.abort();
        continue;
      }
      const { caller, logs } = one;
      const callers = new Set([caller, ...open.map((other) => other.caller)]);
      const share = FOLLOWED_LOGS_MAX / callers.size;
      const before = new Map([...callers].map((name) => [name, heldBy(name)]));
      const total = open.reduce((sum, other) => sum + other.logs, 0);
      const fits = total + logs <= FOLLOWED_LOGS_MAX;
      const follower = { caller, logs, leaving: new AbortController() };
      const ended: (typeof follower)[] = [];
      const giveWay = () => {
        ended.push(follower);
        open = open.filter((other) => other !== follower);
      };
      let isLetIn = true;
      try {
        bound.reserve({ caller, logs, giveWay }, follower.leaving.signal);
        open.push(follower);
      } catch (error) {
        assert.ok(error instanceof RpcError);
        isLetIn = false;
      }
      assert.equal(isLetIn, fits || (before.get(caller) ?? 0) + logs <= share);
      assert.ok(open.reduce((sum, other) => sum + other.logs, 0) <= FOLLOWED_LOGS_MAX);
      for (const [name, had] of before) {
        const has: number = heldBy(name) - (name === caller && isLetIn ? logs : 0);
        if (fits || !isLetIn || had <= share) assert.equal(has, had, `${name} keeps what it has`);
        else assert.ok(has > share - 100, `${name} keeps its share, but for one stream`);
      }
    }
  };
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), history), { numRuns: 300 });
});

test("streams of a caller that has all places end with the reason when another asks for its share", async (t) => {
  const known = await knownCallers(t);
  const logs: JobLogs = {
    look: async () => ({ kind: "found", containers: [{ name: "pytorch", run: "1", state: "running", reason: "" }] }),
    open: async (_wanted, signal) => ({ kind: "open", lines: oneLine(signal) }),
  };
  async function* oneLine(signal: AbortSignal) {
    yield [{ timeNs: null, text: "started", partial: false }];
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  }
  const { client, store, call } = await startFixture(t, {
    logs,
    authenticate: (shown) => (shown.authorization.length === 0 ? anonymous(shown) : known.authenticate(shown)),
  });
  await call(createJob, { job: pytorchJob("mnist") });
  const { job } = store.jobs.get("default/mnist")!;
  store.put({ ...job, admissions: [ADMITTED], status: { ...job.status, phase: "RUNNING", waiting: null } });
  const as = async (name: string) => {
    const { token } = await known.caller("robot", name);
    const { stream } = callsOf(withToken(client, token));
    return () => stream(streamJobLogs, { name: "mnist", replica: "Worker", follow: true });
  };
  const [ann, bob] = [await as("ann"), await as("bob")];
  const ends: string[] = [];
  const opened = (follow: typeof ann, by: string) => {
    const one = follow();
    one.on("error", (error: ServiceError) => ends.push(`${by} ${readRefusal(error).reason}`));
    return new Promise((resolve) => one.once("data", resolve).once("error", resolve));
  };
  for (let at = 0; at < FOLLOWED_LOGS_MAX / 2; at++) await opened(ann, "ann");
  assert.deepEqual(ends, [], "a caller that is alone has all places");
  for (let at = 0; at < FOLLOWED_LOGS_MAX / 4; at++) await opened(bob, "bob");
  await waitUntil("the newest streams of the first end", () => ends.length === FOLLOWED_LOGS_MAX / 4);
  assert.deepEqual(new Set(ends), new Set(["ann TOO_MANY_FOLLOWED_LOGS"]));
  await opened(bob, "bob");
  await opened(ann, "ann");
  assert.deepEqual(ends.slice(FOLLOWED_LOGS_MAX / 4), ["bob TOO_MANY_FOLLOWED_LOGS", "ann TOO_MANY_FOLLOWED_LOGS"]);
});

/** Of a job with a master and two workers. */
const ADMITTED = {
  number: 1,
  cluster: "sim",
  admitTimeMs: 0,
  members: { Master: 1, Worker: 2 },
  flavors: {},
  nodeLabels: {},
  flavorLabels: {},
  state: "live",
  tokensReleasedMs: null,
  goneMs: null,
  belowMinSinceMs: null,
} as const;
