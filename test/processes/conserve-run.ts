/**
 * Runs the combinations of servers, quotas and Redis for longer than the tests do: `npm run conserve -- [--calls N]
 * [--callers N] [--rounds N] [--seed N] [--only TEXT]`. Needs PostgreSQL (TEST_DATABASE_URL, or the usual port) and
 * redis-server.
 */
import { parseArgs } from "node:util";
import { postgresServer } from "../support/postgres.ts";
import { conserve } from "./conserve.ts";
import { COMBINATIONS, strikeOf } from "./conserve-cases.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "40" },
    callers: { type: "string", default: "512" },
    rounds: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const server = await postgresServer();
if (server === null) throw new Error("no PostgreSQL server answers: set TEST_DATABASE_URL");
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const combination of COMBINATIONS) {
    const { servers, quota, topology } = combination;
    const name = `${servers} servers, quota ${quota}, ${topology}`;
    if (!name.includes(values.only)) continue;
    const seed = Number(values.seed) + round;
    console.log(`${name}, seed ${seed}`);
    const of = { ...combination, callers: Number(values.callers), callsEach: Number(values.calls), seed };
    console.log(`  ${JSON.stringify(await conserve(server, of, strikeOf(combination)))}`);
  }
}
