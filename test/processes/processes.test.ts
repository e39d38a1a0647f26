import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import type { ServeChild } from "../support/serve-process.ts";
import { allEndOnce, submitUntil } from "./gangs.ts";
import { Team, until } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const KILLS = Number(process.env["GANGWAY_KILLS"] ?? 8);
const PAUSE_MS_MAX = 2_000;

describe("a service in several processes", { skip: left }, () => {
  let team: Team;
  const roles = ["api", "api", "planner", "planner", "worker", "worker", "worker"];
  before(async () => {
    team = await Team.start(server ?? "", roles);
  });
  after(() => team.close());

  const rows = <R>(sql: string) => team.db.query<R>(sql);
  const one = async <R>(sql: string) => (await rows<R>(sql))[0] as R;
  const workers = () => team.children.filter((child) => child.roles === "worker");
  const shares = async () =>
    (
      await rows<{ held: number }>(
        "select count(*)::int as held from bucket_leases where worker in (select name from workers) group by worker",
      )
    ).map(({ held }) => held);
  const allHeldBy = async (count: number) => {
    const held = await shares();
    const isEven = Math.min(...held) > (0.6 * 1024) / count;
    return held.length === count && isEven && held.reduce((sum, share) => sum + share, 0) === 1024;
  };

  test("three workers share the buckets; one that comes takes its part, one that stops hands over at once", async () => {
    await until(() => allHeldBy(3), "each of three workers holds a third or so");
    const fourth = team.add("worker");
    await until(() => allHeldBy(4), "each of four holds a quarter or so");
    assert.equal(await fourth.end("SIGTERM"), 0, fourth.output);
    team.children.splice(team.children.indexOf(fourth), 1);
    const { free } = await one<{ free: boolean }>(
      "select not exists (select from workers where takes_buckets offset 3) as free",
    );
    assert.ok(free, "whoever has stopped is no member any more");
    await until(() => allHeldBy(3), "three share again");
  });

  test("a worker that lost its buckets while it stood still records nothing under them", async () => {
    await until(() => allHeldBy(3), "all are shared out");
    const [frozen] = workers() as [ServeChild];
    const before = await rows<{ worker: string; bucket: number; epoch: number }>("select * from bucket_leases");
    frozen.freeze();
    await until(() => allHeldBy(2), "two others have taken its buckets");
    const lost = before.filter(({ worker }) => worker.includes(`/${frozen.child.pid}/`));
    assert.ok(lost.length > 200);
    for (const { bucket, epoch } of lost) {
      const now = await one<{ epoch: number }>(`select epoch from bucket_leases where bucket = ${bucket}`);
      assert.ok(now.epoch > epoch, "nothing can be recorded under the epoch that it knows");
    }
    frozen.thaw();
    await until(() => allHeldBy(3), "it comes back under another name and takes a share again");
    const names = (await rows<{ name: string }>("select name from workers")).map(({ name }) => name);
    assert.ok(
      names.some((name) => name.endsWith(`/2`) && name.includes(`/${frozen.child.pid}/`)),
      names.join(),
    );
  });

  test("one planner leads, and when it is killed another does within the lease", async () => {
    const leader = async () =>
      (await one<{ holder: string }>("select holder from leases where name = 'planner'")).holder;
    const first = await leader();
    const child = team.children.find(({ child }) => first.includes(`/${child.pid}/`));
    assert.equal(child?.roles, "planner");
    await team.replace(child as ServeChild);
    await until(async () => (await leader()) !== first, "another planner leads");
  });

  test(`${KILLS} kills in the middle of the work lose nothing, double nothing and leave nothing`, async (t) => {
    const names = new Set<string>();
    const done = new AbortController();
    const submitting = submitUntil(team, done.signal, names);
    for (let kill = 0; kill < KILLS; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * PAUSE_MS_MAX));
      const child = team.children[Math.floor(Math.random() * team.children.length)] as ServeChild;
      t.diagnostic(`${child.roles} is killed with ${names.size} jobs submitted`);
      await team.replace(child);
    }
    done.abort();
    await submitting;
    await allEndOnce(team, names);
  });
});
