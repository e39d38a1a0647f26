import { after, before, test } from "node:test";
import type { Db } from "../../src/adapters/store/db.ts";
import { onEachDatabase } from "../support/databases.ts";
import { ALONE, runHistory, SEVERAL } from "./history.ts";

const HISTORIES = Number(process.env["GANGWAY_HISTORIES"] ?? 30);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);

const kinds = {
  "lost, doubled and late calls and a process that is killed now and then": { of: ALONE, processes: "one" },
  "two APIs, two planners and three workers, one of them killed every few seconds": {
    of: SEVERAL,
    processes: "several",
  },
};

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  for (const [what, { of, processes }] of Object.entries(kinds)) {
    test(`histories with ${what} break no law`, async (t) => {
      const last = FIRST + Math.ceil(HISTORIES / (of === SEVERAL ? 3 : 1)) - 1;
      const alone = `node test/simulation/run.ts --histories 1 --processes ${processes} --seed S`;
      t.diagnostic(`seeds ${FIRST} to ${last}; one of them: ${alone}`);
      for (let seed = FIRST; seed <= last; seed += 1) await runHistory(db, seed, of);
    });
  }
});
