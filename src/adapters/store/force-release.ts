import type { ReleaseOutcome } from "../../core/quota/ledger.ts";
import { appendAudit } from "./audit.ts";
import { type Db, type Executor, onlyRow } from "./db.ts";
import { releaseTokensIn } from "./release-tokens.ts";

export type ForcedRelease = {
  readonly pool: string;
  readonly token: string;
  readonly reason: string;
  readonly actor: string;
};

export type ForceOutcome =
  | Extract<ReleaseOutcome, { kind: "released" | "notHeld" }>
  /** `job` is `namespace/name`. */
  | { readonly kind: "liveAdmission"; readonly job: string; readonly admission: number };

/** Releases a token whoever holds it, and notes in the same transaction who did so and why. The live admission of a job keeps its tokens. */
export function forceRelease(db: Db, forced: ForcedRelease, nowMs: number): Promise<ForceOutcome> {
  const { pool, token, reason, actor } = forced;
  const request = { pool, token, holder: null, project: null, namespace: null, fence: null, reason: "forced" as const };
  return db.tx(async (tx) => {
    const [outcome] = await releaseTokensIn(tx, [request], nowMs);
    if (outcome === undefined || outcome.kind === "notHeld") return { kind: "notHeld" };
    if (outcome.kind === "liveAdmission") {
      return { kind: "liveAdmission", job: await jobName(tx, outcome.jobUid), admission: outcome.admission };
    }
    if (outcome.kind !== "released") throw new Error(`a forced release was refused: ${outcome.kind}`);
    const { fence, ...line } = outcome.line;
    await appendAudit(tx, {
      timeMs: nowMs,
      actor,
      action: "ForceRelease",
      subject: `${pool}/${token}`,
      reason,
      details: { ...line, fence: fence.toString() },
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
