/** Places of calls: random callers enter and leave, and the counts are those of a model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { limitCalls } from "../../src/access/limited-calls.ts";
import { CALL_LIMIT_DEFAULTS, type CallPlace, placeOf } from "../../src/core/access/call-limits.ts";
import { ANONYMOUS, type Identity } from "../../src/core/access/identity.ts";

const RPCS = [
  "gangway.v1.JobService/GetJob",
  "gangway.v1.JobService/WatchJobs",
  "gangway.v1.JobService/StreamJobLogs",
  "gangway.v1.ResourceManager/WaitForResource",
  "gangway.v1.ResourceManager/ReleaseResource",
] as const;
const MAX = { callsInFlight: 3, watches: 1, logStreams: 2, waitingRequests: 2 };
const clock = { monotonicMs: () => 0 };
const caller = (subject: string): Identity => ({ ...ANONYMOUS, subject, method: "robot" });

const step = fc.oneof(
  fc.record({ enters: fc.constantFrom("a", "b"), rpc: fc.constantFrom(...RPCS) }),
  fc.record({ leaves: fc.nat(), times: fc.integer({ min: 1, max: 2 }) }),
);

test("a caller has as many calls at a time as its limits allow, whatever others do", async () => {
  const history = async (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
    const limited: string[] = [];
    const settings = { defaults: { ...CALL_LIMIT_DEFAULTS, ...MAX }, callers: [] };
    const rates = { take: async () => null };
    const calls = limitCalls({
      clock,
      settings: () => settings,
      rates,
      onLimited: (limit) => void limited.push(limit),
    });
    const open: { readonly key: string; readonly place: CallPlace }[] = [];
    let refused = 0;
    for (const one of steps) {
      if ("leaves" in one) {
        const [left] = open.length === 0 ? [] : open.splice(one.leaves % open.length, 1);
        // A call may end twice, by its handler and by its caller.
        for (let time = 0; time < one.times; time++) left?.place.leave();
        continue;
      }
      const kind = placeOf(one.rpc);
      const key = `${one.enters} ${kind}`;
      const held = open.filter((other) => other.key === key).length;
      const answer = await calls.enter(caller(one.enters), one.rpc);
      const max = kind === null ? Number.POSITIVE_INFINITY : MAX[kind];
      assert.equal(answer.kind, held < max ? "entered" : "limited");
      if (answer.kind === "entered") open.push({ key, place: answer });
      else assert.deepEqual([answer.limit, answer.max], [kind, max]);
      refused += answer.kind === "limited" ? 1 : 0;
    }
    assert.equal(limited.length, refused);
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), history));
});

test("a request pays for its bytes before it is handled, and an answer afterwards", async () => {
  const taken: number[] = [];
  const settings = { defaults: { ...CALL_LIMIT_DEFAULTS, callsPerSecond: 5, burst: 20 }, callers: [] };
  const take = async (_: string, cost: number) => {
    taken.push(cost);
    return cost > 10 ? 700 : null;
  };
  const calls = limitCalls({ clock, settings: () => settings, rates: { take }, onLimited: () => {} });
  const place = await calls.enter(caller("a"), RPCS[0]);
  assert.equal(place.kind, "entered");
  if (place.kind !== "entered") return;
  assert.equal(await place.pay(100), null);
  assert.equal(await place.pay(10 * 65_536), null);
  assert.deepEqual(await place.pay(11 * 65_536), {
    kind: "limited",
    limit: "callsPerSecond",
    max: 5,
    retryMs: 700,
    heldMs: 0,
  });
  place.charge(3 * 65_536);
  place.charge(1000 * 65_536);
  assert.deepEqual(taken, [1, 10, 11, 3, 20], "the dearest call is possible to a caller that rests");
});
