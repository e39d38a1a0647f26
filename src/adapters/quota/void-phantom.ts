import type { HeldToken, Holder, LineRef } from "../../core/quota/counters.ts";
import { sameHolder } from "../../core/quota/lines.ts";
import type { Desk } from "./desk.ts";
import { refOf } from "./domain-ledger.ts";

/** `voided`: it is the caller's to free. `live`: its commit was faster. */
export type Phantom = { readonly kind: "none" } | { readonly kind: "voided" | "live"; readonly ref: LineRef };

/** A token that the counters hold for its holder by a grant that nobody acknowledged is voided, so that no commit brings it back. */
export async function voidPhantom(
  desk: Desk,
  of: { readonly pool: string; readonly token: string; readonly holder: Holder },
): Promise<Phantom> {
  const held = await findHeld(desk, of);
  if (held === null || held.confirmed || !sameHolder(held.holder, of.holder)) return { kind: "none" };
  const [outcome] = await desk.ledger.voidGrants([held]);
  return { kind: outcome === "live" ? "live" : "voided", ref: refOf(held) };
}

/** Null also where the counters are away: a rebuild forgets what the ledger does not have. */
async function findHeld(
  desk: Desk,
  token: { readonly pool: string; readonly token: string },
): Promise<HeldToken | null> {
  const found = await desk.counters.find([token]).catch((error: unknown) => {
    desk.events.loopFailed({ loop: "quota phantom", error });
    return "closed" as const;
  });
  return found === "closed" ? null : (found[0] ?? null);
}
