import { randomUUID } from "node:crypto";
import type { LedgerRow, Limits } from "../../../core/quota/counters.ts";
import { SILENT_TICKS_MAX } from "../../../core/quota/lease-clock.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { loadOf, numberText } from "./encoding.ts";

/** Values of one step of a load: a script that takes long holds up everybody. Below what Lua can unpack, 8,000. */
const VALUES_PER_STEP = 1_000;

/** Loads in steps. Whoever loads later goes on; this load then ends as one that was never asked for, or throws. */
export async function load(
  open: (argumentsFor: (runId: string) => readonly string[]) => Promise<unknown>,
  of: {
    readonly epoch: number;
    readonly rows: readonly LedgerRow[];
    readonly limits: Limits;
    /** Where offers are published. */
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
    throw new UnavailableError("the counters were lost, or loaded by another, while they were loaded");
}
