/**
 * A process that makes jobs in the database it is given, one after the other, and says the name of each that was
 * acknowledged.
 */
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { NOW, newJob, sentOf } from "./jobs.ts";

const db = await openPglite(process.argv[2] ?? "");
const clock = { nowMs: () => NOW };
const { intake, admin } = createStore(db, {
  clock,
  kinds: OWN_KINDS,
  openNamespaces: true,
  defaultQueue: "research",
  onAppended: () => {},
});
await admin.ensureQueue({ name: "research", strategy: "BEST_EFFORT_FIFO", quotas: [] });
for (let at = 0; ; at += 1) {
  const job = newJob({ name: `job-${at}` });
  const outcome = await intake.createJob({ job, sent: sentOf(job), requestId: `r-${at}` });
  process.stdout.write(`${outcome.kind} ${job.name}\n`);
}
