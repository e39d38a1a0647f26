import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SCRIPTS = join("src", "adapters", "counters", "redis");

/** Another version of the program that behaves alike: the text of each script differs, so Redis keeps both. */
export class OtherVersion {
  readonly #directory = mkdtempSync(join(tmpdir(), "gangway-version-"));
  readonly main = join(this.#directory, "src", "main.ts");

  constructor() {
    for (const part of ["src", "migrations", "package.json"]) {
      cpSync(join(ROOT, part), join(this.#directory, part), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(this.#directory, "node_modules"));
    for (const name of readdirSync(join(this.#directory, SCRIPTS))) {
      if (name.endsWith(".lua")) appendFileSync(join(this.#directory, SCRIPTS, name), "\n-- another version\n");
    }
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
