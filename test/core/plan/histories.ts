/** `npm run plan-histories -- N [SEED]`: runs N random histories of the planner's state, from a seed on. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const [given = "10000", seed = "1"] = process.argv.slice(2);
const wrong = [given, seed].find((text) => !Number.isSafeInteger(Number(text)) || Number(text) < 1);
if (wrong !== undefined) {
  console.error(`the number of histories, or the seed, is ${wrong}; allowed are integers of at least 1`);
  process.exit(2);
}
const file = join(import.meta.dirname, "histories.property.test.ts");
const env = { ...process.env, GANGWAY_PLAN_HISTORIES: given, GANGWAY_PLAN_SEED: seed };
process.exitCode = spawnSync(process.execPath, ["--test", file], { stdio: "inherit", env }).status ?? 1;
