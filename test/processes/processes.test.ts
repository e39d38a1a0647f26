import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LABEL } from "../../src/core/job/labels.ts";
import { CleanPodPolicy } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import type { ServeChild } from "../support/serve-process.ts";
import { Team, until } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
const KILLS = Number(process.env["GANGWAY_KILLS"] ?? 8);
const PAUSE_MS_MAX = 2_000;
const ENDED = "('SUCCEEDED', 'FAILED', 'CANCELLED')";

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
    const stoppedMs = Date.now();
    assert.equal(await fourth.end("SIGTERM"), 0, fourth.output);
    assert.ok(Date.now() - stoppedMs < 5_000, "it stops within five seconds");
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
    await until(async () => {
      const { open } = await one<{ open: number }>(
        `select count(*)::int as open from jobs where phase not in ${ENDED} or status::jsonb ->> 'draining' = 'true'`,
      );
      const { used } = await one<{ used: number }>("select coalesce(sum(used), 0)::int as used from allocation_sums");
      const { there } = await one<{ there: number }>("select count(*)::int as there from admission_clusters");
      return open === 0 && used === 0 && there === 0;
    }, "every job has ended, no token is held and nothing is left in a cluster");
    await countTheEnds(names);
  });

  async function countTheEnds(names: ReadonlySet<string>): Promise<void> {
    const jobs = await rows<{ name: string; phase: string }>("select name, phase from jobs");
    assert.deepEqual(new Set(jobs.map(({ name }) => name)), new Set(names), "what was acknowledged is there");
    assert.deepEqual(
      jobs.filter(({ phase }) => phase !== "SUCCEEDED"),
      [],
      "every job succeeded",
    );
    const twice = await rows(
      "select name from job_events where reason = 'JobSucceeded' group by name having count(*) <> 1",
    );
    assert.deepEqual(twice, [], "each ended once");
    for (const cluster of team.clusters) {
      for (const resource of ["pods", "services", "configmaps"] as const) {
        const there = [...cluster.model.store.objects(resource)]
          .filter(({ metadata }) => LABEL.installation in (metadata.labels ?? {}))
          .map(({ metadata }) => metadata.name);
        assert.deepEqual(there, [], `${resource} of ${cluster.name}`);
      }
    }
  }
});

/** Submits small gangs, each under a request id until it is acknowledged, to whichever API answers. */
async function submitUntil(team: Team, done: AbortSignal, acknowledged: Set<string>): Promise<void> {
  for (let count = 1; !done.aborted; count += 1) {
    const name = `gang-${count}`;
    while (!(await submit(team, name))) await new Promise((resolve) => setTimeout(resolve, 50));
    acknowledged.add(name);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function submit(team: Team, name: string): Promise<boolean> {
  const closed = new AbortController();
  const client = team.client(closed.signal);
  if (client === null) return false;
  try {
    await client.call(JobService.method.createJob, { job: gang(name), requestId: name });
    return true;
  } catch {
    return false;
  } finally {
    closed.abort();
    client.close();
  }
}

function gang(name: string) {
  const annotations = { "sim.gangway.dev/run": "500ms", "sim.gangway.dev/pull": "50ms" };
  const container = { name: "main", image: "trainer", resources: { limits: { "nvidia.com/gpu": "2" } } };
  return {
    metadata: { name },
    spec: {
      kind: "Job",
      runPolicy: { cleanPodPolicy: CleanPodPolicy.ALL },
      replicaSpecs: {
        Worker: { replicas: 3, template: { metadata: { annotations }, spec: { containers: [container] } } },
      },
    },
  };
}
