import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { conserve } from "./conserve.ts";
import { COMBINATIONS, strikeOf } from "./conserve-cases.ts";

const server = await postgresServer();
const CALLERS = 512;
/** `npm run conserve` makes twenty times as many. */
const CALLS_EACH = 2;

describe("tokens are conserved", { skip: server === null || !hasRedisServer() }, () => {
  for (const [at, combination] of COMBINATIONS.entries()) {
    const { servers, quota, topology } = combination;
    test(`by ${servers} servers with a quota of ${quota} on Redis (${topology}), for ${CALLERS} callers`, async (t) => {
      const of = { ...combination, callers: CALLERS, callsEach: CALLS_EACH, seed: at + 1 };
      const outcome = await conserve(server ?? "", of, strikeOf(combination));
      t.diagnostic(JSON.stringify(outcome));
      assert.ok(outcome.granted > 0 && outcome.looks > 1);
    });
  }
});
