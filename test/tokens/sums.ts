import { tokenKey } from "../../src/core/quota/allocations.ts";
import type { Counters, HeldToken } from "../../src/core/quota/counters.ts";
import { scopeKey } from "../../src/core/quota/scopes.ts";

/** Returns sums in a fixed order, for comparison. */
export function canonicalSums(sums: Awaited<ReturnType<Counters["used"]>>): Readonly<Record<string, number>> {
  return Object.fromEntries(sums.map(({ scope, used }) => [scopeKey(scope), used] as const).sort(byKey));
}

/** Returns held tokens by name, since pages may repeat a token. */
export function canonicalHeld(tokens: readonly HeldToken[]): Readonly<Record<string, HeldToken>> {
  return Object.fromEntries(tokens.map((token) => [tokenKey(token), token] as const).sort(byKey));
}

/** Reads all pages of held tokens. */
export async function allHeld(counters: Pick<Counters, "held">, count = 1_000): Promise<readonly HeldToken[]> {
  const tokens: HeldToken[] = [];
  let after: string | null = null;
  do {
    const page = await counters.held(after, count);
    tokens.push(...page.tokens);
    after = page.next;
  } while (after !== null);
  return tokens;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
