import assert from "node:assert/strict";
import { test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Holder } from "../../src/core/quota/counters.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { TokenContendedError, UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { allocate } from "../../src/tokens/allocate.ts";
import type { QuotaDomain } from "../../src/tokens/domain/domain.ts";
import { reap } from "../../src/tokens/reaper/reap.ts";
import { type HolderRelease, release } from "../../src/tokens/release.ts";
import { soleDomain } from "../support/sole-quota.ts";
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
const RELEASE: HolderRelease = { pool: POOL, token: "t", holder: FLYTE, project: null, namespace: null };

/** Two servers. Commits of the first one wait for `letGo`, and the counters do not answer while they are away. */
async function world() {
  let aheadMs = 0;
  const system = systemClock();
  const clock = { ...system, nowMs: () => system.nowMs() + aheadMs };
  const ledger = new MemoryLedger(() => LIMITS, clock.nowMs);
  const real = inProcessCounters();
  let away = false;
  const behind = (member: (...given: never[]) => unknown) => {
    return async (...given: never[]) => {
      if (away) throw new UnavailableError("the counters are unavailable");
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
  const first = soleDomain({ clock, counters, ledger: slow });
  const second = soleDomain({ clock, counters, ledger });
  await first.epochs.openEpoch(1_000);
  await second.epochs.openEpoch(1_000);
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

function requestOf(holder: Holder) {
  const allocation = { pool: POOL, token: "t", amount: 4, leaseMs: 60_000, queue: null };
  const allocations = [{ ...allocation, project: "p", namespace: "n", caps: { project: null, namespace: null } }];
  return { allocations, holder, priority: 0 };
}

function ask(domain: QuotaDomain, holder: Holder = FLYTE): Promise<string> {
  return allocate(domain, requestOf(holder)).then(
    ({ kind }) => kind,
    (error: unknown) => {
      if (error instanceof UnavailableError) return "unavailable";
      throw error;
    },
  );
}

/** Asks again until there is an answer, as a client does. */
async function insist(domain: QuotaDomain): Promise<string> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const answer = await ask(domain);
    if (answer !== "unavailable") return answer;
  }
  return "unavailable";
}

async function settle({ second, real, pass }: World): Promise<void> {
  for (let round = 0; round < 14; round += 1) {
    pass(1_000);
    await real.report(await second.epochs.openEpoch(5_000));
    await reap(second, 1_000);
  }
}

async function nothingIsHeld(at: World): Promise<void> {
  assert.deepEqual(at.ledger.live, [], "the ledger must hold nothing");
  await settle(at);
  assert.deepEqual((await at.real.held(null, 10)).tokens, [], "the counters must hold nothing");
  assert.deepEqual(await at.ledger.tombstones(10), [], "no tombstone may remain");
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
  test(`a token released while the counters are away stays released: ${order.join(", ")}`, async () => {
    const at = await world();
    const granted = ask(at.first);
    await at.reached;
    at.lose(true);
    const [released] = await release(at.second, [RELEASE]);
    assert.equal(released?.kind, "notHeld");
    for (const step of order) await steps[step](at);
    assert.equal(await granted, "unavailable");
    await nothingIsHeld(at);
    assert.equal(await insist(at.second), "granted", "a new request must get the token");
    assert.equal((await release(at.second, [RELEASE]))[0]?.kind, "released");
    await nothingIsHeld(at);
    await at.first.close();
    await at.second.close();
  });
}

test("a tombstone refuses one grant of its holder and its scope", async () => {
  for (const others of [{ holder: OTHER }, { project: "elsewhere" }, { namespace: "elsewhere" }]) {
    const at = await world();
    at.lose(true);
    assert.equal((await release(at.second, [{ ...RELEASE, ...others }]))[0]?.kind, "notHeld");
    at.lose(false);
    assert.equal(await ask(at.second), "granted", JSON.stringify(others));
    await at.first.close();
    await at.second.close();
  }
  const at = await world();
  at.lose(true);
  for (let time = 0; time < 3; time += 1) assert.equal((await release(at.second, [RELEASE]))[0]?.kind, "notHeld");
  at.lose(false);
  assert.deepEqual([await ask(at.second), await ask(at.second)], ["unavailable", "granted"]);
  await at.first.close();
  await at.second.close();
});

test("a release ends a grant in progress, even if the grant reaches the ledger first", async () => {
  const at = await world();
  const granted = ask(at.first);
  await at.reached;
  // The release asks the ledger, then the counters. The grant is committed between the two.
  const { find } = at.second.counters;
  let asked = 0;
  const domain: QuotaDomain = {
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
  assert.equal((await release(domain, [RELEASE]))[0]?.kind, "released");
  assert.equal(asked, 1);
  await nothingIsHeld(at);
  await at.first.close();
  await at.second.close();
});

test("a grant that a release has ended before the ledger had it is contended: no store is away", async () => {
  const at = await world();
  const granted = assert.rejects(allocate(at.first, requestOf(FLYTE)), TokenContendedError);
  await at.reached;
  await release(at.second, [RELEASE]);
  at.letGo();
  await granted;
  await nothingIsHeld(at);
  await at.first.close();
  await at.second.close();
});

test("the first request of a new domain waits until it is open", async () => {
  const ledger = new MemoryLedger(() => LIMITS, Date.now);
  const domain = soleDomain({ clock: systemClock(), counters: inProcessCounters(), ledger });
  assert.equal(await ask(domain), "granted");
  await domain.close();
});

test("a release for another project does not end a grant in progress", async () => {
  const at = await world();
  const granted = ask(at.first);
  await at.reached;
  const elsewhere = { ...RELEASE, project: "elsewhere" };
  assert.deepEqual((await release(at.second, [elsewhere]))[0], { kind: "otherScope", project: "p", namespace: "n" });
  at.letGo();
  assert.equal(await granted, "granted");
  await at.first.close();
  await at.second.close();
});
