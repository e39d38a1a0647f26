/**
 * Kills the whole process group of `npm start` at random moments while jobs are submitted, and starts it again each
 * time. Then lets it finish and counts what is left. `node test/tools/chaos/kills.ts [--kills N] [--seed S]`.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startSimCluster } from "../../../src/adapters/simcluster/sim-cluster.ts";
import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { CleanPodPolicy, type Job, JobPhase } from "../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../../src/gen/gangway/v1/queue_service_pb.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { WAIT_MS_MAX, waitUntil, within } from "../../support/bounded.ts";
import { seededRandom } from "../../support/random.ts";
import { ServiceProcess } from "../../support/service.ts";

/** The share of kills that hit a process while it starts. The others hit one that serves. */
const STARTING_SHARE = 0.3;
const KILL_AFTER_MS_MAX = 5_000;

export async function killAndCount(options: {
  readonly kills: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}): Promise<void> {
  const random = seededRandom(options.seed);
  const directory = mkdtempSync(join(tmpdir(), "gangway-kills-"));
  const acknowledged: string[] = [];
  try {
    for (let kill = 1; kill <= options.kills; kill += 1) {
      const service = new ServiceProcess(["--data", directory, "--listen", "127.0.0.1:0"]);
      const submitting = submitUntilGone(service, { prefix: `k${kill}`, acknowledged });
      const whileStarting = random() < STARTING_SHARE;
      const afterMs = Math.round(random() * KILL_AFTER_MS_MAX);
      if (!whileStarting) await service.listening();
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      await service.kill();
      await submitting;
      options.log(
        `kill ${kill} ${afterMs} ms after ${whileStarting ? "its start" : "listening"}, ` +
          `${acknowledged.length} jobs acknowledged so far`,
      );
    }
    const last = new ServiceProcess(["--data", directory, "--listen", "127.0.0.1:0", "--exit"]);
    const status = await within("the last run of the examples", WAIT_MS_MAX, last.exited());
    assert.equal(status, 0, `the examples end as expected after the kills:\n${last.output}`);
    await countWhatIsLeft(directory, acknowledged);
    options.log(`${options.kills} kills, ${acknowledged.length} jobs besides the examples: nothing lost, nothing left`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Submits small gangs while the service answers. A job that it acknowledged must never be lost. */
async function submitUntilGone(service: ServiceProcess, of: { prefix: string; acknowledged: string[] }): Promise<void> {
  if ((await service.listening()) === null) return;
  await using client = await service.client();
  for (let count = 1; count <= 3; count += 1) {
    const name = `${of.prefix}-${count}`;
    try {
      await client.call(JobService.method.createJob, { ...smallJob(name, count), requestId: name });
      of.acknowledged.push(name);
    } catch {
      return;
    }
  }
}

/** A gang, a JobSet or a TrainJob, each with two pods of two GPUs. */
function smallJob(name: string, count: number) {
  if (count === 1) return { job: smallGang(name) };
  return { manifest: count === 2 ? smallSet(name) : smallTrainJob(name) };
}

function smallSet(name: string) {
  const { template } = smallGang(name).spec.replicaSpecs.Worker;
  const job = { parallelism: 2, completions: 2, backoffLimit: 0, template };
  return {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name, annotations: { "gangway.dev/clean-pod-policy": "All" } },
    spec: { failurePolicy: { maxRestarts: 2 }, replicatedJobs: [{ name: "w", template: { spec: job } }] },
  };
}

function smallTrainJob(name: string) {
  const resourcesPerNode = { limits: { "nvidia.com/gpu": "2" } };
  const override = { targetJobs: [{ name: "node" }], metadata: { annotations: { "sim.gangway.dev/run": "700ms" } } };
  return {
    apiVersion: "trainer.kubeflow.org/v1alpha1",
    kind: "TrainJob",
    metadata: { name, annotations: { "gangway.dev/clean-pod-policy": "All" } },
    spec: {
      runtimeRef: { name: "torch-distributed" },
      trainer: { numNodes: 2, resourcesPerNode },
      podTemplateOverrides: [override],
    },
  };
}

function smallGang(name: string) {
  const annotations = { "sim.gangway.dev/run": "700ms" };
  const container = { name: "main", image: "trainer", resources: { limits: { "nvidia.com/gpu": "2" } } };
  return {
    metadata: { name },
    spec: {
      kind: "Job",
      runPolicy: { cleanPodPolicy: CleanPodPolicy.ALL },
      replicaSpecs: {
        Worker: { replicas: 2, template: { metadata: { annotations }, spec: { containers: [container] } } },
      },
    },
  };
}

async function countWhatIsLeft(directory: string, acknowledged: readonly string[]): Promise<void> {
  const service = new ServiceProcess(["--data", directory, "--listen", "127.0.0.1:0", "--no-examples"]);
  try {
    await using client = await service.client();
    const jobs = await whenQuiet(client);
    const names = new Set(jobs.map((job) => job.metadata?.name));
    assert.deepEqual(
      acknowledged.filter((name) => !names.has(name)),
      [],
      "nothing acknowledged is gone",
    );
    assert.equal(jobs.length, names.size, "no job is there twice");
    for (const job of jobs) await checkEndedOnce(client, job);
    const { queues } = await client.call(QueueService.method.listQueues, {});
    for (const queue of queues) {
      assert.deepEqual(
        Object.values(queue.use?.used ?? {}).filter((used) => used !== 0n),
        [],
        `all tokens of ${queue.name} are free`,
      );
    }
  } finally {
    await service.kill("SIGINT");
  }
  await checkClustersAreEmpty(directory);
}

/** Every job, once all have ended and hold no tokens. */
async function whenQuiet(client: GangwayClient): Promise<readonly Job[]> {
  let all: readonly Job[] = [];
  const ended = (job: Job) => (job.status?.phase ?? 0) >= JobPhase.SUCCEEDED && job.status?.draining !== true;
  await waitUntil("all jobs have ended and hold no tokens", async () => {
    const { jobs } = await client.call(JobService.method.listJobs, { pageSize: 1000 });
    all = jobs;
    return jobs.every(ended);
  });
  return all;
}

async function checkEndedOnce(client: GangwayClient, job: Job): Promise<void> {
  const { name = "", namespace = "" } = job.metadata ?? {};
  const { events } = await client.call(JobService.method.listJobEvents, { namespace, name, pageSize: 1000 });
  const kind = job.spec?.kind ?? "";
  const ends = events.filter((event) =>
    ["Succeeded", "Failed", "Cancelled"].some((end) => event.reason === `${kind}${end}`),
  );
  assert.equal(ends.length, 1, `${name} ended exactly once: ${ends.map((event) => event.reason).join(", ")}`);
}

async function checkClustersAreEmpty(directory: string): Promise<void> {
  for (const name of readdirSync(join(directory, "clusters"))) {
    const cluster = await startSimCluster({
      name,
      nodes: [],
      directory: join(directory, "clusters", name),
      clock: systemClock(),
    });
    const left = await Promise.all(
      ["pods", "services", "configmaps"].map(async (resource) => {
        const answer = await fetch(`${cluster.url}/api/v1/${resource}?labelSelector=gangway.dev/job-uid`);
        const { items } = (await answer.json()) as { items: { metadata: { name: string } }[] };
        return items.map((item) => `${resource}/${item.metadata.name}`);
      }),
    );
    await cluster.close();
    assert.deepEqual(left.flat(), [], `nothing is left in ${name}`);
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kills: { type: "string", default: "30" },
      seed: { type: "string", default: String(Date.now() % 100_000) },
    },
  });
  console.log(`seed ${values.seed}`);
  await killAndCount({ kills: Number(values.kills), seed: Number(values.seed), log: console.log });
}
