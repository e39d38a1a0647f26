import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Desk } from "./desk.ts";
import { type Settled, settleGrant, type Wanted } from "./settle-grant.ts";

/** How often the counters are asked while what stood in the way is repaired. */
const ATTEMPTS_MAX = 3;
/** How long a call waits for a domain that closed under it; one that finds it closed does not. */
const PATIENCE_MS = 500;

export type Allocated = Exclude<Settled, { readonly kind: "again" }>;

/** All lines or none: counters, then ledger, then the answer. Throws `UnavailableError` where either is away; asked again, it finds out. */
export async function allocate(desk: Desk, wanted: Wanted & { readonly priority: number }): Promise<Allocated> {
  for (let attempt = 1; ; attempt += 1) {
    const epoch = await desk.domain.openEpoch(attempt === 1 ? 0 : PATIENCE_MS);
    const outcome = await desk.counters.grant({ ...wanted, epoch, waiter: null });
    const settled = await settleGrant(desk, epoch, wanted, outcome);
    if (settled.kind !== "again") return settled;
    if (attempt === ATTEMPTS_MAX) {
      if (settled.suspicious) desk.domain.lost(epoch, settled.why);
      throw new UnavailableError(settled.why);
    }
  }
}
