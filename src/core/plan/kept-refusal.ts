import type { Refusal } from "./plan-types.ts";
import type { KeptCause, KeyedCause } from "./state/kept-cause.ts";

/** A refusal with the numbers of its moment, and its cause. */
export type SaidRefusal = KeyedCause & { readonly refusal: Refusal };

/** A refusal as a store keeps it. */
export type KeptRefusal = Refusal & {
  /** Omitted: a program of the version before has kept the refusal with the numbers of its moment. */
  readonly cause?: KeptCause & { readonly key: number };
};

/**
 * A refusal with its cause and without numbers. A program of the version before shows the message of the job's status
 * in place of an empty one.
 */
export function keptRefusal({ refusal, cause, causeKey: key }: SaidRefusal): KeptRefusal {
  const message = cause.kind === "lacks" ? "" : refusal.message;
  return { ...refusal, message, clusters: [], quotas: [], cause: { ...cause, key } };
}
