import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { type RedisCounters, redisCounters } from "../../src/adapters/counters/redis/redis-counters.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { isDraining } from "../../src/core/job/job.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { limitBook } from "../../src/core/quota/limits.ts";
import { Sums } from "../../src/core/quota/sums.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { openMemoryDb } from "../support/databases.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { seededRandom } from "../support/random.ts";
import { hasRedisServer, RedisServer } from "../support/redis-server.ts";
import { snapshotOf } from "../support/snapshot.ts";
import { ceilings } from "../tokens/limits.ts";
import { canonicalSums } from "../tokens/sums.ts";
import { ALONE } from "../tools/simulation/history.ts";
import { quotasOf } from "../tools/simulation/random-policies.ts";
import { GPU, World } from "../tools/simulation/world.ts";

const TICKS = 24;
const STRIKES_EVERY = 4;
const REST_TICKS_MAX = 400;
const KEYS = ["meta", "limits", "sums", "tokens", "waiters", "line", "expiries", "unconfirmed", "stands"];

type Scene = {
  readonly world: World;
  readonly server: RedisServer;
  readonly proxy: CuttingProxy;
  readonly counters: RedisCounters;
  readonly tag: string;
  readonly random: () => number;
};

/** The faults of Redis during a round. Redis must be usable again afterwards. */
const faults: Record<string, (scene: Scene) => Promise<unknown>> = {
  "Redis is flushed": ({ server }) => server.admin.flushall(),
  "a single key is lost": ({ server, tag, random }) => server.admin.del(`{${tag}}:${KEYS[upTo(random, KEYS.length)]}`),
  "Redis restarts empty": async ({ server }) => {
    await server.kill("SIGTERM");
    await server.start();
  },
  "Redis is killed, stays away for a round, and comes back with an old state": async ({ server, world }) => {
    await server.admin.save();
    await round(world);
    await server.kill("SIGKILL");
    await round(world);
    await server.start();
  },
  "requests of the planner are lost": async ({ proxy, random }) => proxy.cutNext("request", upTo(random, 4)),
  "answers to the planner are lost": async ({ proxy, random }) => proxy.cutNext("answer", upTo(random, 4)),
};

describe("a planner on counters in Redis", { skip: !hasRedisServer() }, () => {
  let db: Db;
  before(async () => {
    db = await openMemoryDb();
  });
  after(() => db.close());

  for (const [at, [name, fault]] of Object.entries(faults).entries()) {
    test(`no limit is exceeded and no token is lost when ${name}`, async () => {
      const server = await RedisServer.start();
      const proxy = await CuttingProxy.start(server.port);
      const scene = await arrange(db, { server, proxy, seed: at + 1 });
      try {
        await play(scene, fault);
        const { quotaEpoch } = await snapshotOf(db);
        assert.ok(proxy.cuts > 2 || quotaEpoch > 3, "the counters must have been lost several times");
        await comeToRest(scene);
        await checkAgainstLedger(db, scene);
      } finally {
        await scene.counters.close();
        await proxy.stop();
        await server.stop();
      }
    });
  }
});

