import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Counters } from "../../src/core/quota/counters.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import type { TestStore } from "../store/db.ts";
import { onEachManager } from "./each-manager.ts";
import { allocation, NO_WISHES, POOL, type TestManager } from "./manager.ts";

const CALLERS = 256;
/** Each audit takes some hundredths of a second beside this many callers. `AUDITS=1000` makes a longer run. */
const AUDITS = Number(process.env["AUDITS"] ?? 40);
const QUOTA = 1_000;

onEachManager((start) => {
  let store: TestStore;
  let at: TestManager;
  let callers: Callers;
  beforeEach(async () => {
    ({ at, store } = await start());
    await at.manager.registerPool({ name: POOL, ...NO_WISHES, quota: QUOTA, namespaceDefault: 60 }, 0, "admin");
    callers = new Callers(at);
  });
  afterEach(async () => {
    await callers.stop();
  });
  const audit = async (dryRun: boolean, pool: string | null = null) => {
    const answer = await at.manager.reconcile({ pool, dryRun, actor: "admin" });
    assert.ok("differences" in answer);
    return answer;
  };

  test(`${AUDITS} audits beside ${CALLERS} callers find nothing in a healthy domain, and rebuild nothing`, async () => {
    const { epochs } = await at.domain();
    const epoch = await epochs.openEpoch(5_000);
    callers.start();
    // The audits go on until the callers were beside them too.
    for (let run = 0; run < AUDITS || callers.granted < CALLERS; run += 1) {
      const answer = await audit(run % 2 === 0, run % 3 === 0 ? POOL : null);
      assert.deepEqual(answer, { differences: [], repaired: false, epoch });
      if (run % 10 === 0) await at.reap();
    }
    assert.equal(epochs.current, epoch);
    assert.deepEqual(
      at.reported.filter(({ event }) => event === "domainClosed"),
      [],
    );
  });

  test("every audit beside callers finds a wrong counter, and one that may repair mends it", async () => {
    const { epochs, counters } = await at.domain();
    callers.start();
    for (const harm of [ghost, loss]) {
      const epoch = await epochs.openEpoch(5_000);
      await harm(counters, { epoch, store, at });
      for (let run = 0; run < 5; run += 1) {
        const { differences } = await audit(true);
        assert.ok(
          differences.some(({ kind }) => kind === "sumDiffers"),
          `${harm.name} ${run}: ${JSON.stringify(differences)}`,
        );
      }
      const repaired = await audit(false);
      assert.ok(repaired.repaired && repaired.epoch > epoch, harm.name);
      assert.deepEqual((await audit(true)).differences, [], harm.name);
    }
  });

  test("the reaper finds a wrong counter beside callers, and leaves right ones alone", async () => {
    const { epochs, counters } = await at.domain();
    const epoch = await epochs.openEpoch(5_000);
    callers.start();
    await at.reap();
    assert.equal(epochs.current, epoch);
    await ghost(counters, { epoch });
    at.restartReapers();
    await at.reap();
    assert.ok((await epochs.openEpoch(5_000)) > epoch);
  });
});

/** The counters hold a token that the ledger never had. */
async function ghost(counters: Counters, { epoch }: { readonly epoch: number }): Promise<void> {
  const lease = { ...allocation({ token: "ghost", project: "ghosts" }), leaseMs: null };
  const holder = { kind: "caller", name: "x" } as const;
  const grant = await counters.grant({ epoch, holder, allocations: [lease], priority: 9, waiter: null });
  assert.ok(grant.kind === "granted");
  await counters.confirm(epoch, [{ pool: POOL, token: "ghost", fence: grant.fence }]);
}

/** The counters lose a token that the ledger has. */
async function loss(
  counters: Counters,
  of: { readonly epoch: number; readonly at: TestManager; readonly store: TestStore },
): Promise<void> {
  const kept = allocation({ token: "kept", project: "losers" });
  const answer = await of.at.manager.allocate({ allocations: [kept], holder: "x", priority: 9 });
  assert.ok(answer.kind === "granted", answer.kind);
  await counters.free(of.epoch, [{ pool: POOL, token: "kept", fence: answer.fence }]);
}

/** Callers that take and give back tokens under the same names, again and again. Some are refused. */
class Callers {
  readonly #at: TestManager;
  #running: readonly Promise<void>[] = [];
  #stopped = false;
  granted = 0;

  constructor(at: TestManager) {
    this.#at = at;
  }

  start(): void {
    this.#running = Array.from({ length: CALLERS }, (_, at) => this.#call(at));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #call(index: number): Promise<void> {
    const { manager } = this.#at;
    const token = `token-${index}`;
    const holder = `caller-${index}`;
    const project = index % 3 === 0 ? "vision" : "speech";
    while (!this.#stopped) {
      const asked = allocation({ token, amount: 1 + (index % 2), project });
      try {
        const answer = await manager.allocate({ allocations: [asked], holder, priority: 0 });
        if (answer.kind === "granted") this.granted += 1;
        await manager.release([{ pool: POOL, token, holder, project: null, namespace: null }]);
      } catch (error) {
        // While the counters are rebuilt, grants are refused. A release and a grant of one token may also meet.
        assert.ok(error instanceof UnavailableError, String(error));
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
