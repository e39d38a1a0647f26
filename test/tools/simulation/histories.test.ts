import assert from "node:assert/strict";
import { test } from "node:test";
import { openMemoryDb } from "../../support/databases.ts";
import { openTestPostgres, postgresServer } from "../../support/postgres.ts";
import { ALONE, type HistoryOptions, type Met, runHistory, SEVERAL } from "./history.ts";
import { runLawHistory } from "./law-history.ts";

/**
 * How many histories run with one process of each role. With several processes, which take longer, a third of that.
 * `npm run simulate` runs as many as you ask for.
 */
const HISTORIES = Number(process.env["GANGWAY_HISTORIES"] ?? 3);
/** From this seed on, few histories meet all events. */
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 3);

/** So many histories meet every event that a law is about, but those that are rare. */
const MANY = 6;
const RARE: readonly string[] = ["offPlan"];
/** So large a part of the pods may come to other nodes than planned, since others take nodes meanwhile. */
const OFF_PLAN_MAX = 0.05;

function requireMet(all: readonly Met[]): void {
  const sum = (what: keyof Met) => all.reduce((total, met) => total + met[what], 0);
  const missing = Object.keys(all[0] ?? {}).filter((what) => !RARE.includes(what) && sum(what as keyof Met) === 0);
  assert.deepEqual(missing, [], "events that no history met");
  const [onPlan, offPlan] = [sum("onPlan"), sum("offPlan")];
  assert.ok(offPlan <= OFF_PLAN_MAX * (onPlan + offPlan), `${offPlan} pods off plan, ${onPlan} on plan`);
}

const kinds: Record<string, { of: HistoryOptions; share: number; args: string }> = {
  "in one process that is killed now and then": { of: ALONE, share: 1, args: "" },
  "with two APIs, two planners and three workers, one killed every few seconds": {
    of: SEVERAL,
    share: 1 / 3,
    args: "--processes several ",
  },
};

/** `most`: the most histories of each kind. */
function histories(where: string, openDb: typeof openMemoryDb, most: number): void {
  for (const [what, { of, share, args }] of Object.entries(kinds)) {
    const count = Math.min(most, Math.ceil(HISTORIES * share));
    if (count === 0) continue;
    test(`histories ${what} break no law, on ${where}`, async (t) => {
      const last = FIRST + count - 1;
      t.diagnostic(
        `seeds ${FIRST} to ${last}; one alone: node test/tools/simulation/run.ts ${args}--histories 1 --seed S`,
      );
      const db = await openDb();
      t.after(() => db.close());
      const all: Met[] = [];
      for (let seed = FIRST; seed <= last; seed += 1) all.push(await runHistory(db, seed, of));
      if (all.length >= MANY) requireMet(all);
    });
  }
}

const server = await postgresServer();
const openServer = server === null ? null : () => openTestPostgres(server);

test("histories of worlds that are made for a law do not break it", async (t) => {
  // One for each of the three laws, and as many again for each eight of the others.
  const last = FIRST + 3 * Math.ceil(HISTORIES / 8) - 1;
  t.diagnostic(`seeds ${FIRST} to ${last}; one alone: node test/tools/simulation/run.ts --laws --histories 1 --seed S`);
  const db = await (openServer ?? openMemoryDb)();
  t.after(() => db.close());
  let preempted = 0;
  for (let seed = FIRST; seed <= last; seed += 1) preempted += (await runLawHistory(db, seed, ALONE)).preempted;
  assert.ok(preempted > 0, "nobody was preempted");
});

// The laws are those of both databases, and a history takes half as long on a server. There, concurrent statements also
// run in an order that no seed decides. One history of each kind shows that the embedded database is no exception.
histories("PGlite", openMemoryDb, openServer === null ? Number.POSITIVE_INFINITY : 1);
if (openServer !== null) histories("PostgreSQL", openServer, Number.POSITIVE_INFINITY);
