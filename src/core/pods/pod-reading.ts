import type { PodFailure } from "./failure.ts";

/**
 * What the status of a pod says. `queued` waits for a node, `initializing` for its containers; both until something is heard, or until
 * `recheckAtMs`, when they may have become a failure.
 */
export type PodReading =
  | { readonly kind: "queued" | "initializing"; readonly reason: string; readonly recheckAtMs: number | null }
  | { readonly kind: "running" | "succeeded" | "unknown" }
  | { readonly kind: "failed"; readonly failure: PodFailure };
