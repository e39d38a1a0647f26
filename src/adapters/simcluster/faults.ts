/**
 * Faults that tests inject, to see that clients of Kubernetes survive them. Each is a chance from 0 to 1. Omitted: 0.
 */
export type Faults = {
  /** Refuses a write before it is applied, with 429 and Retry-After: 1, 409, 500 or 503. */
  readonly throttleWrites?: number;
  readonly conflictWrites?: number;
  readonly failWrites?: number;
  readonly unavailableWrites?: number;
  /** Closes the connection without an answer, before or after the write is applied. */
  readonly dropBeforeWrite?: number;
  readonly dropAfterWrite?: number;
  /** Closes a watch after an event. Drawn for each event. */
  readonly endWatch?: number;
  /** Answers a new watch with 410, as the HTTP status or as an event. */
  readonly expireWatch?: number;
  /** The longest delay of events to watches. */
  readonly delayWatchMs?: number;
};

export type WriteFault = "throttle" | "conflict" | "fail" | "unavailable" | "dropBefore" | "dropAfter" | null;

/** Draws at most one fault for a write. Null: no fault. */
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
