/** The planner's thread, on real PostgreSQL. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { PlannerThread } from "../../src/compose/planner-thread.ts";
import { RoundStopped } from "../../src/core/plan/model/round-bounds.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { NOW } from "../store/jobs.ts";
import { freshPlanner } from "../store/planner-fixture.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { createDatabase, databaseUrl, postgresOptions, postgresServer } from "../support/postgres.ts";

const server = await postgresServer();

describe("the planner's thread", { skip: server === null && "no PostgreSQL server" }, () => {
  let db: Db;
  let url: string;
  let drop: () => Promise<void>;
  before(async () => {
    ({ url, drop } = await createDatabase(server ?? ""));
    db = await openPostgres(postgresOptions(url));
  });
  after(async () => {
    await db.close();
    await drop();
  });

  function startThread(of: { isStopped?: () => boolean; url?: string } = {}) {
    const { connectTimeoutMs, statementTimeoutMs, idleTimeoutMs } = postgresOptions(url);
    const at = of.url ?? url;
    const limits = { poolMax: 2, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs };
    return new PlannerThread({
      server: { url: at, directUrl: at, ...limits },
      plugins: [],
      reservationsPerPool: 1,
      workingDirectory: process.cwd(),
      isStopped: of.isStopped ?? (() => false),
    });
  }

  test("decides as a planner in this process does, and follows changes", async () => {
    const { store, submit, plannerEpoch } = await freshPlanner(db);
    const thread = startThread();
    const here = fleetPlanner(store.planner);
    for (let round = 0; round < 3; round += 1) {
      const job = await submit();
      const [mine, other] = await Promise.all(
        [thread, here].map(async (fleet) => {
          const { planMs: _, ...decision } = await fleet.decide({ nowMs: NOW, plannerEpoch });
          return decision;
        }),
      );
      assert.deepEqual(mine, other);
      assert.ok(mine?.refusals.some(({ refusal }) => refusal.jobUid === job.uid));
    }
    assert.deepEqual(await thread.check(), { wrong: [] });
    await thread.close();
  });

  test("a thread that has ended is started again with the next decision, with a new state", async () => {
    const { submit, plannerEpoch } = await freshPlanner(db);
    const thread = startThread();
    await submit();
    for (let round = 0; round < 2; round += 1) {
      const { depths } = await thread.decide({ nowMs: NOW, plannerEpoch });
      assert.equal(depths.get("research"), 1);
      const asked = thread.check();
      thread.rest();
      await assert.rejects(asked, RoundStopped);
    }
  });

  test("stops once the lease is lost", async () => {
    const { plannerEpoch } = await freshPlanner(db);
    let isLost = true;
    const thread = startThread({ isStopped: () => isLost });
    await assert.rejects(thread.decide({ nowMs: NOW, plannerEpoch }), RoundStopped);
    isLost = false;
    assert.equal((await thread.decide({ nowMs: NOW, plannerEpoch })).more, false);
    await thread.close();
  });

  test("says so if its database cannot be reached", async () => {
    const thread = startThread({ url: databaseUrl("postgres://postgres@127.0.0.1:1", "none") });
    await assert.rejects(thread.decide({ nowMs: NOW, plannerEpoch: 1 }), UnavailableError);
    await thread.close();
  });
});
