/**
 * Decides whether gangs that ran in a lost cluster wait for it. The nearest queue that says something decides: the
 * gang's own, else one above it. If none does, its namespace decides. A job's own setting counts more than both.
 */
import type { OnClusterLost } from "../job/spec.ts";
import { pathToRoot } from "../plan/model/queue-stop.ts";

/** A queue as this decision needs it. */
export type SayingQueue = {
  readonly name: string;
  /** Null: the queue is the root of a tree. */
  readonly parent: string | null;
  /** Null: the queue does not say. */
  readonly onClusterLost: OnClusterLost | null;
};

/** The gangs of one namespace in one queue. */
export type GangsAlike = { readonly namespace: string; readonly queue: string };

/** What counts for gangs, by `gangsKey`. */
export type LossPolicies = ReadonlyMap<string, OnClusterLost>;

/** Names of namespaces and queues have no `/`. */
export function gangsKey({ namespace, queue }: GangsAlike): string {
  return `${namespace}/${queue}`;
}

/** What counts for these gangs. `own`: what their namespace says. */
export function lossPolicyOf(
  { queue, own }: { readonly queue: string; readonly own: OnClusterLost },
  queues: ReadonlyMap<string, SayingQueue>,
): OnClusterLost {
  for (const { onClusterLost } of pathToRoot(queue, queues)) if (onClusterLost !== null) return onClusterLost;
  return own;
}

/** What counts for gangs of which nothing is known: they wait, as those that nobody was asked about. */
export const UNKNOWN_LOSS_POLICY: OnClusterLost = "WAIT";
