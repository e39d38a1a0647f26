/** Decides which of its states a view is in. */
import { type CallFailed, callFailed } from "../rpc/failure.ts";

export type ViewState<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly failure: CallFailed }
  | { readonly kind: "forbidden"; readonly failure: CallFailed }
  | { readonly kind: "empty"; readonly stale: Stale | null }
  | { readonly kind: "data"; readonly data: T; readonly stale: Stale | null };

/** Why the data are older than they should be. */
export type Stale = {
  readonly why: string;
  /** The time of the data. Null: not known. */
  readonly sinceMs: number | null;
};

/** What a query of the page knows. */
export type Queried<T> = {
  readonly data: T | undefined;
  readonly error: unknown;
  /** When the data arrived. 0: never. */
  readonly dataUpdatedAt: number;
};

/**
 * A failure comes before "nothing there", and never hides data that were there before: a view without an answer is
 * loading, not empty.
 */
export function viewState<T>(
  { data, error, dataUpdatedAt }: Queried<T>,
  isEmpty: (data: T) => boolean,
  /** The service's own word on old data. Empty: they are of now. */
  staleReason = "",
): ViewState<T> {
  const failure = error === null || error === undefined ? null : callFailed(error);
  // Who has lost a permission sees no more what it showed.
  if (failure?.kind === "forbidden") return { kind: "forbidden", failure };
  if (data === undefined) return failure === null ? { kind: "loading" } : { kind: "failed", failure };
  const stale = staleOf(failure, dataUpdatedAt, staleReason);
  return isEmpty(data) ? { kind: "empty", stale } : { kind: "data", data, stale };
}

function staleOf(failure: CallFailed | null, dataUpdatedAt: number, staleReason: string): Stale | null {
  if (failure !== null) return { why: failure.message, sinceMs: dataUpdatedAt };
  return staleReason === "" ? null : { why: staleReason, sinceMs: null };
}
