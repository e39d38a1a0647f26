/** Reads the variables of the listener for browsers. */
import { parseTrustedProxies, type TrustedProxies } from "../api/web/client-address.ts";
import { parseHost } from "../api/web/guards.ts";
import { parseListenAddress } from "../runtime/listen-address.ts";
import { type Environment, given, namesOf } from "./client-config.ts";

export type ConsoleConfig = {
  /** HOST:PORT, or `off`. Null: the command that runs the service says. */
  readonly listen: string | null;
  /** The names by which browsers reach it, beside its address. */
  readonly hosts: readonly string[];
  /** The proxies before it whose `X-Forwarded-For` counts. */
  readonly trustedProxies: TrustedProxies;
};

/** Throws an error that names the variable and the part that is wrong. */
export function readConsole(env: Environment): ConsoleConfig {
  const listen = given(env, "GANGWAY_CONSOLE_LISTEN");
  if (listen !== null && listen !== "off") explained("GANGWAY_CONSOLE_LISTEN", () => parseListenAddress(listen));
  return {
    listen,
    hosts: namesOf(given(env, "GANGWAY_CONSOLE_HOSTS") ?? "").map(hostOf),
    trustedProxies: explained("GANGWAY_TRUSTED_PROXIES", () =>
      parseTrustedProxies(given(env, "GANGWAY_TRUSTED_PROXIES") ?? ""),
    ),
  };
}

function hostOf(text: string): string {
  const host = parseHost(text);
  if (host !== null) return host;
  throw new Error(`GANGWAY_CONSOLE_HOSTS has "${text}", which is neither HOST nor HOST:PORT`);
}

function explained<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name} has a wrong value: ${error instanceof Error ? error.message : error}`);
  }
}
