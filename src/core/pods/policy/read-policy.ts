import type { FieldError } from "../../job/request/sent.ts";
import { allowanceText, readAllowance } from "./allowances.ts";
import { LIMIT_KINDS, type LimitKind, type PodLimits } from "./limits.ts";
import type { PodPolicy } from "./pod-policy.ts";

type ReadPolicy =
  | { readonly kind: "read"; readonly policy: PodPolicy }
  /** Paths are `allow[2]` or `image[0]`. */
  | { readonly kind: "refused"; readonly errors: readonly FieldError[] };

/** Checks the allowances and limits of a policy that an admin sends. Returns them in their normal form, each once. */
export function readPolicy({ level, allow, limits }: PodPolicy): ReadPolicy {
  const errors: FieldError[] = [];
  const texts = allow.flatMap((text, index) => {
    const read = readAllowance(text);
    if (read.kind === "read") return [allowanceText(read.allowance)];
    errors.push({ path: `allow[${index}]`, message: read.message });
    return [];
  });
  for (const [kind, entries] of entriesOf(limits)) {
    const { isEntry, form } = LIMIT_KINDS[kind];
    for (const [index, entry] of entries.entries()) {
      if (isEntry(entry)) continue;
      errors.push({ path: `${kind}[${index}]`, message: `is "${entry.slice(0, 80)}": must be ${form}` });
    }
  }
  if (errors.length > 0) return { kind: "refused", errors };
  const once = entriesOf(limits).map(([kind, entries]) => [kind, [...new Set(entries)]]);
  return { kind: "read", policy: { level, allow: [...new Set(texts)], limits: Object.fromEntries(once) } };
}

function entriesOf(limits: PodLimits): readonly (readonly [LimitKind, readonly string[]])[] {
  return (Object.keys(LIMIT_KINDS) as readonly LimitKind[]).flatMap((kind) => {
    const entries = limits[kind];
    return entries === undefined ? [] : [[kind, entries] as const];
  });
}
