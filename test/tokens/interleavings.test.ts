import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Counters, Holder } from "../../src/core/quota/counters.ts";
import type { Ledger } from "../../src/core/quota/ledger.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { allocate } from "../../src/tokens/allocate.ts";
import { confirmGivenBack } from "../../src/tokens/confirm-given-back.ts";
import type { QuotaDomain } from "../../src/tokens/domain/domain.ts";
import { reap } from "../../src/tokens/reaper/reap.ts";
import { release } from "../../src/tokens/release.ts";
import { renew } from "../../src/tokens/renew.ts";
import { soleDomain } from "../support/sole-quota.ts";
import { MemoryLedger } from "./memory-ledger.ts";

const POOL = "ex:slots";
const QUOTA = 10;
const LEASE_MS = 60_000;
const HOLDER: Holder = { kind: "caller", name: "flyte" };

const LIMITS = {
  version: 1,
  pools: [{ pool: POOL, quota: QUOTA, projectDefault: null, namespaceDefault: null }],
  queues: [],
  tokensMax: 1_000,
  waitersMax: 10,
};

/** `shrink` gives back all but `amount`. `turnOver` does so, too, for an heir, which gets a part of it. */
type Op = {
  readonly do: "allocate" | "release" | "renew" | "shrink" | "turnOver";
  readonly token: string;
  readonly amount: number;
  readonly heir?: { readonly token: string; readonly gets: number };
};
type Around = <T>(name: string, call: () => Promise<T>) => Promise<T>;

/** Wraps every function of a port in `around`, which may delay or fail it. */
function behind<Port extends object>(port: Port, around: Around): Port {
  const wrapped = Object.entries(port).map(([name, member]) => [
    name,
    typeof member === "function" && name !== "onOffer"
      ? (...given: unknown[]) => around(name, () => member(...given) as Promise<unknown>)
      : member,
  ]);
  return Object.fromEntries(wrapped) as Port;
}

/** Two servers on the same counters and ledger. The calls of the first one pass through `around`. */
function world(around: Around) {
  const tokens = new MemoryLedger(() => LIMITS);
  const counters = inProcessCounters();
  const clock = systemClock();
  const server = (of: { counters: Counters; ledger: Ledger }) => soleDomain({ clock, ...of });
  const plain = server({ counters, ledger: tokens });
  const faulty = server({ counters: behind(counters, around), ledger: behind({ ...tokens }, around) });
  const open = async () => {
    await plain.epochs.openEpoch(1_000);
    await faulty.epochs.openEpoch(1_000);
  };
  return { tokens, counters, plain, faulty, open };
}

/** Runs an operation and returns its answer. Null: the answer is unknown. */
async function run(domain: QuotaDomain, op: Op): Promise<string | null> {
  const { token, amount } = op;
  try {
    if (op.do === "allocate") {
      const scope = { project: "p", namespace: "n", queue: null, caps: { project: null, namespace: null } };
      const allocations = [{ pool: POOL, token, amount, leaseMs: LEASE_MS, ...scope }];
      return (await allocate(domain, { allocations, holder: HOLDER, priority: 0 })).kind;
    }
    if (op.do === "release") {
      const [answer] = await release(domain, [{ pool: POOL, token, holder: HOLDER, project: null, namespace: null }]);
      return answer?.kind ?? null;
    }
    if (op.do === "shrink") return await shrink(domain, { pool: POOL, token, amount });
    if (op.do === "turnOver") return await turnOver(domain, op);
    const [answer] = await renew(domain, { holder: HOLDER, allocations: [{ pool: POOL, token, leaseMs: LEASE_MS }] });
    return answer?.kind ?? null;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}

/** Does what a job's record and then the planner do: reduces the ledger's row, then the counters. */
async function shrink(domain: QuotaDomain, of: { pool: string; token: string; amount: number }): Promise<string> {
  const outcome = await (domain.ledger as Ledger & Pick<MemoryLedger, "shrink">).shrink(of);
  await confirmGivenBack(domain, await domain.epochs.openEpoch(0));
  return outcome;
}

/** Does what a record that ends a victim's members and then the planner do: first the ledger, then the counters. */
async function turnOver(domain: QuotaDomain, { token, amount, heir }: Op): Promise<string> {
  const ledger = domain.ledger as Ledger & Pick<MemoryLedger, "turnOver">;
  const of = { pool: POOL, token, amount, heir: heir?.token ?? "", lacks: heir?.gets ?? 0 };
  const outcome = await ledger.turnOver(of);
  await confirmGivenBack(domain, await domain.epochs.openEpoch(0));
  return outcome;
}

/** Asks again until there is an answer, as a client does. After a lost answer it asks the next server. */
async function insist(domains: readonly QuotaDomain[], op: Op): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const domain = domains[Math.min(attempt, domains.length - 1)];
    const answer = domain === undefined ? null : await run(domain, op);
    if (answer !== null) return answer;
    await domains
      .at(-1)
      ?.epochs.openEpoch(50)
      .catch(() => undefined);
  }
  throw new Error(`${op.do} ${op.token} got no answer in 100 attempts`);
}

