/** What goes wrong, each as a chance from 0 to 1; absent: never. */
export type Faults = {
  /** Writes refused before they are applied: 429 with Retry-After of a second, 409, 500, 503. */
  readonly throttleWrites?: number;
  readonly conflictWrites?: number;
  readonly failWrites?: number;
  readonly unavailableWrites?: number;
  /** The connection ends without an answer, before or after the write was applied. */
  readonly dropBeforeWrite?: number;
  readonly dropAfterWrite?: number;
  /** For each event sent: the watch ends suddenly after it. */
  readonly endWatch?: number;
  /** For each new watch: the answer is 410, as HTTP or as an event. */
  readonly expireWatch?: number;
  /** Events reach watches late by up to so much. */
  readonly delayWatchMs?: number;
};

export type WriteFault = "throttle" | "conflict" | "fail" | "unavailable" | "dropBefore" | "dropAfter" | null;

/** Draws what happens to one write; at most one thing does. */
export function drawWriteFault(faults: Faults, random: () => number): WriteFault {
  const chances: readonly (readonly [WriteFault, number | undefined])[] = [
    ["throttle", faults.throttleWrites],
    ["conflict", faults.conflictWrites],
    ["fail", faults.failWrites],
    ["unavailable", faults.unavailableWrites],
    ["dropBefore", faults.dropBeforeWrite],
    ["dropAfter", faults.dropAfterWrite],
  ];
  let drawn = random();
  for (const [fault, chance = 0] of chances) {
    if (drawn < chance) return fault;
    drawn -= chance;
  }
  return null;
}
