/** The browser of the tests: Debian's Chromium, driven by playwright-core, which brings none of its own. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** The path of a browser that is installed. Null: there is none. */
export function installedBrowser(): string | null {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const paths = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return paths.find(isExecutable) ?? null;
}

/** Root cannot start Chromium with its sandbox. The tests open pages of this service alone. */
export function startBrowser(executablePath: string): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath, chromiumSandbox: !isRoot });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
