/** Rates of calls: in the memory of a process, shared in Redis, and while Redis is away. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, type TestContext, test } from "node:test";
import { createCallRates, type RunRateScript } from "../../src/access/call-rates.ts";
import { openRateScripts } from "../../src/adapters/counters/redis/rate-scripts.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { waitUntil } from "../support/bounded.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";

const clock = systemClock();
/** A second is part of the count: a burst that is far larger than the rate makes that part small. */
const RATE = { callsPerSecond: 1, burst: 50 };

async function allowed(rates: ReturnType<typeof createCallRates>, subject: string, calls: number, cost = 1) {
  const answers = await Promise.all(Array.from({ length: calls }, () => rates.take(subject, cost, RATE)));
  for (const retryMs of answers) assert.ok(retryMs === null || (retryMs >= 1 && retryMs <= 1_000), `${retryMs}`);
  return answers.filter((retryMs) => retryMs === null).length;
}

/** Each begun second adds one call, and the burst begins again after ten seconds. */
async function assertBurst(allow: () => Promise<number>) {
  const startedMs = clock.monotonicMs();
  const count = await allow();
  const seconds = Math.ceil((clock.monotonicMs() - startedMs) / 1_000);
  const max = RATE.callsPerSecond * (seconds + 1) + RATE.burst * (Math.floor(seconds / 10) + 1);
  assert.ok(count >= 51 && count <= max, `${count} calls were let in within ${seconds} s`);
}

const inMemory = () => createCallRates({ clock, runScript: null, onAway: (error) => assert.fail(String(error)) });

test("a caller has its burst, and others have theirs", async () => {
  const rates = inMemory();
  await assertBurst(() => allowed(rates, "a", 200));
  await assertBurst(() => allowed(rates, "b", 200));
});

test("a dear call takes as much as many cheap ones", async () => {
  assert.equal(await allowed(inMemory(), "a", 20, 25), 2);
});

describe("in Redis", { skip: !hasRedisServer() }, () => {
  const connect = async (t: TestContext, server: RedisServer, installation: string) => {
    const away: unknown[] = [];
    const options = { installation, keyPrefix: "gangway", onError: () => {}, onWarning: () => {} };
    const scripts = await openRateScripts({ url: server.url, ...options });
    t.after(() => scripts.close());
    let asked = 0;
    const runScript: RunRateScript = (...of) => {
      asked += 1;
      return scripts.run(...of);
    };
    const rates = createCallRates({ clock, runScript, onAway: (error) => void away.push(error) });
    return { rates, away, asked: () => asked };
  };

  test("processes share what a caller has, and installations do not", async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const [one, other, elsewhere] = [
      await connect(t, server, "x"),
      await connect(t, server, "x"),
      await connect(t, server, randomUUID()),
    ];
    await assertBurst(async () => {
      const counts = await Promise.all([allowed(one.rates, "a", 100), allowed(other.rates, "a", 100)]);
      return counts[0] + counts[1];
    });
    await assertBurst(() => allowed(elsewhere.rates, "a", 200));
    assert.deepEqual([one.away, other.away], [[], []]);
    const keys = await server.admin.keys("*");
    assert.ok(keys.length > 0 && keys.every((key) => key.startsWith("gangway:")), keys.join(" "));
    for (const key of keys) assert.ok((await server.admin.pttl(key)) > 0, `${key} expires`);
  });

  test("a busy caller takes many calls with one question", async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { rates, asked } = await connect(t, server, "x");
    const rate = { callsPerSecond: 10_000, burst: 0 };
    for (let at = 0; at < 400; at++) assert.equal(await rates.take("a", 1, rate), null);
    // Within one second one question is enough; a slow machine takes a share again after each second.
    assert.ok(asked() < 40, `${asked()} questions`);
  });

  test("a caller that has used up its rate is refused without a question until it may call again", async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { rates, asked } = await connect(t, server, "x");
    const rate = { callsPerSecond: 10, burst: 0 };
    let refusedMs: number | null = null;
    while (refusedMs === null) refusedMs = await rates.take("a", 1, rate);
    const [questions, untilMs] = [asked(), clock.monotonicMs() + refusedMs];
    for (let at = 0; at < 100; at++) {
      const retryMs = await rates.take("a", 1 + (at % 3), rate);
      if (clock.monotonicMs() >= untilMs) break;
      assert.ok(retryMs !== null && retryMs >= 1 && retryMs <= refusedMs, `${retryMs}`);
      assert.equal(asked(), questions);
    }
    assert.equal(await rates.take("b", 1, rate), null, "another caller is not concerned");
    await waitUntil("it may call again", async () => (await rates.take("a", 1, rate)) === null);
  });

  test("while Redis is away a process counts by itself, and refuses only what is beyond the limits", async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { rates, away } = await connect(t, server, "x");
    await assertBurst(() => allowed(rates, "a", 200));
    await server.kill("SIGKILL");
    await assertBurst(() => allowed(rates, "b", 200));
    assert.ok(away.length >= 1 && away.length < 20, `${away.length} failures were told`);
    await server.start();
    const counted = async () => {
      await rates.take(randomUUID(), 1, RATE);
      return (await server.admin.keys("*")).length > 0;
    };
    await waitUntil("Redis counts again", counted);
  });

  test("a Redis that hangs delays calls a little, and refuses none", async (t) => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { rates, away } = await connect(t, server, "x");
    server.freeze();
    t.after(() => server.thaw());
    await assertBurst(() => allowed(rates, "a", 200));
    assert.ok(away.length > 0);
  });
});
