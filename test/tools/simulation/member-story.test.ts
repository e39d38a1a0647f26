/** A gang whose members end one after the other, and another one that gets what they give back. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { openMemoryDb } from "../../support/databases.ts";
import { seededRandom } from "../../support/random.ts";
import { MemberLaws } from "./member-laws.ts";
import { GPU, World } from "./world.ts";

const TICK_MS = 2_000;
const TICKS_MAX = 100;

let db: Db;
before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());

/** Eight GPUs in one queue and one cluster. */
const smallWorld = () =>
  World.create({
    db,
    random: seededRandom(1),
    fateOf: () => "arrives",
    clusters: [{ name: "east", flavor: "h100", nodes: 1, gpus: 8 }],
    queues: [
      {
        name: "default",
        strategy: "BEST_EFFORT_FIFO",
        quotas: [{ flavor: "gpu/h100", resource: GPU, nominal: 8 }],
      },
    ],
    classes: [],
    processes: { intakes: 1, planners: 1, workers: 1 },
  });

/** Each member requests two GPUs. */
type Role = { readonly replicas: number; readonly run: string; readonly exitCodes?: string };

const submit = (world: World, name: string, roles: Record<string, Role>, runPolicy: SentRunPolicy = {}) =>
  world.submit({
    namespace: "default",
    name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      replicaSpecs: Object.fromEntries(
        Object.entries(roles).map(([role, { replicas, run, exitCodes = "0" }]) => {
          const annotations = {
            "sim.gangway.dev/pull": "1s",
            "sim.gangway.dev/run": run,
            "sim.gangway.dev/exit-code": exitCodes,
          };
          const container = { name: "main", image: "trainer", resources: { limits: { [GPU]: "2" } } };
          const template = { metadata: { annotations }, spec: { containers: [container] } };
          return [role, { replicas, restartPolicy: "OnFailure" as const, template }];
        }),
      ),
      runPolicy: { backoffLimit: 3, ...runPolicy },
    },
  });

/** Lets time pass until the jobs, by name, are as wanted. The laws of members hold all the time. */
async function until(world: World, what: string, isSo: (jobs: Readonly<Record<string, Job>>) => boolean) {
  const laws = new MemberLaws(world);
  for (let tick = 0; tick < TICKS_MAX; tick += 1) {
    const jobs = await world.jobs();
    const byName = Object.fromEntries(jobs.map((job) => [job.name, job]));
    if (isSo(byName)) return byName;
    world.pass(TICK_MS);
    await world.renew();
    for (const process of world.workers) for (const view of process.views) world.refresh(process, view);
    for (const cluster of world.clusters) await world.observeCapacity(cluster);
    for (const { planner } of world.planners) await planner.runOnce();
    for (const { worker } of world.workers) await worker.runOnce();
    for (const job of await world.jobs()) await laws.checkTokens(job);
  }
  const phases = (await world.jobs()).map(({ name, status, admissions }) => {
    return `${name} ${status.phase} ${status.waiting?.message ?? ""} ${JSON.stringify(admissions)}`;
  });
  return assert.fail(`never: ${what}\n${phases.join("\n")}`);
}

const phaseIs = (job: Job | undefined, phase: string) => job?.status.phase === phase;

test("a gang that waits runs on the GPUs of members of another one that have ended", async (t) => {
  const world = await smallWorld();
  t.after(() => world.close());
  await submit(world, "long", { Short: { replicas: 3, run: "10s" }, Long: { replicas: 1, run: "100s" } });
  await until(world, "the first one runs", ({ long }) => phaseIs(long, "RUNNING"));
  await submit(world, "next", { Worker: { replicas: 3, run: "10s" } });
  const both = await until(world, "both run", ({ next }) => phaseIs(next, "RUNNING"));
  assert.ok(phaseIs(both["long"], "RUNNING"));
  assert.deepEqual(both["long"]?.admissions[0]?.returned, { Short: [0, 1, 2] });
  await until(world, "both succeed", ({ long, next }) => phaseIs(long, "SUCCEEDED") && phaseIs(next, "SUCCEEDED"));
});

test("a gang that restarts as a whole after that waits for the GPUs of all its members", async (t) => {
  const world = await smallWorld();
  t.after(() => world.close());
  const roles = { Short: { replicas: 3, run: "10s" }, Long: { replicas: 1, run: "40s", exitCodes: "1,0" } };
  await submit(world, "long", roles, { restartScope: "GANG" });
  await until(world, "the first one runs", ({ long }) => phaseIs(long, "RUNNING"));
  await submit(world, "next", { Worker: { replicas: 3, run: "60s" } });
  await until(world, "both run", ({ next }) => phaseIs(next, "RUNNING"));
  const waits = await until(world, "the first one waits", ({ long }) => phaseIs(long, "WAITING"));
  assert.ok(phaseIs(waits["next"], "RUNNING"));
  assert.equal(waits["long"]?.status.attempts.user, 1);
  await until(world, "the second one succeeds, and the first one waits until then", ({ long, next }) => {
    assert.ok(phaseIs(long, "WAITING") || phaseIs(next, "SUCCEEDED"), "it does not run beside the second one");
    return phaseIs(next, "SUCCEEDED");
  });
  const { long } = await until(world, "the first one succeeds", (jobs) => phaseIs(jobs["long"], "SUCCEEDED"));
  assert.equal(long?.admissions.at(-1)?.number, 2);
});
