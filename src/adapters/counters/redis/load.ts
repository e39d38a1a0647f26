import { randomUUID } from "node:crypto";
import type { LedgerRow, Limits } from "../../../core/quota/counters.ts";
import { SILENT_TICKS_MAX } from "../../../core/quota/lease-clock.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { loadOf, numberText } from "./encoding.ts";

/**
 * The number of values in one step of a load. It is small because a long script blocks all other calls, and below
 * 8,000, the number that Lua can unpack.
 */
const VALUES_PER_STEP = 1_000;

/**
 * Loads a domain in steps. If a newer load starts meanwhile, this one throws; if a later epoch is already loaded, it
 * changes nothing.
 */
export async function load(
  open: (argumentsFor: (runId: string) => readonly string[]) => Promise<unknown>,
  of: {
    readonly epoch: number;
    readonly rows: readonly LedgerRow[];
    readonly limits: Limits;
    /** The channel of offers. */
    readonly channel: string;
  },
): Promise<void> {
  const { epoch, rows, limits, channel } = of;
  const { keys, grants } = loadOf(epoch, rows, limits);
  const id = randomUUID();
  const bounds = [limits.version, limits.tokensMax, limits.waitersMax, SILENT_TICKS_MAX].map(numberText);
  const begun = await open((runId) => ["begin", id, String(epoch), runId, channel, ...bounds]);
  if (begun === "older") return;
  for (const [key, pairs] of keys) {
    for (let at = 0; at < pairs.length; at += VALUES_PER_STEP) {
      mustGoOn(await open(() => ["fill", id, String(key), ...pairs.slice(at, at + VALUES_PER_STEP)]));
    }
  }
  mustGoOn(await open(() => ["finish", id, grants.toString()]));
}

function mustGoOn(reply: unknown): void {
  if (reply !== "done")
    throw new UnavailableError("the load of the counters was lost, or another process started a newer load");
}
