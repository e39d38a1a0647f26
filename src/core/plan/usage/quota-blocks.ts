import { isForTokens } from "../model/flavors.ts";
import type { QuotaBlock } from "./quota-state.ts";

/** True if a pool lacks tokens that others hold, or keeps them for the gang in its waiting line. */
export function concernsTokens({ scope, reason }: Pick<QuotaBlock, "scope" | "reason">): boolean {
  return isForTokens({ scope, reason }) || (scope.kind === "pool" && reason === "Reserved");
}

/** True if less use does not end a block. */
export function isNever({ reason }: Pick<QuotaBlock, "reason">): boolean {
  return reason === "AboveQuota" || reason === "NoQuota";
}

/** Of all levels that keep a flavor closed, the one by which its gang class waits. Undefined: it is open. */
export function closingOf(blocks: readonly QuotaBlock[]): QuotaBlock | undefined {
  return blocks.find(({ reason }) => reason !== "Reserved") ?? blocks[0];
}
