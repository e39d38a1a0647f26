import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { allocate } from "../../src/adapters/quota/allocate.ts";
import type { Desk } from "../../src/adapters/quota/desk.ts";
import { inProcessCounters } from "../../src/adapters/quota/in-process.ts";
import type { DomainLedger } from "../../src/adapters/quota/ports.ts";
import { reap } from "../../src/adapters/quota/reap.ts";
import { release } from "../../src/adapters/quota/release.ts";
import { renew } from "../../src/adapters/quota/renew.ts";
import { settleReleases } from "../../src/adapters/quota/settle-releases.ts";
import type { Counters, Holder } from "../../src/core/quota/counters.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { soleDesk } from "../support/sole-quota.ts";
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

/** To shrink is to give back what is beyond an amount. */
type Op = {
  readonly do: "allocate" | "release" | "renew" | "shrink";
  readonly token: string;
  readonly amount: number;
};
type Around = <T>(name: string, call: () => Promise<T>) => Promise<T>;

/** Every function of a port behind something that may delay or fail it. */
function behind<Port extends object>(port: Port, around: Around): Port {
  const wrapped = Object.entries(port).map(([name, member]) => [
    name,
    typeof member === "function" && name !== "onOffer"
      ? (...given: unknown[]) => around(name, () => member(...given) as Promise<unknown>)
      : member,
  ]);
  return Object.fromEntries(wrapped) as Port;
}

/** Two servers on the same counters and ledger; the first one's calls pass through `around`. */
function world(around: Around) {
  const tokens = new MemoryLedger(() => LIMITS);
  const counters = inProcessCounters();
  const clock = systemClock();
  const server = (of: { counters: Counters; ledger: DomainLedger }) => soleDesk({ clock, ...of });
  const plain = server({ counters, ledger: tokens });
  const faulty = server({ counters: behind(counters, around), ledger: behind({ ...tokens }, around) });
  const open = async () => {
    await plain.domain.openEpoch(1_000);
    await faulty.domain.openEpoch(1_000);
  };
  return { tokens, counters, plain, faulty, open };
}

/** What was answered; null where that is not known. */
async function run(desk: Desk, op: Op): Promise<string | null> {
  const { token, amount } = op;
  try {
    if (op.do === "allocate") {
      const scope = { project: "p", namespace: "n", queue: null, caps: { project: null, namespace: null } };
      const lines = [{ pool: POOL, token, amount, leaseMs: LEASE_MS, ...scope }];
      return (await allocate(desk, { lines, holder: HOLDER, priority: 0 })).kind;
    }
    if (op.do === "release") {
      const [answer] = await release(desk, [{ pool: POOL, token, holder: HOLDER, project: null, namespace: null }]);
      return answer?.kind ?? null;
    }
    if (op.do === "shrink") return await shrink(desk, { pool: POOL, token, amount });
    const [answer] = await renew(desk, { holder: HOLDER, lines: [{ pool: POOL, token, leaseMs: LEASE_MS }] });
    return answer?.kind ?? null;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}

/** What a job's record and then the planner do: the ledger first, then the counters of whatever was given back. */
async function shrink(desk: Desk, of: { pool: string; token: string; amount: number }): Promise<string> {
  const outcome = await (desk.ledger as DomainLedger & Pick<MemoryLedger, "shrink">).shrink(of);
  await settleReleases(desk, await desk.domain.openEpoch(0));
  return outcome;
}

/** As a client does: asks the other server where an answer was lost. */
async function insist(desks: readonly Desk[], op: Op): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const desk = desks[Math.min(attempt, desks.length - 1)];
    const answer = desk === undefined ? null : await run(desk, op);
    if (answer !== null) return answer;
    await desks
      .at(-1)
      ?.domain.openEpoch(50)
      .catch(() => undefined);
  }
  throw new Error(`${op.do} ${op.token} is never answered`);
}

/** Holds what clients were told against what is so. */
class Told {
  readonly #held = new Map<string, number>();

  hear(op: Op, answer: string): void {
    if (op.do === "allocate" && answer === "granted") this.#held.set(op.token, op.amount);
    if (op.do === "shrink" && this.#held.has(op.token)) this.#held.set(op.token, op.amount);
    if (op.do === "release" || answer === "lost") this.#held.delete(op.token);
  }

  isTrueOf(ledger: MemoryLedger): void {
    const live = new Map(ledger.live.map((row) => [row.token, row.amount]));
    for (const [token, amount] of this.#held) assert.equal(live.get(token), amount, `${token} was acknowledged`);
  }

  isAllOf(ledger: MemoryLedger): void {
    const live = ledger.live.map((row) => [row.token, row.amount] as const);
    assert.deepEqual(live.sort(), [...this.#held].sort(), "what is held was told");
  }
}

function withinQuota({ live }: MemoryLedger): void {
  const used = live.reduce((sum, row) => sum + row.amount, 0);
  assert.ok(used <= QUOTA, `${used} of ${QUOTA}`);
}

/** Rounds of the reaper that take back what nobody made good. */
async function settle({ plain, tokens, counters }: ReturnType<typeof world>): Promise<void> {
  for (let round = 0; round < 14; round += 1) {
    await counters.report(await plain.domain.openEpoch(5_000));
    await reap(plain, 1_000);
  }
  const text = (sums: readonly { used: number; scope: object }[]) => sums.map((sum) => JSON.stringify(sum)).sort();
  assert.deepEqual(text(await counters.used()), text(await tokens.readUsed()), "counters and ledger agree");
  assert.deepEqual(await tokens.unconfirmedReleases(9), [], "no release waits for the counters");
  assert.deepEqual(await tokens.unconfirmedShrinks(9), [], "nor does a part of one");
  const { tokens: held } = await counters.held(null, 100);
  assert.deepEqual(
    held.filter((token) => !token.confirmed),
    [],
    "nothing is left in doubt",
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
];

const WITHOUT_FAULTS = [
  ...["granted", "exhausted", "granted", "renewed", "shrunk", "shrunk", "granted", "granted", "released", "released"],
  ...["granted", "released", "lost", "granted"],
];

type Fault = { readonly at: number; readonly when: "before" | "after"; readonly dies: boolean };

/** The script with one fault; the number of calls that could have had one. */
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
  const told = new Told();
  for (const op of SCRIPT) {
    const first = dead ? [at.plain] : [at.faulty, at.plain];
    const answer = await insist(first, op);
    answers.push(answer);
    told.hear(op, answer);
    withinQuota(at.tokens);
    told.isTrueOf(at.tokens);
  }
  await settle(at);
  told.isTrueOf(at.tokens);
  told.isAllOf(at.tokens);
  await at.faulty.close();
  await at.plain.close();
  return calls;
}

test("a crash or a lost answer at any step loses no acknowledged token, passes no limit and leaks nothing", async () => {
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

test("whatever two servers do at once, and in whatever order their steps come, nothing passes a limit or leaks", async () => {
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
        const client = async (desk: Desk, ops: readonly Op[]) => {
          for (const one of ops) {
            await insist([desk, at.plain], one);
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
