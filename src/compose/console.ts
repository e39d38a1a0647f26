/** Says where a process serves browsers. */
import type { WebListen, WebOutcome } from "../api/web/open-web.ts";
import type { ConsoleConfig } from "../config/config-console.ts";
import { DEFAULT_CONSOLE_ADDRESS } from "../config/variables.ts";

/** `gangway up` serves them if the default address is free; a process of `gangway serve` only if it is told where. */
export function consoleOf({ listen, ...console }: ConsoleConfig, command: "up" | "serve"): WebListen | null {
  if (listen === "off" || (listen === null && command === "serve")) return null;
  return { ...console, listen: listen ?? DEFAULT_CONSOLE_ADDRESS, isOptional: listen === null };
}

/** The end of the line that says where the service listens. Empty: there is nothing to say. */
export function consoleText(api: { readonly web: WebOutcome } | null): string {
  const web = api?.web ?? { kind: "off" };
  switch (web.kind) {
    case "off":
      return "";
    case "serves":
      return ` and, for HTTP, ${web.url}`;
    case "missing":
      return ` (not for HTTP: ${web.why})`;
  }
}

/** The URL of the listener for browsers, if there is one. */
export function webOf(api: { readonly web: WebOutcome } | null): { readonly web?: string } {
  return api?.web.kind === "serves" ? { web: api.web.url } : {};
}
