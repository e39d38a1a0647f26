import type { PodFailure } from "./failure.ts";

/**
 * The state of a pod as Gangway judges it. `queued`: it waits for a node. `initializing`: it waits for its containers.
 * At `recheckAtMs`, either may have become a failure.
 */
export type PodReading =
  | { readonly kind: "queued" | "initializing"; readonly reason: string; readonly recheckAtMs: number | null }
  | { readonly kind: "running" | "succeeded" | "unknown" }
  | { readonly kind: "failed"; readonly failure: PodFailure };
