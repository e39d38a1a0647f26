/**
 * Whether Redis can count tokens: it can; it does not answer or is refused as it is configured; its memory is full; or
 * it takes no writes, as a replica or one whose disk is full.
 */
export const REDIS_STATES = ["ok", "away", "out_of_memory", "read_only"] as const;
export type RedisState = (typeof REDIS_STATES)[number];
