/** What the bench of floods tells the process of the flood, and its answers. */
export type FloodOrder = { readonly kind: "start" | "stop" };

/** The calls of a flood that were answered, and how. */
export type FloodCounts = {
  readonly done: number;
  /** Refused because of a limit of the caller. */
  readonly limited: number;
  /** Answered otherwise, for example because the service was too busy. */
  readonly failed: number;
};

export type FloodAnswer =
  | { readonly kind: "ready" | "started" }
  | { readonly kind: "stopped"; readonly counts: FloodCounts };
