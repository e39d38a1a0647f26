/** Clusters after a restore: nothing is deleted there that the restored records do not know, until somebody says so. */
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { Db } from "../db/db.ts";
import { appendAudit } from "./audit.ts";
import { getCluster } from "./clusters.ts";

/** Lets what the records do not know in a cluster be deleted. Changes nothing in a cluster that is adopted. */
export function adoptCluster(db: Db, name: string, nowMs: number): Promise<ChangeOutcome<ClusterRecord>> {
  return db.tx(async (tx) => {
    const adopted = await tx.query<{ before: number }>(ADOPT, [name]);
    const record = await getCluster(tx, name);
    if (record === null) return { kind: "notFound" };
    for (const { before } of adopted) {
      const details = { before: { unadoptedSince: before }, after: { unadoptedSince: null } };
      await appendAudit(tx, { timeMs: nowMs, action: "AdoptCluster", subject: name, details });
    }
    return { kind: "done", record };
  });
}

const ADOPT = `
with held as (
  select name, unadopted_ms from clusters
   where name = $1 and forgotten_ms is null and unadopted_ms is not null for no key update
)
update clusters c set unadopted_ms = null, version = version + 1 from held where c.name = held.name
returning held.unadopted_ms as before`;
