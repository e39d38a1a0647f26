import { test } from "node:test";
import { onPostgres, openMemoryDb } from "../support/databases.ts";
import { runHistory } from "./history.ts";

const HISTORIES = Number(process.env["GANGWAY_HISTORIES"] ?? 60);
/** On a server statements of one moment come in an order that no seed decides: fewer, to see that none of it matters. */
const SERVER_HISTORIES = Math.ceil(HISTORIES / 6);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);

test(`${HISTORIES} histories with lost, doubled and late calls break no law`, async (t) => {
  t.diagnostic(
    `seeds ${FIRST} to ${FIRST + HISTORIES - 1}; one alone: node test/simulation/run.ts --histories 1 --seed S`,
  );
  const db = await openMemoryDb();
  t.after(() => db.close());
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed += 1) await runHistory(db, seed);
});

onPostgres((openDb) => {
  test(`${SERVER_HISTORIES} histories with lost, doubled and late calls break no law`, async (t) => {
    t.diagnostic(
      `seeds ${FIRST} to ${FIRST + SERVER_HISTORIES - 1}; one alone: node test/simulation/run.ts --postgres --histories 1 --seed S`,
    );
    const db = await openDb();
    t.after(() => db.close());
    for (let seed = FIRST; seed < FIRST + SERVER_HISTORIES; seed += 1) await runHistory(db, seed);
  });
});
