/** Drives the browser of the tests by playwright-core, which brings none of its own. */
import { type Browser, chromium } from "playwright-core";

/** Root cannot start Chromium with its sandbox. The tests open pages of this service alone. */
export function startBrowser(executablePath: string): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath, chromiumSandbox: !isRoot });
}
