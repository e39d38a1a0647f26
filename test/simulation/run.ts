/** `npm run simulate -- [--histories N] [--seed S]`: random histories of the whole service; prints the seed of one that breaks a law. */
import { parseArgs } from "node:util";
import { openPglite } from "../../src/adapters/store/pglite.ts";
import { runHistory } from "./history.ts";

const { values } = parseArgs({
  options: { histories: { type: "string", default: "500" }, seed: { type: "string", default: "1" } },
});
const db = await openPglite(null);
const first = Number(values.seed);
const count = Number(values.histories);
for (let seed = first; seed < first + count; seed += 1) {
  await runHistory(db, seed);
  if ((seed - first + 1) % 50 === 0) console.log(`${seed - first + 1} histories`);
}
await db.close();
console.log(`${count} histories from seed ${first}: every law held`);
