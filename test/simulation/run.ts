/**
 * `npm run simulate -- [--histories N] [--seed S] [--processes one|several] [--database URL]`: random histories of the whole service; prints the
 * seed of one that breaks a law. A database that is named is emptied.
 */
import { parseArgs } from "node:util";
import { openPglite } from "../../src/adapters/store/pglite.ts";
import { openPostgres } from "../../src/adapters/store/postgres.ts";
import { postgresOptions } from "../support/postgres.ts";
import { ALONE, runHistory, SEVERAL } from "./history.ts";

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "500" },
    seed: { type: "string", default: "1" },
    processes: { type: "string", default: "one" },
    database: { type: "string" },
  },
});
const db =
  values.database === undefined ? await openPglite(null) : await openPostgres(postgresOptions(values.database));
const first = Number(values.seed);
const count = Number(values.histories);
const options = values.processes === "several" ? SEVERAL : ALONE;
for (let seed = first; seed < first + count; seed += 1) {
  await runHistory(db, seed, options);
  if ((seed - first + 1) % 50 === 0) console.log(`${seed - first + 1} histories`);
}
await db.close();
console.log(`${count} histories from seed ${first}: every law held`);
