/**
 * `npm run histories -- N`: runs N random histories against the specification and Redis and compares the answers.
 * Shrinks a failing history and prints how to replay it.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { hasRedisServer } from "../support/redis-server.ts";

const given = process.argv[2] ?? "10000";
const count = Number(given);
if (!Number.isSafeInteger(count) || count < 1) {
  console.error(`the number of histories is ${given}; allowed are integers of at least 1`);
  process.exit(2);
}
if (!hasRedisServer()) {
  console.error("no redis-server on the PATH; install Redis 6.2 or later");
  process.exit(2);
}
const file = join(import.meta.dirname, "redis-histories.property.test.ts");
const env = { ...process.env, GANGWAY_REDIS_HISTORIES: `${count}` };
process.exitCode = spawnSync(process.execPath, ["--test", file], { stdio: "inherit", env }).status ?? 1;
