import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import type { ServeChild } from "../support/serve-process.ts";
import { allEndOnce, submitUntil } from "./gangs.ts";
import { Team } from "./team.ts";

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

  test("three workers share the buckets; a new one takes its share, a stopped one hands over at once", async () => {
    await waitUntil("each of three workers holds about a third", () => allHeldBy(3));
    const fourth = team.add("worker");
    await waitUntil("each of four workers holds about a quarter", () => allHeldBy(4));
    assert.equal(await fourth.end("SIGTERM"), 0, fourth.output);
    team.children.splice(team.children.indexOf(fourth), 1);
    const { free } = await one<{ free: boolean }>(
      "select not exists (select from workers where takes_buckets offset 3) as free",
    );
    assert.ok(free, "the stopped worker is no longer a member");
    await waitUntil("three workers hold all buckets again", () => allHeldBy(3));
  });

  test("a worker that is stopped as soon as it is a member ends in order, and hands over at once", async () => {
    await waitUntil("three workers hold all buckets", () => allHeldBy(3));
    const members = async () => (await rows("select from workers")).length;
    const before = await members();
    const late = team.add("worker");
    await waitUntil("the worker is a member", async () => (await members()) > before, { pollMs: 5 });
    assert.equal(await late.end("SIGTERM"), 0, late.output);
    team.children.splice(team.children.indexOf(late), 1);
    assert.equal(await members(), before);
  });

  test("a worker that lost its buckets while it was stopped records nothing under them", async () => {
    await waitUntil("three workers hold all buckets", () => allHeldBy(3));
    const [frozen] = workers() as [ServeChild];
    const before = await rows<{ worker: string; bucket: number; epoch: number }>("select * from bucket_leases");
    frozen.freeze();
    await waitUntil("the two other workers have taken its buckets", () => allHeldBy(2));
    const lost = before.filter(({ worker }) => worker.includes(`/${frozen.child.pid}/`));
    assert.ok(lost.length > 200);
    for (const { bucket, epoch } of lost) {
      const now = await one<{ epoch: number }>(`select epoch from bucket_leases where bucket = ${bucket}`);
      assert.ok(now.epoch > epoch, "a record under its old epoch is refused");
    }
    frozen.thaw();
    await waitUntil("it returns under another name and takes a share", () => allHeldBy(3));
    const names = (await rows<{ name: string }>("select name from workers")).map(({ name }) => name);
    assert.ok(
      names.some((name) => name.endsWith(`/2`) && name.includes(`/${frozen.child.pid}/`)),
      names.join(),
    );
  });

  test("one planner leads; after a kill another leads within the lease", async () => {
    const leader = async () =>
      (await one<{ holder: string }>("select holder from leases where name = 'planner'")).holder;
    const first = await leader();
    const child = team.children.find(({ child }) => first.includes(`/${child.pid}/`));
    assert.equal(child?.roles, "planner");
    await team.replace(child as ServeChild);
    await waitUntil("another planner leads", async () => (await leader()) !== first);
  });

  test(`${KILLS} kills during the work lose no job, run none twice and leave nothing behind`, async (t) => {
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
