/** `npm run histories -- N`: asks the specification and Redis the same in N random histories. What fails is shrunk, and printed with how to replay it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { hasRedisServer } from "../support/redis-server.ts";

const given = process.argv[2] ?? "10000";
const count = Number(given);
if (!Number.isSafeInteger(count) || count < 1) {
  console.error(`the number of histories is ${given}: a whole number from 1 on is allowed`);
  process.exit(2);
}
if (!hasRedisServer()) {
  console.error("histories need redis-server 6.2 or later on the PATH");
  process.exit(2);
}
const file = join(import.meta.dirname, "redis-histories.property.test.ts");
const env = { ...process.env, GANGWAY_REDIS_HISTORIES: `${count}` };
process.exitCode = spawnSync(process.execPath, ["--test", file], { stdio: "inherit", env }).status ?? 1;
