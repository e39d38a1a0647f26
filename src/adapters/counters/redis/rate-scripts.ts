import { createHash } from "node:crypto";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { type ConnectionOptions, RedisConnection } from "./connection.ts";
import type { Secrets } from "./options.ts";
import type { Script } from "./scripts.ts";

export type RateScriptsOptions = Pick<ConnectionOptions, "url" | keyof Secrets | "onError" | "onWarning"> & {
  readonly keyPrefix: string;
  /** The name of the database. Several may share one Redis. */
  readonly installation: string;
};

/** Calls wait for an answer no longer than this, since they can be counted without Redis. */
const TIMING = { commandTimeoutMs: 250, reconnectMsMin: 50, reconnectMsMax: 2_000 };

/**
 * Runs scripts of one key that count the calls of callers. Throws `UnavailableError` at once while there is no
 * connection. The connection is not that of the tokens: its calls may wait longer.
 */
export async function openRateScripts(options: RateScriptsOptions) {
  const connection = await RedisConnection.open({ ...options, ...TIMING });
  const scripts = new Map<string, Script>();
  const scriptOf = (text: string): Script => {
    return getOrCreate(scripts, text, () => ({ text, sha: createHash("sha1").update(text).digest("hex") }));
  };
  const prefix = `${options.keyPrefix}:${options.installation}:rates`;
  return {
    run: (text: string, key: string, parameters: readonly string[]): Promise<unknown> =>
      connection.run(scriptOf(text), [`${prefix}:${key}`], () => parameters),
    close: () => connection.close(),
  };
}
