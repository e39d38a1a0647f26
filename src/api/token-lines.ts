import type { FieldNote } from "../core/job/sent.ts";
import type { TokenRef } from "./quota-ports.ts";

type SentToken = { readonly resourceNamespace: string; readonly allocationToken: string };

export function tokenOf({ resourceNamespace: pool, allocationToken: token }: SentToken): TokenRef {
  return { pool, token };
}

/** Tokens that a batch names more than once, each with the line that named it first. */
export function duplicateTokens(lines: readonly SentToken[]): readonly FieldNote[] {
  const first = new Map<string, number>();
  return lines.flatMap(({ resourceNamespace: pool, allocationToken: token }, at) => {
    const key = JSON.stringify([pool, token]);
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, at);
    const message = `repeats lines[${earlier}]: a batch names a token of a pool once`;
    return earlier === undefined ? [] : [{ field: `lines[${at}].allocation_token`, message }];
  });
}
