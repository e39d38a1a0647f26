/**
 * `npm run simulate -- [--histories N] [--seed S] [--processes one|several] [--laws | --clocks | --losses]
 * [--postgres]`: random histories of the whole service. `--laws`: of worlds that are made for a law each. `--clocks`:
 * all clocks step. `--losses`: clusters fall silent and return. Prints the seed of a history that breaks a law.
 */
import { parseArgs } from "node:util";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";
import { checkedDb, requireNoBreach } from "../../support/locks/checked-db.ts";
import { openTestPostgres, postgresServer } from "../../support/postgres.ts";
import { runClockHistory } from "./clock-history.ts";
import { ALONE, runHistory, SEVERAL } from "./history.ts";
import { runLawHistory } from "./law-history.ts";
import { runLossHistory } from "./loss-history.ts";

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "500" },
    seed: { type: "string", default: "1" },
    processes: { type: "string", default: "one" },
    laws: { type: "boolean", default: false },
    clocks: { type: "boolean", default: false },
    losses: { type: "boolean", default: false },
    postgres: { type: "boolean", default: false },
  },
});
const server = values.postgres ? await postgresServer() : null;
if (values.postgres && server === null) throw new Error("no PostgreSQL server answers: set TEST_DATABASE_URL");
const db = server === null ? checkedDb(await openPglite(null)) : await openTestPostgres(server);
const first = Number(values.seed);
const count = Number(values.histories);
const options = values.processes === "several" ? SEVERAL : ALONE;
const run = async (seed: number): Promise<Readonly<Record<string, number>>> => {
  if (values.clocks) return runClockHistory(db, seed, options);
  if (values.losses) return runLossHistory(db, seed, options);
  return values.laws ? runLawHistory(db, seed, options) : runHistory(db, seed, options);
};
const all = new Map<string, number>();
try {
  for (let seed = first; seed < first + count; seed += 1) {
    const met = await within(`the history of seed ${seed}`, WAIT_MS_MAX, run(seed));
    for (const [what, count] of Object.entries(met)) all.set(what, (all.get(what) ?? 0) + count);
    requireNoBreach();
    if ((seed - first + 1) % 50 === 0) console.log(`${seed - first + 1} histories`);
  }
} finally {
  await db.close();
}
console.log(`met: ${[...all].map(([what, times]) => `${what} ${times}`).join(", ")}`);
console.log(`${count} histories from seed ${first}: every law held`);