/** Compares the answers that clients got with the ledger. */
class Acknowledged {
  readonly #held = new Map<string, number>();

  hear(op: Op, answer: string): void {
    if (op.do === "allocate" && answer === "granted") this.#held.set(op.token, op.amount);
    if (op.do === "shrink" && this.#held.has(op.token)) this.#held.set(op.token, op.amount);
    if (op.do === "turnOver" && this.#held.has(op.token)) {
      if (op.amount === 0) this.#held.delete(op.token);
      else this.#held.set(op.token, op.amount);
      if (op.heir !== undefined) this.#held.set(op.heir.token, op.heir.gets);
    }
    if (op.do === "release" || answer === "lost") this.#held.delete(op.token);
  }

  isTrueOf(ledger: MemoryLedger): void {
    const live = new Map(ledger.live.map((row) => [row.token, row.amount]));
    for (const [token, amount] of this.#held)
      assert.equal(live.get(token), amount, `${token} was acknowledged, so the ledger must hold it`);
  }

  isAllOf(ledger: MemoryLedger): void {
    const live = ledger.live.map((row) => [row.token, row.amount] as const);
    assert.deepEqual(live.sort(), [...this.#held].sort(), "the ledger must hold exactly the acknowledged tokens");
  }
}

function withinQuota({ live }: MemoryLedger): void {
  const used = live.reduce((sum, row) => sum + row.amount, 0);
  assert.ok(used <= QUOTA, `${used} of ${QUOTA}`);
}

/** Runs rounds of the reaper until all unacknowledged grants are taken back. */
async function settle({ plain, tokens, counters }: ReturnType<typeof world>): Promise<void> {
  for (let round = 0; round < 14; round += 1) {
    await counters.report(await plain.epochs.openEpoch(5_000));
    await reap(plain, 1_000);
  }
  const text = (sums: readonly { used: number; scope: object }[]) => sums.map((sum) => JSON.stringify(sum)).sort();
  assert.deepEqual(text(await counters.used()), text(await tokens.readUsed()), "counters and ledger must agree");
  assert.deepEqual(await tokens.untoldTurnOvers(9), [], "no turn-over may wait for the counters");
  assert.deepEqual(await tokens.unconfirmedReleases(9), [], "no release may wait for the counters");
  assert.deepEqual(await tokens.unconfirmedShrinks(9), [], "no shrink may wait for the counters");
  const { tokens: held } = await counters.held(null, 100);
  assert.deepEqual(
    held.filter((token) => !token.confirmed),
    [],
    "no grant may stay unconfirmed",
  );
}

const SCRIPT: readonly Op[] = [
  { do: "allocate", token: "a", amount: 6 },
  { do: "allocate", token: "b", amount: 6 },
  { do: "allocate", token: "a", amount: 6 },
  { do: "renew", token: "a", amount: 0 },
  { do: "shrink", token: "a", amount: 4 },
  { do: "shrink", token: "a", amount: 2 },
  { do: "allocate", token: "d", amount: 8 },
  { do: "allocate", token: "a", amount: 2 },
  { do: "release", token: "d", amount: 0 },
  { do: "release", token: "a", amount: 0 },
  { do: "allocate", token: "b", amount: 6 },
  { do: "release", token: "b", amount: 0 },
  { do: "renew", token: "b", amount: 0 },
  { do: "allocate", token: "c", amount: 10 },
  { do: "turnOver", token: "c", amount: 4, heir: { token: "h1", gets: 3 } },
  { do: "allocate", token: "b", amount: 6 },
  { do: "turnOver", token: "c", amount: 0, heir: { token: "h2", gets: 4 } },
  { do: "allocate", token: "b", amount: 4 },
  { do: "allocate", token: "b", amount: 3 },
];

const WITHOUT_FAULTS = [
  ...["granted", "exhausted", "granted", "renewed", "shrunk", "shrunk", "granted", "granted", "released", "released"],
  ...["granted", "released", "lost", "granted"],
  ...["turnedOver", "exhausted", "turnedOver", "exhausted", "granted"],
];

type Fault = { readonly at: number; readonly when: "before" | "after"; readonly dies: boolean };

/** Runs the script with one fault. Returns the number of calls that could have failed. */
async function runWith(fault: Fault, answers: string[] = []): Promise<number> {
  let calls = -1_000;
  let dead = false;
  const at = world(async (name, call) => {
    calls += 1;
    const hit = calls === fault.at;
    dead ||= hit && fault.dies;
    if (dead && !(hit && fault.when === "after")) throw new UnavailableError(`${name} was never sent`);
    if (hit && fault.when === "before") throw new UnavailableError(`${name} was lost`);
    const answer = await call();
    if (hit) throw new UnavailableError(`the answer of ${name} was lost`);
    return answer;
  });
  await at.open();
  calls = 0;
  const acknowledged = new Acknowledged();
  for (const op of SCRIPT) {
    const first = dead ? [at.plain] : [at.faulty, at.plain];
    const answer = await insist(first, op);
    answers.push(answer);
    acknowledged.hear(op, answer);
    withinQuota(at.tokens);
    acknowledged.isTrueOf(at.tokens);
  }
  await settle(at);
  acknowledged.isTrueOf(at.tokens);
  acknowledged.isAllOf(at.tokens);
  await at.faulty.close();
  await at.plain.close();
  return calls;
}

test("a crash or lost answer at any step loses no acknowledged token, exceeds no limit and leaks nothing", async () => {
  const answers: string[] = [];
  const steps = await runWith({ at: -1, when: "before", dies: false }, answers);
  assert.deepEqual(answers, WITHOUT_FAULTS);
  assert.ok(steps > 20, `${steps} steps`);
  for (let at = 1; at <= steps; at += 1) {
    for (const when of ["before", "after"] as const) {
      for (const dies of [false, true]) {
        await runWith({ at, when, dies }).catch((error: Error) => {
          throw new Error(`with a fault ${when} step ${at}${dies ? ", where the server dies" : ""}`, { cause: error });
        });
      }
    }
  }
});

const op: fc.Arbitrary<Op> = fc
  .record({
    do: fc.constantFrom(...(["allocate", "allocate", "release", "renew", "shrink"] as const)),
    token: fc.constantFrom("a", "b", "c"),
  })
  .map((of) => ({ ...of, amount: of.do === "shrink" ? 2 : 6 }));

test("two servers exceed no limit and leak nothing, in any order of their steps", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(op, { maxLength: 6 }),
      fc.array(op, { maxLength: 6 }),
      async (scheduler, mine, yours) => {
        let scheduled = false;
        const at = world((name, call) => (scheduled ? scheduler.schedule(Promise.resolve(), name).then(call) : call()));
        await at.open();
        scheduled = true;
        const client = async (domain: QuotaDomain, ops: readonly Op[]) => {
          for (const one of ops) {
            await insist([domain, at.plain], one);
            withinQuota(at.tokens);
          }
        };
        const all = Promise.all([client(at.faulty, mine), client(at.plain, yours), client(at.faulty, yours)]);
        await scheduler.waitFor(all);
        scheduled = false;
        await scheduler.waitIdle();
        await settle(at);
        withinQuota(at.tokens);
        await at.faulty.close();
        await at.plain.close();
      },
    ),
    { numRuns: 60 },
  );
});
