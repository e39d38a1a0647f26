import type { ForcedRelease, ForceReleaseAnswer } from "../../core/quota/admin.ts";
import { confirmBriefly, freeBriefly } from "../release.ts";
import type { AdminPorts } from "./admin-ports.ts";

/** Takes a token from its holder, unless that is a job's live admission. Writes an audit entry with the reason. */
export async function forceRelease(ports: AdminPorts, forced: ForcedRelease): Promise<ForceReleaseAnswer> {
  const { cache, domains, store } = ports;
  const { pool, token, reason, actor } = forced;
  const settings = await cache.pool(pool);
  if (settings === null) return { kind: "unknownPool" };
  const domain = await domains.domain(settings);
  if (settings.durability === "LEDGER") {
    const outcome = await store.forceRelease(forced);
    if (outcome.kind !== "released") return outcome;
    await confirmBriefly(domain);
    return { kind: "released" };
  }
  const request = { pool, token, holder: null, project: null, namespace: null, fence: null };
  const outcome = await domain.release({ ...request, reason: "forced" });
  if (outcome.kind !== "released") return { kind: "notHeld" };
  const { fence, ...allocation } = outcome.allocation;
  // The audit entry comes first: an entry too many does less harm than a token that vanished without one.
  await store.appendAudit({
    actor,
    action: "ForceRelease",
    subject: `${pool}/${token}`,
    reason,
    details: { ...allocation, fence: fence.toString() },
  });
  await freeBriefly(domain, [outcome.ref]);
  return { kind: "released" };
}
