import { sameHolder } from "../core/quota/allocations.ts";
import type { AllocationRef, HeldToken, Holder } from "../core/quota/counters.ts";
import { freeReleased } from "./confirm-given-back.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { refOf } from "./domain/domain-ledger.ts";

/**
 * A token that the counters hold and the ledger does not.
 *
 * - `none`: nothing of this holder.
 * - `unknown`: the counters do not answer.
 * - `voided`: a grant that can no longer be committed. The caller frees it in the counters.
 * - `live`: a grant that the ledger has by now.
 * - `otherScope`: a grant of this holder for another project or namespace.
 */
type UnconfirmedToken =
  | { readonly kind: "none" | "unknown" }
  | { readonly kind: "voided" | "live"; readonly ref: AllocationRef }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string };

/** A token of one holder, in one project and namespace. */
type HeldBy = {
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  /** Null: any project. */
  readonly project: string | null;
  /** Null: any namespace. */
  readonly namespace: string | null;
};

/** Whether the holder, project and namespace of a held token are these. */
export function isHeldBy(held: HeldToken, { holder, project, namespace }: HeldBy): boolean {
  return sameHolder(held.holder, holder) && isInScope(held, { project, namespace });
}

function isInScope(
  held: Pick<HeldToken, "project" | "namespace">,
  { project, namespace }: Pick<HeldBy, "project" | "namespace">,
): boolean {
  return (project ?? held.project) === held.project && (namespace ?? held.namespace) === held.namespace;
}

/** Voids the grant by which the counters hold a token without confirmation, so that no late commit brings it back. */
export async function voidUnconfirmed(domain: QuotaDomain, allocation: HeldBy): Promise<UnconfirmedToken> {
  const held = await findHeld(domain, allocation);
  if (held === "unknown") return { kind: "unknown" };
  if (held === null || !sameHolder(held.holder, allocation.holder)) return { kind: "none" };
  if (!isInScope(held, allocation)) return { kind: "otherScope", project: held.project, namespace: held.namespace };
  if (held.confirmed) return { kind: "live", ref: refOf(held) };
  const [outcome] = await domain.ledger.voidGrants([held]);
  return { kind: outcome === "live" ? "live" : "voided", ref: refOf(held) };
}

async function findHeld(domain: QuotaDomain, allocation: HeldBy): Promise<HeldToken | null | "unknown"> {
  if (domain.epochs.current === null) return "unknown";
  const found = await domain.counters.find([allocation]).catch((error: unknown) => {
    domain.events.loopFailed({ loop: "quota phantom", error });
    return "closed" as const;
  });
  return found === "closed" ? "unknown" : (found[0] ?? null);
}

/** Confirms the tokens that the ledger has. Voids all others there first, and then frees them in the counters. */
export async function confirmOrVoid(domain: QuotaDomain, epoch: number, tokens: readonly HeldToken[]): Promise<void> {
  if (tokens.length === 0) return;
  const outcomes = await domain.ledger.voidGrants(tokens);
  const live = tokens.filter((_token, at) => outcomes[at] === "live");
  const dead = tokens.filter((_token, at) => outcomes[at] === "voided" || outcomes[at] === "gone");
  if (live.length > 0 && (await domain.counters.confirm(epoch, live.map(refOf))) === "closed") {
    return domain.epochs.countersClosed(epoch);
  }
  await freeReleased(domain, epoch, dead.map(refOf));
  domain.events.doubted({ domain: domain.name, voided: dead.length, found: live.length });
}
