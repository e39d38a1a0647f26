/** A short form of the scenario on three real API servers. No time is judged: `npm run lost-scenario` prints them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { controlPlaneBuilt } from "../../kube/build.ts";
import { postgresServer } from "../../support/postgres.ts";
import { hasRedisServer } from "../../support/redis-server.ts";
import { runLostScenario } from "./scenario.ts";

const postgres = await postgresServer();
const lacks = !controlPlaneBuilt() || postgres === null || !hasRedisServer();

test("gangs leave a dead cluster once and keep to one that returns; all end, and no token is left", {
  skip: lacks && "needs npm run kube:build, PostgreSQL and redis-server",
}, async () => {
  const found = await runLostScenario(
    {
      ...{ postgres: postgres ?? "", seed: 7, long: 9, short: 6, resumed: 6, nodes: 4 },
      ...{ blackHoleMs: 18_000, lostAfterSeconds: 60, moveAfterSeconds: 20, leaseSeconds: 10 },
    },
    () => {},
  );
  assert.ok(found.inDead > 0, "gangs ran in the dead cluster");
  assert.equal(found.elsewhereMs.length, found.inDead);
  assert.ok(found.createBeforeMs.length > 0 && found.createAfterMs.length > 0 && found.createBesideSlowMs.length > 0);
  assert.ok(found.placed > 0);
  assert.deepEqual(
    { left: found.leftBlackHole, twice: found.ranTwice, tokens: found.tokensAtEnd, unended: found.unended },
    { left: 0, twice: [], tokens: 0, unended: 0 },
  );
  assert.equal(found.resumedMs.length, 6);
});
