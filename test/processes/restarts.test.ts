import { after, before, describe, test } from "node:test";
import { hasPostgresPrograms, PostgresProcess } from "../support/postgres-process.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { allEndOnce, submitUntil } from "./gangs.ts";
import { Team } from "./team.ts";

describe("the servers beneath the service", { skip: !hasPostgresPrograms() || !hasRedisServer() }, () => {
  let postgres: PostgresProcess;
  let team: Team;
  before(async () => {
    postgres = await PostgresProcess.start();
    team = await Team.start(postgres.url, ["api", "planner", "worker", "worker"], { isDurable: true });
  });
  after(async () => {
    await team.close().catch(() => undefined);
    await postgres.stop();
  });

  test("may crash and return during the work: no job is lost and none runs twice", async (t) => {
    const names = new Set<string>();
    const done = new AbortController();
    const submitting = submitUntil(team, done.signal, names);
    const more = async (count: number) => {
      for (const enough = names.size + count; names.size < enough; )
        await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await more(8);
    t.diagnostic("PostgreSQL crashes");
    await postgres.crash();
    await postgres.start();
    await more(8);
    t.diagnostic("Redis is flushed");
    await team.redis.admin.flushall();
    await more(8);
    t.diagnostic("Redis crashes and has forgotten everything");
    await team.redis.kill();
    await team.redis.start();
    await more(8);
    t.diagnostic("both crash");
    await Promise.all([postgres.crash(), team.redis.kill()]);
    await Promise.all([postgres.start(), team.redis.start()]);
    await more(8);
    done.abort();
    await submitting;
    await allEndOnce(team, names);
  });
});
