/**
 * A gRPC server in a process of its own whose calls do nothing but what a call for tokens cannot do without: answer;
 * bare scripts in Redis; one bare durable transaction. It ends with its parent.
 */
import { Redis } from "ioredis";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { postgresOptions } from "../../support/postgres.ts";
import { startBareServer } from "./bare-server.ts";
import { BARE_SCRIPT, FLOORS, LINES } from "./token-floors.ts";

const [postgres = "", redisUrl = ""] = process.argv.slice(2);
const db = await openPostgres(postgresOptions(postgres));
await db.query("create table bench_tokens (id bigint generated always as identity primary key, token text not null)");
const redis = new Redis(redisUrl);
const sha = (await redis.script("LOAD", BARE_SCRIPT)) as string;

const write = (token: string) => db.query("insert into bench_tokens (token) values ($1)", [token]);
const writeAll = (tokens: readonly string[]) =>
  db.query("insert into bench_tokens (token) select unnest($1::text[])", [tokens]);
const count = () => redis.evalsha(sha, 1, "bench");
const countAll = () => {
  const pipeline = redis.pipeline();
  for (let at = 0; at < LINES; at += 1) pipeline.evalsha(sha, 1, "bench");
  return pipeline.exec();
};

const server = await startBareServer({
  [FLOORS.echo]: async () => undefined,
  [FLOORS.script]: count,
  [FLOORS["script and transaction"]]: async (token) => {
    await count();
    await write(token.toString("utf8"));
  },
  [FLOORS.scripts]: countAll,
  [FLOORS["scripts and rows"]]: async () => {
    await countAll();
    await writeAll(Array.from({ length: LINES }, (_, at) => `token ${at}`));
  },
});
process.on("disconnect", () => {
  server.close();
  redis.disconnect();
  void db.close();
});
process.send?.(server.address);
