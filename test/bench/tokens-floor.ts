/**
 * A gRPC server in a process of its own whose calls do nothing but what a call for tokens cannot do without: answer;
 * one bare script in Redis; one bare durable transaction. It ends with its parent.
 */
import { Redis } from "ioredis";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { postgresOptions } from "../support/postgres.ts";
import { startBareServer } from "./bare-server.ts";
import { BARE_SCRIPT, FLOORS } from "./token-floors.ts";

const [postgres = "", redisUrl = ""] = process.argv.slice(2);
const db = await openPostgres(postgresOptions(postgres));
await db.query("create table bench_tokens (id bigint generated always as identity primary key, token text not null)");
const redis = new Redis(redisUrl);
const sha = (await redis.script("LOAD", BARE_SCRIPT)) as string;

const write = (token: string) => db.query("insert into bench_tokens (token) values ($1)", [token]);
const count = () => redis.evalsha(sha, 1, "bench");

const server = await startBareServer({
  [FLOORS.echo]: async () => undefined,
  [FLOORS.script]: count,
  [FLOORS["script and transaction"]]: async (token) => {
    await count();
    await write(token.toString("utf8"));
  },
});
process.on("disconnect", () => {
  server.close();
  redis.disconnect();
  void db.close();
});
process.send?.(server.address);
