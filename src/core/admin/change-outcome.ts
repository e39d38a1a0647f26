import type { TooManyPools } from "../quota/pools.ts";

/** How a change of a record that administrators keep ended; `by` of `inUse` names a user of the record. */
export type ChangeOutcome<T> =
  | { readonly kind: "done"; readonly record: T }
  /** `stale`: the record has another version than the change names. */
  | { readonly kind: "exists" | "notFound" | "stale" }
  /** `full`: there are as many records as there may be. */
  | { readonly kind: "full"; readonly max: number }
  | { readonly kind: "inUse"; readonly by: string }
  | TooManyPools;
