import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { TokenOperations } from "../../src/api/resource-manager/quota-ports.ts";
import type { ChildProgram, TakenSignal } from "../../src/cli/shell/deps.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { startFixture } from "../api/fixture.ts";
import { MemoryResources } from "../api/memory-resources.ts";
import { run, type World } from "./harness.ts";

const POOL = "ex:warehouse";

/** Starts a service with one pool of 4, and returns a command line for it. */
async function served(t: TestContext, resources = new MemoryResources(), leaseMs = 3_600_000) {
  const { api } = await startFixture(t, { resources });
  const settings = { projectDefault: null, namespaceDefault: null, queue: null, domain: null, maxLeaseMs: null };
  await resources.registerPool(
    { name: POOL, quota: 4, defaultLeaseMs: leaseMs, durability: null, ...settings },
    0,
    "admin",
  );
  const gangway = (line: string, world: World = {}) => run(line.split(" "), { address: api.address, ...world });
  return { resources, gangway, api };
}

/** A program that the test ends, or that one of the signals in `ends` ends. */
class Running implements ChildProgram {
  readonly signals: NodeJS.Signals[] = [];
  readonly #end = Promise.withResolvers<number>();
  readonly ended = this.#end.promise;
  readonly #ends: Partial<Record<NodeJS.Signals, number>>;

  constructor(ends: Partial<Record<NodeJS.Signals, number>> = {}) {
    this.#ends = ends;
  }

  signal(name: NodeJS.Signals): void {
    this.signals.push(name);
    const code = this.#ends[name];
    if (code !== undefined) this.#end.resolve(code);
  }

  exit(code: number): void {
    this.#end.resolve(code);
  }
}

test("a token is granted, held and released, and each command prints the result", async (t) => {
  const { gangway } = await served(t);
  const granted = await gangway(`alloc ${POOL} q1 --amount 3 --project nlp --lease 10m`);
  assert.match(granted.stdout, /^ex:warehouse q1 granted, fence \d+, expires in (10m|9m5\ds)\n$/);
  assert.deepEqual([granted.exitCode, granted.stderr], [0, ""]);
  const again = await gangway(`alloc ${POOL} q1 --amount 3 --project nlp -o json`);
  assert.equal(JSON.parse(again.stdout).held, true);
  assert.match((await gangway(`release ${POOL} q1`)).stdout, /^ex:warehouse q1 released\n$/);
  const twice = await gangway(`release ${POOL} q1`);
  assert.deepEqual([twice.exitCode, twice.stdout], [0, "ex:warehouse q1 not held\n"]);
  const shown = await gangway(`release ${POOL} q1 -o json`);
  assert.deepEqual(JSON.parse(shown.stdout), { outcome: "RELEASE_OUTCOME_NOT_HELD" });
});

test("an exhausted pool refuses with status 3, and the message names the limit", async (t) => {
  const { gangway } = await served(t);
  await gangway(`alloc ${POOL} q1 --amount 3 --project nlp`);
  const exhausted = await gangway(`alloc ${POOL} q2 --amount 2`);
  assert.deepEqual(
    [exhausted.exitCode, exhausted.stdout, exhausted.stderr],
    [3, "", "error: exhausted: pool ex:warehouse uses 3 of 4, 2 requested\n"],
  );
  const capped = await gangway(`alloc ${POOL} q2 --project nlp --project-cap 3 -o json`);
  const why = "project nlp uses 3 of 3 of pool ex:warehouse, 1 requested";
  assert.deepEqual([capped.exitCode, capped.stderr], [3, `error: namespace quota exceeded: ${why}\n`]);
  assert.equal(JSON.parse(capped.stdout).status, "ALLOCATION_STATUS_NAMESPACE_QUOTA_EXCEEDED");
  const other = await gangway(`alloc ${POOL} q1 --holder bob`);
  assert.deepEqual([other.exitCode, other.stderr.startsWith("error: already exists: ")], [3, true]);
  assert.equal((await gangway("alloc nowhere q1")).exitCode, 3);
});

const mistakes: Record<string, { line: string; says: RegExp }> = {
  "a program without --exec": { line: `alloc ${POOL} a -- true`, says: /a program needs --exec/ },
  "--exec without a program": { line: `alloc ${POOL} a --exec`, says: /--exec needs a program/ },
  "a lease without a unit": { line: `alloc ${POOL} a --lease 10`, says: /duration with its unit/ },
  "an amount that is none": { line: `alloc ${POOL} a --amount some`, says: /whole number/ },
};
for (const [name, { line, says }] of Object.entries(mistakes)) {
  test(`${name} is a usage error, and nothing is sent`, async () => {
    const { exitCode, stderr } = await run(line.split(" "), { address: "127.0.0.1:1" });
    assert.equal(exitCode, 2);
    assert.match(stderr, says);
  });
}

test("an unavailable service gives status 4", async () => {
  const { exitCode } = await run(["alloc", POOL, "a"], { address: "127.0.0.1:1" });
  assert.equal(exitCode, 4);
});

