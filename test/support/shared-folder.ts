import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folder of what all test runs of this user share: images of databases, compiled modules. Makes it. */
export function sharedFolder(): string {
  const folder = join(tmpdir(), `gangway-test-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}
