import type { HeldToken, Holder, LineRef } from "../../core/quota/counters.ts";
import { sameHolder } from "../../core/quota/lines.ts";
import type { Desk } from "./desk.ts";
import { refOf } from "./domain-ledger.ts";

/**
 * What the counters hold of a token that the ledger does not: `none` of its holder's, or a grant that is `voided` now and the caller's to free, or that the
 * ledger has got by now (`live`), or one of another project or namespace. `unknown` while they do not answer.
 */
export type Phantom =
  | { readonly kind: "none" | "unknown" }
  | { readonly kind: "voided" | "live"; readonly ref: LineRef }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string };

export type Doubted = {
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder;
  /** Null: not compared; so of the namespace. */
  readonly project: string | null;
  readonly namespace: string | null;
};

/** True if what is held is what is asked for. */
export function isOf(held: HeldToken, { holder, project, namespace }: Doubted): boolean {
  return sameHolder(held.holder, holder) && isInScope(held, { project, namespace });
}

function isInScope(
  held: Pick<HeldToken, "project" | "namespace">,
  { project, namespace }: Pick<Doubted, "project" | "namespace">,
): boolean {
  return (project ?? held.project) === held.project && (namespace ?? held.namespace) === held.namespace;
}

/** A token that the counters hold for its holder by a grant that nobody acknowledged is voided, so that no commit brings it back. */
export async function voidPhantom(desk: Desk, line: Doubted): Promise<Phantom> {
  const held = await findHeld(desk, line);
  if (held === "unknown") return { kind: "unknown" };
  if (held === null || !sameHolder(held.holder, line.holder)) return { kind: "none" };
  if (!isInScope(held, line)) return { kind: "otherScope", project: held.project, namespace: held.namespace };
  if (held.confirmed) return { kind: "live", ref: refOf(held) };
  const [outcome] = await desk.ledger.voidGrants([held]);
  return { kind: outcome === "live" ? "live" : "voided", ref: refOf(held) };
}

async function findHeld(desk: Desk, line: Doubted): Promise<HeldToken | null | "unknown"> {
  if (desk.domain.epoch === null) return "unknown";
  const found = await desk.counters.find([line]).catch((error: unknown) => {
    desk.events.loopFailed({ loop: "quota phantom", error });
    return "closed" as const;
  });
  return found === "closed" ? "unknown" : (found[0] ?? null);
}
