/** Finds the browser of the tests: Debian's Chromium or a relative of it. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** The path of a browser that is installed. Null: there is none. */
export function installedBrowser(): string | null {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const paths = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return paths.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