test("--wait waits in the waiting line until the pool has room, and prints the position", async (t) => {
  const { gangway, resources } = await served(t);
  await gangway(`alloc ${POOL} all --amount 4`);
  const onOutput = (text: string) => {
    if (text.startsWith("waiting")) void gangway(`release ${POOL} all`);
  };
  const waited = await gangway(`alloc ${POOL} q1 --wait`, { onOutput });
  assert.equal(waited.exitCode, 0);
  assert.match(waited.stderr, /^waiting at position 1: pool ex:warehouse uses 4 of 4, 1 requested\n/);
  assert.match(waited.stdout, /q1 granted/);
  assert.equal(resources.held.length, 1);
});

test("--wait leaves the waiting line after its timeout, with status 124", async (t) => {
  const { gangway, resources } = await served(t);
  await gangway(`alloc ${POOL} all --amount 4`);
  const late = await gangway(`alloc ${POOL} q1 --wait=50ms`);
  assert.equal(late.exitCode, 124);
  assert.match(late.stderr, /error: timed out/);
  assert.deepEqual([resources.waiting, resources.held.length], [0, 1]);
  const never = await gangway(`alloc ${POOL} q1 --amount 5 --wait`);
  assert.equal(never.exitCode, 3);
  assert.match(never.stderr, /needs 5 of pool ex:warehouse, whose limit is 4/);
});

test("--wait joins the waiting line again after the service was unavailable", async (t) => {
  class Faltering extends MemoryResources {
    falters = 2;

    override async *wait(...of: Parameters<TokenOperations["wait"]>) {
      for await (const answer of super.wait(...of)) {
        yield answer;
        if (this.falters-- > 0) throw new UnavailableError("the quota domain default is being rebuilt");
        await this.release([{ pool: POOL, token: "all", holder: "anonymous", project: null, namespace: null }]);
      }
    }
  }
  const { gangway, resources } = await served(t, new Faltering());
  await gangway(`alloc ${POOL} all --amount 4`);
  const { exitCode, stdout } = await gangway(`alloc ${POOL} q1 --wait`, { clock: hurried() });
  assert.equal(exitCode, 0);
  assert.match(stdout, /q1 granted/);
  assert.deepEqual(
    resources.held.map(({ token }) => token),
    ["q1"],
  );
});

test("--wait outlives a restart after hours in which its position did not change, and no longer outage", async (t) => {
  for (const [openMs, waits] of [
    [7_200_000, true],
    [0, false],
  ] as const) {
    let passedMs = 0;
    const printed = Promise.withResolvers<void>();
    class Restarting extends MemoryResources {
      tries = 0;

      override async *wait(...of: Parameters<TokenOperations["wait"]>) {
        this.tries += 1;
        if (this.tries === 1) for await (const answer of super.wait(...of)) return yield* quiet(answer);
        if (this.tries < 4) throw away();
        await this.release([{ pool: POOL, token: "all", holder: "anonymous", project: null, namespace: null }]);
        yield* super.wait(...of);
      }
    }
    const away = () => new UnavailableError("the service restarts");
    // The position comes once, then nothing, then the connection is lost; what follows it takes a minute and more.
    async function* quiet<T>(answer: T) {
      yield answer;
      await printed.promise;
      passedMs += openMs;
      throw away();
    }
    const clock = { ...hurried(), monotonicMs: () => systemClock().monotonicMs() + passedMs };
    const sleep: typeof clock.sleep = async (ms, signal) => {
      if (openMs === 0) passedMs += 61_000;
      await hurried().sleep(ms, signal);
    };
    const { gangway } = await served(t, new Restarting());
    await gangway(`alloc ${POOL} all --amount 4`);
    const onOutput = () => printed.resolve();
    const { exitCode } = await gangway(`alloc ${POOL} q1 --wait`, { clock: { ...clock, sleep }, onOutput });
    assert.equal(exitCode, waits ? 0 : 4);
  }
});

/** A clock whose sleeps take at most 20 ms. */
function hurried() {
  const clock = systemClock();
  return { ...clock, sleep: (ms: number, signal?: AbortSignal) => clock.sleep(Math.min(ms, 20), signal) };
}

test("--exec holds the token while a program runs, sets the grant's variables, returns its status", async (t) => {
  const { gangway, resources } = await served(t);
  const started: unknown[] = [];
  const startProgram = (argv: readonly string[], variables: Readonly<Record<string, string>>) => {
    started.push(argv, { ...variables, held: resources.held.map(({ fence }) => String(fence)) });
    const program = new Running();
    program.exit(7);
    return program;
  };
  const ran = await gangway(`alloc ${POOL} q1 --exec -- ./nightly.sh --full -o json`, { startProgram });
  assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [7, "", ""]);
  const fence = (started[1] as { GANGWAY_FENCE: string }).GANGWAY_FENCE;
  const variables = { GANGWAY_POOL: POOL, GANGWAY_TOKEN: "q1", GANGWAY_FENCE: fence, held: [fence] };
  assert.deepEqual(started, [["./nightly.sh", "--full", "-o", "json"], variables]);
  assert.equal(resources.held.length, 0);
});

