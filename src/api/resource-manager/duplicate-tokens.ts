import type { FieldNote } from "../../core/job/request/sent.ts";
import type { TokenName } from "../../core/quota/counters.ts";

type SentToken = { readonly resourceNamespace: string; readonly allocationToken: string };

export function tokenOf({ resourceNamespace: pool, allocationToken: token }: SentToken): TokenName {
  return { pool, token };
}

/** Returns a note for each allocation whose token an earlier allocation of the batch names. */
export function duplicateTokens(sent: readonly SentToken[]): readonly FieldNote[] {
  const first = new Map<string, number>();
  return sent.flatMap(({ resourceNamespace: pool, allocationToken: token }, at) => {
    const key = JSON.stringify([pool, token]);
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, at);
    const message = `repeats lines[${earlier}]: a batch may name each token of a pool only once`;
    return earlier === undefined ? [] : [{ field: `lines[${at}].allocation_token`, message }];
  });
}
