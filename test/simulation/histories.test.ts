import { test } from "node:test";
import { openPglite } from "../../src/adapters/store/pglite.ts";
import { runHistory } from "./history.ts";

const HISTORIES = Number(process.env["GANGWAY_HISTORIES"] ?? 60);

test(`${HISTORIES} histories with lost, doubled and late calls break no law`, async (t) => {
  const first = Number(process.env["GANGWAY_SEED"] ?? 1);
  t.diagnostic(
    `seeds ${first} to ${first + HISTORIES - 1}; one alone: node test/simulation/run.ts --histories 1 --seed S`,
  );
  const db = await openPglite(null);
  t.after(() => db.close());
  for (let seed = first; seed < first + HISTORIES; seed += 1) await runHistory(db, seed);
});
