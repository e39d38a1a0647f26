/** Says where a process serves browsers, and finds the console's page for them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { WebListen, WebOutcome } from "../api/web/open-web.ts";
import { type LoadPage, type PageFiles, readPageFiles } from "../api/web/page-files.ts";
import type { ConsoleConfig } from "../config/config-console.ts";
import { DEFAULT_CONSOLE_ADDRESS } from "../config/variables.ts";

/** `gangway up` serves them if the default address is free; a process of `gangway serve` only if it is told where. */
export function consoleOf({ listen, ...console }: ConsoleConfig, command: "up" | "serve"): WebListen | null {
  if (listen === "off" || (listen === null && command === "serve")) return null;
  return { ...console, listen: listen ?? DEFAULT_CONSOLE_ADDRESS, isOptional: listen === null, page: pageOnce() };
}

/** The page is read with the first request for it. If that fails, the next request tries again. */
function pageOnce(): LoadPage {
  let page: Promise<PageFiles> | null = null;
  return () => {
    page ??= pageFolder()
      .then(readPageFiles)
      .catch((error: unknown) => {
        page = null;
        throw error;
      });
    return page;
  };
}

/** A package has the page. A clone makes it when it is needed, and again after a source has changed. */
async function pageFolder(): Promise<string> {
  const root = join(import.meta.dirname, "..", "..");
  const packed = join(root, "dist", "console");
  if (!existsSync(join(root, "console", "src"))) return packed;
  const maker = pathToFileURL(join(root, "deploy", "build-console.ts")).href;
  const { currentConsole } = (await import(maker)) as { readonly currentConsole: () => Promise<string> };
  return await currentConsole();
}

/** The end of the line that says where the service listens. Empty: there is nothing to say. */
export function consoleText(api: { readonly web: WebOutcome } | null): string {
  const web = api?.web ?? { kind: "off" };
  switch (web.kind) {
    case "off":
      return "";
    case "serves":
      return ` · console ${web.url}`;
    case "missing":
      return ` · no console: ${web.why}`;
  }
}

/** The URL of the listener for browsers, if there is one. */
export function webOf(api: { readonly web: WebOutcome } | null): { readonly web?: string } {
  return api?.web.kind === "serves" ? { web: api.web.url } : {};
}
