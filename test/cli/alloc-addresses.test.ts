/** `alloc --exec` while services do not answer: the token is kept if any address answers, else given up in time. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ChildProgram } from "../../src/cli/shell/deps.ts";
import { startFixture } from "../api/fixture.ts";
import { MemoryResources } from "../api/memory-resources.ts";
import { WAIT_MS_MAX, waitUntil, within } from "../support/bounded.ts";
import { run } from "./harness.ts";

const POOL = "ex:warehouse";
const LEASE_MS = 9_000;

/** A program that ends by SIGTERM, or when the test says so. */
class Program implements ChildProgram {
  readonly signals: NodeJS.Signals[] = [];
  readonly #end = Promise.withResolvers<number>();
  readonly ended = this.#end.promise;

  signal(name: NodeJS.Signals): void {
    this.signals.push(name);
    this.#end.resolve(143);
  }

  exit(code: number): void {
    this.#end.resolve(code);
  }
}

/** Two services over the same tokens. `hangs` says which of them, by their numbers, never answers a renewal. */
async function twoServices(t: TestContext, hangs: (service: number) => boolean) {
  const renewals: number[] = [];
  let leasedAtMs = performance.now();
  const shared = new MemoryResources();
  const settings = { projectDefault: null, namespaceDefault: null, queue: null, domain: null, maxLeaseMs: null };
  const pool = { name: POOL, quota: 4, defaultLeaseMs: LEASE_MS, durability: null, ...settings };
  await shared.registerPool(pool, 0, "admin");
  const addresses: string[] = [];
  for (const service of [0, 1]) {
    const resources = Object.create(shared) as MemoryResources;
    resources.allocate = (of) => shared.allocate(of);
    resources.release = (of) => shared.release(of);
    resources.getPool = (name) => shared.getPool(name);
    resources.renew = async (of) => {
      if (hangs(service)) return new Promise(() => {});
      // As a reaper does.
      if (performance.now() - leasedAtMs > LEASE_MS) return [{ kind: "lost" }];
      leasedAtMs = performance.now();
      renewals.push(service);
      return shared.renew(of);
    };
    addresses.push((await startFixture(t, { resources })).api.address);
  }
  return { address: addresses.join(), renewals, shared };
}

test("while the service that it talks to hangs, the other one renews the token in time", async (t) => {
  let hanging: number | null = null;
  // The first service that is asked hangs from then on.
  const hangs = (service: number) => {
    hanging ??= service;
    return service === hanging;
  };
  const { address, renewals, shared } = await twoServices(t, hangs);
  const program = new Program();
  const ran = run(["alloc", POOL, "q1", "--exec", "--", "work"], { address, startProgram: () => program });
  await waitUntil("the other service has renewed the token", () => {
    assert.deepEqual(program.signals, []);
    return renewals.length > 1;
  });
  program.exit(7);
  const { exitCode, stderr } = await within("the end of the command", WAIT_MS_MAX, ran);
  assert.deepEqual([exitCode, program.signals], [7, []]);
  assert.match(stderr, /^warning: cannot renew token q1, retrying: no answer within/);
  assert.ok(!renewals.includes(hanging ?? -1));
  assert.deepEqual(shared.held, []);
});

test("when no service answers, the program is stopped once the lease is over by the command's own clock", async (t) => {
  const { address } = await twoServices(t, () => true);
  const program = new Program();
  const startedMs = performance.now();
  const line = ["alloc", POOL, "q1", "--lease", "3s", "--exec", "--", "work"];
  const { exitCode, stderr } = await within(
    "the end of the command",
    WAIT_MS_MAX,
    run(line, { address, startProgram: () => program }),
  );
  assert.ok(performance.now() - startedMs >= 3_000);
  assert.deepEqual([exitCode, program.signals], [143, ["SIGTERM"]]);
  assert.match(stderr, /\nerror: lost token q1 of pool ex:warehouse: its lease is over, .*: stopping the program\n$/);
});
