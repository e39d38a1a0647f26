import type { ForcedRelease, ForceReleaseAnswer } from "../../../core/quota/admin.ts";
import type { ReleaseOutcome } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { releaseTokensIn } from "../ledger/release-tokens.ts";
import { appendAudit } from "./audit.ts";

type ForceOutcome =
  | Extract<ReleaseOutcome, { kind: "released" | "notHeld" }>
  | (Extract<ForceReleaseAnswer, { kind: "liveAdmission" }> & { readonly admission: number });

/** Releases a token of any holder except a job's live admission, and writes the audit entry in the same transaction. */
export function forceRelease(db: Db, forced: ForcedRelease, nowMs: number): Promise<ForceOutcome> {
  const { pool, token, reason, actor } = forced;
  const request = { pool, token, holder: null, project: null, namespace: null, fence: null, reason: "forced" as const };
  return db.tx(async (tx) => {
    const [outcome] = await releaseTokensIn(tx, { requests: [request], counts: () => true, nowMs });
    if (outcome === undefined || outcome.kind === "notHeld") return { kind: "notHeld" };
    if (outcome.kind === "liveAdmission") {
      return { kind: "liveAdmission", job: await jobName(tx, outcome.jobUid), admission: outcome.admission };
    }
    if (outcome.kind !== "released") throw new Error(`a forced release was refused: ${outcome.kind}`);
    const { fence, ...allocation } = outcome.allocation;
    await appendAudit(tx, {
      timeMs: nowMs,
      actor,
      action: "ForceRelease",
      subject: `${pool}/${token}`,
      reason,
      details: { ...allocation, fence: fence.toString() },
    });
    return outcome;
  });
}

async function jobName(tx: Executor, jobUid: string): Promise<string> {
  const rows = await tx.query<{ name: string }>("select namespace || '/' || name as name from jobs where uid = $1", [
    jobUid,
  ]);
  return onlyRow(rows).name;
}