function upTo(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

async function arrange(
  db: Db,
  { server, proxy, seed }: { server: RedisServer; proxy: CuttingProxy; seed: number },
): Promise<Scene> {
  const random = seededRandom(seed);
  const installation = randomUUID();
  const counters = await redisCounters({
    url: proxy.url,
    installation,
    domain: "default",
    reconnectMsMin: 1,
    onError: () => undefined,
    onWarning: (message) => assert.fail(message),
  });
  const world = await World.create({
    db,
    random,
    counters,
    processes: ALONE.processes,
    fateOf: () => "arrives",
    clusters: [
      { name: "east", flavor: "h100", nodes: 2, gpus: 4 },
      { name: "west", flavor: "a100", nodes: 2, gpus: 4 },
    ],
    queues: [
      { name: "default", strategy: "BEST_EFFORT_FIFO", quotas: quotasOf({ h100: 6, a100: 3 }) },
      { name: "small", strategy: "BEST_EFFORT_FIFO", quotas: quotasOf({ a100: 4, h100: 2 }) },
    ],
    classes: [],
  });
  return { world, server, proxy, counters, tag: `gangway:${installation}:default`, random };
}

/** Submits and runs jobs while the fault happens repeatedly, before and during rounds. */
async function play(scene: Scene, fault: (scene: Scene) => Promise<unknown>): Promise<void> {
  const { world, random } = scene;
  for (let tick = 0; tick < TICKS; tick += 1) {
    if (random() < 0.6) await submit(scene, `job-${tick}`, "3s");
    world.pass(1_000);
    await observe(world);
    const rounds = round(world);
    if (tick % STRIKES_EVERY === STRIKES_EVERY - 1) await fault(scene);
    await rounds;
    await work(world);
    await checkLimits(world);
  }
  scene.proxy.cutNothing();
}

/** Runs a round. The only allowed error is that Redis is unavailable. */
async function round(world: World): Promise<void> {
  try {
    for (const { planner } of world.planners) await planner.runOnce();
  } catch (error) {
    const causes = error instanceof AggregateError ? error.errors : [error];
    for (const cause of causes) assert.ok(cause instanceof UnavailableError, String(cause));
  }
  // A database in this process does not yield to sockets and timers by itself.
  await new Promise((resolve) => setImmediate(resolve));
}

async function observe(world: World): Promise<void> {
  await world.renew();
  for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
  for (const cluster of world.clusters) await world.observeCapacity(cluster);
  for (const { uid } of await world.jobs()) for (const { worker } of world.workers) worker.wake(uid);
}

async function work(world: World): Promise<void> {
  for (const { worker } of world.workers) await worker.runOnce();
}

/** Without faults, every job ends, and a further job is admitted and stays. */
async function comeToRest(scene: Scene): Promise<void> {
  const { world } = scene;
  await until(scene, async () => (await world.jobs()).every((job) => isTerminal(job.status) && !isDraining(job)));
  await submit(scene, "stays", "900000s");
  await until(scene, async () =>
    (await world.jobs()).some((job) => job.name === "stays" && job.status.phase === "RUNNING"),
  );
}

async function until(scene: Scene, done: () => Promise<boolean>): Promise<void> {
  const { world } = scene;
  for (let tick = 0; tick < REST_TICKS_MAX; tick += 1) {
    if (await done()) return;
    world.pass(2_000);
    await observe(world);
    await round(world);
    await work(world);
    await checkLimits(world);
  }
  const jobs = await world.jobs();
  assert.fail(jobs.map(({ name, status }) => `${name} ${status.phase} ${JSON.stringify(status.waiting)}`).join("\n"));
}

async function checkLimits(world: World): Promise<void> {
  for (const queue of await world.store.admin.listQueues()) {
    for (const { flavor, nominal } of queue.quotas) {
      const used = queue.used[flavor] ?? 0;
      assert.ok(used <= nominal, `${queue.name} uses ${used} of ${nominal} ${flavor}`);
    }
  }
}

/** The counters' sums equal the ledger's live rows, and no release is pending. */
async function checkAgainstLedger(db: Db, { world, counters }: Scene): Promise<void> {
  await round(world);
  await world.reapAll();
  const allocations = await db.query<{
    pool: string;
    queue: string;
    project: string;
    namespace: string;
    amount: number;
  }>("select pool, queue, project, namespace, amount from allocations where released_ms is null");
  const sums = new Sums(limitBook(ceilings([])));
  for (const allocation of allocations) sums.add(allocation);
  assert.equal(allocations.length, 1);
  assert.deepEqual(canonicalSums(await counters.used()), canonicalSums(sums.list()));
  assert.deepEqual(await ledgerAt(world.store).unconfirmedReleases(10), []);
  assert.deepEqual(world.errors, [], "no loop may throw");
}

async function submit({ world, random }: Scene, name: string, runs: string): Promise<void> {
  const annotations = { "sim.gangway.dev/pull": "100ms", "sim.gangway.dev/run": runs };
  const container = { name: "main", image: "trainer", resources: { limits: { [GPU]: "1" } } };
  await world.submit({
    namespace: "default",
    name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      replicaSpecs: {
        Worker: {
          replicas: 1 + Math.floor(random() * 3),
          restartPolicy: "Never",
          template: { metadata: { annotations }, spec: { containers: [container] } },
        },
      },
      runPolicy: { cleanPodPolicy: "All", schedulingPolicy: { queue: random() < 0.7 ? "default" : "small" } },
    },
  });
}