test("--exec runs one argument with white space in the shell, and prints why a program cannot start", async (t) => {
  const { gangway, api } = await served(t);
  const started: (readonly string[])[] = [];
  const startProgram: NonNullable<World["startProgram"]> = (argv, _variables, onFailure) => {
    started.push(argv);
    onFailure("work: not found");
    const program = new Running();
    program.exit(127);
    return program;
  };
  const line = ["alloc", POOL, "q1", "--exec", "./prepare.sh && ./nightly.sh"];
  const ran = await run(line, { address: api.address, startProgram });
  assert.deepEqual([ran.exitCode, ran.stderr], [127, "error: work: not found\n"]);
  await gangway(`alloc ${POOL} q1 --exec ./nightly.sh`, { startProgram });
  assert.deepEqual(started, [["sh", "-c", "./prepare.sh && ./nightly.sh"], ["./nightly.sh"]]);
});

test("--exec does not start the program if the token is refused", async (t) => {
  const { gangway } = await served(t);
  await gangway(`alloc ${POOL} all --amount 4`);
  const startProgram = () => assert.fail("it starts");
  assert.equal((await gangway(`alloc ${POOL} q1 --exec -- true`, { startProgram })).exitCode, 3);
});

test("--exec renews in time, retries while the service is unavailable, and releases at the end", async (t) => {
  const program = new Running();
  class Counting extends MemoryResources {
    renewals = 0;
    refusals = 2;

    override async renew(of: Parameters<TokenOperations["renew"]>[0]) {
      if (++this.renewals === 2) throw new UnavailableError("the database is away");
      if (this.renewals === 4) program.exit(0);
      return super.renew(of);
    }

    override async release(lines: Parameters<TokenOperations["release"]>[0]) {
      if (this.refusals-- > 0) throw new UnavailableError("the database is away");
      return super.release(lines);
    }
  }
  const { gangway, resources } = await served(t, new Counting(), 30_000);
  const ran = await gangway(`alloc ${POOL} q1 --exec -- work`, { startProgram: () => program, clock: hurried() });
  assert.equal(ran.exitCode, 0);
  assert.match(ran.stderr, /^warning: cannot renew token q1, retrying: the database is away\n$/);
  assert.deepEqual(resources.held, []);
});

test("--exec stops the program when its token is lost, with SIGKILL if SIGTERM does not end it", async (t) => {
  for (const [ends, exitCode, signals] of [
    [{ SIGTERM: 143 }, 143, ["SIGTERM"]],
    [{ SIGKILL: 137 }, 137, ["SIGTERM", "SIGKILL"]],
    [{ SIGTERM: 0 }, 3, ["SIGTERM"]],
  ] as const) {
    const { gangway, resources } = await served(t, new MemoryResources(), 30_000);
    const program = new Running(ends);
    const startProgram = () => {
      void resources.forceRelease({ pool: POOL, token: "q1", reason: "a test", actor: "admin" });
      return program;
    };
    const ran = await gangway(`alloc ${POOL} q1 --exec -- work`, { startProgram, clock: hurried() });
    assert.deepEqual([ran.exitCode, program.signals], [exitCode, signals]);
    assert.match(ran.stderr, /^error: lost token q1 of pool ex:warehouse: stopping the program\n$/);
  }
});

test("--exec passes signals on, except those that the terminal has sent to the program itself", async (t) => {
  const { gangway, resources } = await served(t);
  const program = new Running({ SIGTERM: 143 });
  let signal: (taken: TakenSignal) => void = () => assert.fail("nobody takes signals");
  let givenBack = false;
  const world: World = {
    takeSignals: (listener) => {
      signal = listener;
      return () => {
        givenBack = true;
      };
    },
    startProgram: () => {
      setImmediate(() => {
        signal({ name: "SIGINT", fromTerminal: true });
        signal({ name: "SIGHUP", fromTerminal: false });
        signal({ name: "SIGTERM", fromTerminal: false });
      });
      return program;
    },
  };
  const ran = await gangway(`alloc ${POOL} q1 --exec -- work`, world);
  assert.deepEqual([ran.exitCode, program.signals, givenBack], [143, ["SIGHUP", "SIGTERM"], true]);
  assert.deepEqual(resources.held, []);
});

test("a signal before the program starts leaves the waiting line, and no token is held", async (t) => {
  const { gangway, resources } = await served(t);
  await gangway(`alloc ${POOL} all --amount 4`);
  let signal: (taken: TakenSignal) => void = () => assert.fail("nobody takes signals");
  const takeSignals: World["takeSignals"] = (listener) => {
    signal = listener;
    return () => {};
  };
  const onOutput = (text: string) => {
    if (text.startsWith("waiting")) signal({ name: "SIGINT", fromTerminal: true });
  };
  const startProgram = () => assert.fail("it starts");
  const waiting = await gangway(`alloc ${POOL} q1 --wait --exec -- work`, { takeSignals, onOutput, startProgram });
  assert.deepEqual([waiting.exitCode, resources.waiting, resources.held.length], [130, 0, 1]);
});
