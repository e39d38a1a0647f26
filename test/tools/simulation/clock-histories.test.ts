import assert from "node:assert/strict";
import { test } from "node:test";
import { openMemoryDb } from "../../support/databases.ts";
import { openTestPostgres, postgresServer } from "../../support/postgres.ts";
import { runClockHistory } from "./clock-history.ts";
import type { ClockMet } from "./clock-laws.ts";
import { ALONE, type HistoryOptions, SEVERAL } from "./history.ts";

/** How many histories run. `npm run simulate -- --clocks` runs as many as you ask for. */
const HISTORIES = Number(process.env["GANGWAY_CLOCK_HISTORIES"] ?? 40);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);
/** So many histories meet every event that a law is about. */
const MANY = 30;

const server = await postgresServer();
const kinds: Record<string, { of: HistoryOptions; share: number; args: string }> = {
  "with one process of each role": { of: ALONE, share: 0.8, args: "" },
  "with several processes that are killed": { of: SEVERAL, share: 0.2, args: "--processes several " },
};

for (const [what, { of, share, args }] of Object.entries(kinds)) {
  test(`no limit of time is over early while all clocks step, ${what}`, async (t) => {
    const last = FIRST + Math.ceil(HISTORIES * share) - 1;
    t.diagnostic(
      `seeds ${FIRST} to ${last}; one: node test/tools/simulation/run.ts --clocks ${args}--histories 1 --seed S`,
    );
    // The same laws hold on both; a history takes half as long on a server.
    const db = server === null ? await openMemoryDb() : await openTestPostgres(server);
    t.after(() => db.close());
    const all: ClockMet[] = [];
    for (let seed = FIRST; seed <= last; seed += 1) all.push(await runClockHistory(db, seed, of));
    if (all.length < MANY) return;
    const missing = Object.keys(all[0] ?? {}).filter((met) => all.every((one) => one[met as keyof ClockMet] === 0));
    assert.deepEqual(missing, [], "events that no history met");
  });
}
