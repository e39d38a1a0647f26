import assert from "node:assert/strict";
import { test } from "node:test";
import { allocate } from "../../src/adapters/quota/allocate.ts";
import type { Desk } from "../../src/adapters/quota/desk.ts";
import { inProcessCounters } from "../../src/adapters/quota/in-process.ts";
import { reap } from "../../src/adapters/quota/reap.ts";
import { type ReleaseLine, release } from "../../src/adapters/quota/release.ts";
import type { Holder } from "../../src/core/quota/counters.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { soleDesk } from "../support/sole-quota.ts";
import { MemoryLedger } from "./memory-ledger.ts";

const POOL = "ex:slots";
const FLYTE: Holder = { kind: "caller", name: "flyte" };
const OTHER: Holder = { kind: "caller", name: "other" };
const LIMITS = {
  version: 1,
  pools: [{ pool: POOL, quota: 10, projectDefault: null, namespaceDefault: null }],
  queues: [],
  tokensMax: 1_000,
  waitersMax: 10,
};
const LINE: ReleaseLine = { pool: POOL, token: "t", holder: FLYTE, project: null, namespace: null };

/** Two servers; the commits of the first one wait until they are let go, and the counters answer nobody while they are away. */
async function world() {
  let aheadMs = 0;
  const system = systemClock();
  const clock = { ...system, nowMs: () => system.nowMs() + aheadMs };
  const ledger = new MemoryLedger(() => LIMITS, clock.nowMs);
  const real = inProcessCounters();
  let away = false;
  const behind = (member: (...given: never[]) => unknown) => {
    return async (...given: never[]) => {
      if (away) throw new UnavailableError("the counters are away");
      return member(...given);
    };
  };
  const counters = Object.fromEntries(
    Object.entries(real).map(([name, member]) => [name, name === "onOffer" ? member : behind(member)]),
  ) as typeof real;
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const slow = {
    ...ledger,
    commit: async (...given: Parameters<typeof ledger.commit>) => {
      reached.resolve();
      await gate.promise;
      return ledger.commit(...given);
    },
  };
  const first = soleDesk({ clock, counters, ledger: slow });
  const second = soleDesk({ clock, counters, ledger });
  await first.domain.openEpoch(1_000);
  await second.domain.openEpoch(1_000);
  return {
    ...{ ledger, real, first, second, reached: reached.promise },
    pass: (ms: number) => {
      aheadMs += ms;
    },
    letGo: () => gate.resolve(),
    lose: (isAway: boolean) => {
      away = isAway;
    },
  };
}

type World = Awaited<ReturnType<typeof world>>;

function ask(desk: Desk, holder: Holder = FLYTE): Promise<string> {
  const line = { pool: POOL, token: "t", amount: 4, leaseMs: 60_000, queue: null };
  const lines = [{ ...line, project: "p", namespace: "n", caps: { project: null, namespace: null } }];
  return allocate(desk, { lines, holder, priority: 0 }).then(
    ({ kind }) => kind,
    (error: unknown) => {
      if (error instanceof UnavailableError) return "unavailable";
      throw error;
    },
  );
}

/** As a client does. */
async function insist(desk: Desk): Promise<string> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const answer = await ask(desk);
    if (answer !== "unavailable") return answer;
  }
  return "unavailable";
}

async function settle({ second, real, pass }: World): Promise<void> {
  for (let round = 0; round < 14; round += 1) {
    pass(1_000);
    await real.report(await second.domain.openEpoch(5_000));
    await reap(second, 1_000);
  }
}

async function nothingIsHeld(at: World): Promise<void> {
  assert.deepEqual(at.ledger.live, [], "the ledger holds nothing");
  await settle(at);
  assert.deepEqual((await at.real.held(null, 10)).tokens, [], "nor do the counters");
  assert.deepEqual(await at.ledger.tombstones(10), [], "and nothing waits for a grant");
}

const steps = {
  back: (at: World) => at.lose(false),
  commit: (at: World) => at.letGo(),
  reap: (at: World) => reap(at.second, 1_000).catch(() => undefined),
  raise: (at: World) => void at.ledger.raiseEpoch(null),
};

const orders: readonly (readonly (keyof typeof steps)[])[] = [
  ["commit", "back"],
  ["back", "commit"],
  ["back", "reap", "commit"],
  ["reap", "commit", "reap", "back"],
  ["raise", "commit", "back"],
  ["commit", "raise", "back"],
  ["back", "raise", "commit"],
  ["raise", "back", "reap", "commit"],
];

for (const order of orders) {
  test(`what is released while the counters are away is not granted by its earlier request: ${order.join(", ")}`, async () => {
    const at = await world();
    const granted = ask(at.first);
    await at.reached;
    at.lose(true);
    const [released] = await release(at.second, [LINE]);
    assert.equal(released?.kind, "notHeld");
    for (const step of order) await steps[step](at);
    assert.equal(await granted, "unavailable");
    await nothingIsHeld(at);
    assert.equal(await insist(at.second), "granted", "the token can be had again");
    assert.equal((await release(at.second, [LINE]))[0]?.kind, "released");
    await nothingIsHeld(at);
    await at.first.close();
    await at.second.close();
  });
}

test("a tombstone refuses one grant, of its holder and its scope", async () => {
  for (const others of [{ holder: OTHER }, { project: "elsewhere" }, { namespace: "elsewhere" }]) {
    const at = await world();
    at.lose(true);
    assert.equal((await release(at.second, [{ ...LINE, ...others }]))[0]?.kind, "notHeld");
    at.lose(false);
    assert.equal(await ask(at.second), "granted", JSON.stringify(others));
    await at.first.close();
    await at.second.close();
  }
  const at = await world();
  at.lose(true);
  for (let time = 0; time < 3; time += 1) assert.equal((await release(at.second, [LINE]))[0]?.kind, "notHeld");
  at.lose(false);
  assert.deepEqual([await ask(at.second), await ask(at.second)], ["unavailable", "granted"]);
  await at.first.close();
  await at.second.close();
});

test("a release that comes while the grant is on its way ends it, whichever of them is first in the ledger", async () => {
  const at = await world();
  const granted = ask(at.first);
  await at.reached;
  // The ledger is asked, then the counters: between the two the grant arrives.
  const { find } = at.second.counters;
  let asked = 0;
  const desk: Desk = {
    ...at.second,
    counters: {
      ...at.second.counters,
      find: async (tokens) => {
        asked += 1;
        at.letGo();
        assert.equal(await granted, "granted");
        return find(tokens);
      },
    },
  };
  assert.equal((await release(desk, [LINE]))[0]?.kind, "released");
  assert.equal(asked, 1);
  await nothingIsHeld(at);
  await at.first.close();
  await at.second.close();
});

test("a release that names another project than the grant under way leaves it alone", async () => {
  const at = await world();
  const granted = ask(at.first);
  await at.reached;
  const elsewhere = { ...LINE, project: "elsewhere" };
  assert.deepEqual((await release(at.second, [elsewhere]))[0], { kind: "otherScope", project: "p", namespace: "n" });
  at.letGo();
  assert.equal(await granted, "granted");
  await at.first.close();
  await at.second.close();
});
