/** `npm run preempt-worlds -- N [SEED]`: judges preemption in N random worlds of each kind, from a seed on. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const FILES = [
  "round/rest.property.test.ts",
  "victims/legal-victims.property.test.ts",
  "nominee-order.test.ts",
  "nominee-places.property.test.ts",
];

const [given = "5000", seed = "1"] = process.argv.slice(2);
const wrong = [given, seed].find((text) => !Number.isSafeInteger(Number(text)) || Number(text) < 1);
if (wrong !== undefined) {
  console.error(`the number of worlds, or the seed, is ${wrong}; allowed are integers of at least 1`);
  process.exit(2);
}
const files = FILES.map((file) => join(import.meta.dirname, file));
const env = { ...process.env, GANGWAY_WORLDS: given, GANGWAY_SEED: seed };
process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit", env }).status ?? 1;
