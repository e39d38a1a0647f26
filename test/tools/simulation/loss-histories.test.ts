import assert from "node:assert/strict";
import { test } from "node:test";
import { openMemoryDb } from "../../support/databases.ts";
import { openTestPostgres, postgresServer } from "../../support/postgres.ts";
import { ALONE, type HistoryOptions, SEVERAL } from "./history.ts";
import { type LossMet, runLossHistory } from "./loss-history.ts";

/** How many histories run with one process of each role. `npm run simulate -- --losses` runs as many as you ask for. */
const HISTORIES = Number(process.env["GANGWAY_HISTORIES"] ?? 6);
/** From this seed on, few histories meet all events. */
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 10);
/** So many histories meet every event. */
const MANY = 6;

const kinds: Record<string, { of: HistoryOptions; count: number; args: string }> = {
  "in one process that is killed now and then": { of: ALONE, count: HISTORIES, args: "" },
  "with several processes of each role": {
    of: SEVERAL,
    count: Math.ceil(HISTORIES / 3),
    args: "--processes several ",
  },
};

for (const [what, { of, count, args }] of Object.entries(kinds)) {
  test(`histories of clusters that fall silent break no law, ${what}`, async (t) => {
    const last = FIRST + count - 1;
    const again = `node test/tools/simulation/run.ts --losses ${args}--histories 1 --seed S`;
    t.diagnostic(`seeds ${FIRST} to ${last}; one alone: ${again}`);
    const server = await postgresServer();
    const db = await (server === null ? openMemoryDb() : openTestPostgres(server));
    t.after(() => db.close());
    const all: LossMet[] = [];
    for (let seed = FIRST; seed <= last; seed += 1) all.push(await runLossHistory(db, seed, of));
    if (all.length < MANY) return;
    const missing = Object.keys(all[0] ?? {}).filter((name) => {
      return name !== "stayed" && all.every((met) => met[name as keyof LossMet] === 0);
    });
    assert.deepEqual(missing, [], "events that no history met");
  });
}
