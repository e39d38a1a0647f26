import type { AdminPorts } from "./admin-ports.ts";
import { freeBriefly } from "./release.ts";

export type Forced = { readonly pool: string; readonly token: string; readonly reason: string; readonly actor: string };

type ForceAnswer =
  | { readonly kind: "released" | "notHeld" | "unknownPool" }
  | { readonly kind: "liveAdmission"; readonly job: string };

/** Takes a token from whoever holds it, and notes who did so and why; not from the live admission of a job. */
export async function forceRelease({ facts, domains, store }: AdminPorts, forced: Forced): Promise<ForceAnswer> {
  const { pool, token, reason, actor } = forced;
  const settings = await facts.pool(pool);
  if (settings === null) return { kind: "unknownPool" };
  const desk = await domains.desk(settings);
  if (settings.durability === "LEDGER") {
    const outcome = await store.forceRelease(forced);
    if (outcome.kind !== "released") return outcome;
    await freeBriefly(desk, [outcome.ref]);
    return { kind: "released" };
  }
  const request = { pool, token, holder: null, project: null, namespace: null, fence: null };
  const outcome = await desk.release({ ...request, reason: "forced" });
  if (outcome.kind !== "released") return { kind: "notHeld" };
  const { fence, ...line } = outcome.line;
  // Noted first: a token that is gone without a word of who took it would be worse than a word too many.
  await store.appendAudit({
    actor,
    action: "ForceRelease",
    subject: `${pool}/${token}`,
    reason,
    details: { ...line, fence: fence.toString() },
  });
  await freeBriefly(desk, [outcome.ref]);
  return { kind: "released" };
}
