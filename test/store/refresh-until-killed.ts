/**
 * A process that computes the gangs of a database of the last release, and hangs within the third batch after it has
 * written it. So it is killed in the middle of a transaction.
 */
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { refreshGangs } from "../../src/adapters/store/planning/refresh-gangs.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const db = await openPglite(process.argv[2] ?? "");
let batches = 0;
const hanging: Db = {
  ...db,
  tx: (fn) =>
    db.tx(async (tx) => {
      const result = await fn(tx);
      batches += 1;
      if (batches === 3) await hang();
      return result;
    }),
};
await refreshGangs(hanging, OWN_KINDS);

function hang(): Promise<never> {
  process.stdout.write("hangs\n");
  return new Promise(() => setInterval(() => undefined, 1_000));
}
