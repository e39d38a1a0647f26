/** Policies of queues on simulated clusters and on real API servers, from the submit to the pods. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { type Job, liveAdmission } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { DEFAULT_POLICY, FAIR_SHARING_STRATEGIES, type QueuePolicy } from "../../src/core/plan/model/queue-policy.ts";
import { clock, gpuNodes, seededRandom } from "../cluster/harness.ts";
import { waitUntil } from "../support/bounded.ts";
import { controlPlaneBuilt } from "./build.ts";
import { startControlPlane } from "./control-plane.ts";
import { GPU, type ServedQueue, type Service, startService } from "./service.ts";
import { FAILS_FIRST, RUNS, TRAINING_STAGES } from "./stages.ts";
import { addNodes } from "./subject.ts";

const FLAVOR = "gpu/h100";
const FLAVORS = [{ name: FLAVOR, resource: GPU, nodeLabels: { "nvidia.com/gpu.product": "h100" } }];

type Server = { readonly name: string; readonly kubeconfig: string; readonly stop: () => Promise<void> };

/** How to start a cluster with nodes of eight GPUs. */
type StartServer = (name: string, nodes: number) => Promise<Server>;

async function simulated(name: string, nodes: number): Promise<Server> {
  const cluster = await startSimCluster({
    name,
    nodes: gpuNodes(nodes),
    directory: null,
    clock,
    random: seededRandom(1),
  });
  return { name, kubeconfig: cluster.kubeconfig(), stop: () => cluster.close() };
}

async function real(name: string, nodes: number): Promise<Server> {
  const plane = await startControlPlane({ stages: TRAINING_STAGES });
  await addNodes(plane, gpuNodes(nodes));
  return { name, kubeconfig: plane.kubeconfig(), stop: () => plane.stop() };
}

type Gang = {
  readonly pods: number;
  readonly gpus: number;
  readonly queue?: string;
  readonly clusters?: readonly string[];
  /** Omitted: they run about a second. `at last`: the first attempt of each fails. */
  readonly runs?: "forever" | "forever at last";
};

const RUNS_SHORTLY = { "sim.gangway.dev/run": "1s", "sim.gangway.dev/pull": "1ms" };
const RUNS_FOREVER = { "sim.gangway.dev/run": "forever", [RUNS]: "yes" };
const FAILS = { "sim.gangway.dev/fails": "OutOfcpu, none", [FAILS_FIRST]: "yes" };

function sent(name: string, { pods, gpus, queue, clusters, runs }: Gang): SentJob {
  const lasts = runs === undefined ? RUNS_SHORTLY : RUNS_FOREVER;
  const annotations = { ...lasts, ...(runs === "forever at last" ? FAILS : {}) };
  const container = {
    name: "main",
    image: "registry.example.com/train:1",
    resources: { limits: { [GPU]: `${gpus}` } },
  };
  const template = { metadata: { annotations }, spec: { containers: [container] } };
  return {
    namespace: "training",
    name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      runPolicy: { cleanPodPolicy: "All", ...(queue === undefined ? {} : { schedulingPolicy: { queue } }) },
      replicaSpecs: { Worker: { replicas: pods, template } },
      ...(clusters === undefined ? {} : { placement: { clusters } }),
    },
  };
}

/** A service on the clusters `east`, with 64 GPUs, and `west`, with 16. */
class Scene implements AsyncDisposable {
  readonly service: Service;

  private constructor(service: Service) {
    this.service = service;
  }

  static async start(servers: readonly Server[], queues: readonly [ServedQueue, ...ServedQueue[]]): Promise<Scene> {
    const served = servers.map(({ name, kubeconfig }) => ({ name, kubeconfig, flavors: FLAVORS }));
    return new Scene(await startService(served, queues));
  }

  async job(name: string): Promise<Job> {
    const [job] = await this.service.jobs([name]);
    return job ?? assert.fail(`no job ${name}`);
  }

  /** Waits until something holds. If it never does, the error tells how the jobs stand. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const jobs = async () =>
      (await this.service.jobs()).map(({ name, status: { phase, waiting } }) => {
        return `${name} ${phase} ${waiting?.message ?? ""}`;
      });
    await waitUntil(what, holds, { pollMs: 100 }).catch(async ({ message }: Error) => {
      throw new Error([message, ...(await jobs()), ...this.service.errors].join("\n"));
    });
  }

  /** Waits until a job is in a phase, and returns it. */
  async becomes(name: string, phase: Job["status"]["phase"]): Promise<Job> {
    await this.until(`${name} is ${phase}`, async () => (await this.job(name)).status.phase === phase);
    return this.job(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.close();
    assert.deepEqual(this.service.errors, []);
  }
}

function policy(parts: Partial<QueuePolicy>): QueuePolicy {
  return { ...DEFAULT_POLICY, ...parts };
}

/** Keeps more small jobs open than all nodes have room for, until it is stopped. */
function stream(service: Service, size: number) {
  const stop = new AbortController();
  const run = async () => {
    for (let made = 0; !stop.signal.aborted; ) {
      const open = (await service.jobs()).filter(({ status }) => !isTerminal(status)).length;
      for (let more = size - open; more > 0; more--, made++) {
        await service.submit(sent(`small-${made}`, { pods: 1, gpus: 1 }));
      }
      await clock.sleep(300);
    }
  };
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

/** The tests come one after another, since each leaves pods on the clusters. */
function scenarios(start: StartServer): void {
  let servers: readonly Server[] = [];

  before(async () => {
    servers = await Promise.all([start("east", 8), start("west", 2)]);
  });

  after(async () => {
    for (const server of servers) await server.stop();
  });

  test("a gang that needs all 64 GPUs boards beside an endless stream of jobs with one", async () => {
    const queue = { name: "default", quotas: { [FLAVOR]: 64 }, policy: policy({ reserveAfterMs: 2_000 }) };
    await using scene = await Scene.start(servers, [queue]);
    const { service } = scene;
    await using _ = stream(service, 80);
    await scene.until("the stream runs", async () => ((await service.used())["default"]?.[FLAVOR] ?? 0) >= 8);
    await service.submit(sent("wide", { pods: 8, gpus: 8 }));
    await scene.becomes("wide", "SUCCEEDED");
    const reasons = (await service.eventsOf(await scene.job("wide"))).map(({ reason }) => reason);
    assert.ok(reasons.includes("Reserving"), reasons.join());
    const waiting = (await service.jobs()).filter(({ status }) => status.phase === "WAITING");
    assert.ok(waiting.length > 0, "the stream goes on");
  });

  test("a team takes back its quota from a gang in another cluster, which comes back with its attempts", async () => {
    const reclaims = policy({ reclaimWithinTree: "ANY" });
    const queues: readonly [ServedQueue, ...ServedQueue[]] = [
      { name: "all", quotas: {} },
      { name: "owner", parent: "all", quotas: { [FLAVOR]: 8 }, policy: reclaims },
      { name: "borrower", parent: "all", quotas: { [FLAVOR]: 8 }, policy: reclaims },
    ];
    await using scene = await Scene.start(servers, queues);
    const { service } = scene;
    const borrows = { pods: 2, gpus: 4, queue: "borrower", clusters: ["west"] };
    await service.submit(sent("first", { ...borrows, runs: "forever" }));
    await scene.becomes("first", "RUNNING");
    await service.submit(sent("second", { ...borrows, runs: "forever at last" }));
    const failed = ({ status: { attempts } }: Job) => attempts.user + attempts.system;
    await scene.until("its first attempt is counted", async () => failed(await scene.job("second")) >= 1);
    const before = failed(await scene.becomes("second", "RUNNING"));
    await service.submit(sent("owned", { pods: 1, gpus: 8, queue: "owner", clusters: ["east"] }));
    await scene.until("the owner boards", async () => liveAdmission(await scene.job("owned")) !== null);
    const preempted = await scene.job("second");
    const condition = preempted.status.conditions.find(({ type }) => type === "Preempted");
    assert.deepEqual([condition?.status, condition?.reason], ["True", "InCohortReclamation"]);
    assert.match(condition?.message ?? "", /training\/owned/);
    assert.equal((await scene.job("first")).admissions.length, 1, "the gang within its quota stays");
    await scene.becomes("owned", "SUCCEEDED");
    const after = await scene.becomes("second", "RUNNING");
    assert.deepEqual(
      [liveAdmission(after)?.number, liveAdmission(after)?.cluster, after.status.attempts.preemptions],
      [2, "west", 1],
    );
    assert.ok(failed(after) >= before, `${failed(after)} attempts, and ${before} before`);
  });

  test("two teams without quota of their own come to their weights of three and one", async (t) => {
    const shares = (weight: number) => ({
      parent: "all",
      quotas: { [FLAVOR]: 0 },
      policy: policy({ weight, reclaimWithinTree: "ANY" }),
    });
    const queues: readonly [ServedQueue, ...ServedQueue[]] = [
      { name: "all", quotas: { [FLAVOR]: 8 }, policy: policy({ fairSharing: FAIR_SHARING_STRATEGIES }) },
      { name: "light", ...shares(1) },
      { name: "heavy", ...shares(3) },
    ];
    await using scene = await Scene.start(servers, queues);
    const { service } = scene;
    const usedBy = async () => {
      const used = await service.used();
      return ["light", "heavy"].map((name) => used[name]?.[FLAVOR] ?? 0);
    };
    for (const queue of ["light", "heavy"]) {
      for (let at = 0; at < 8; at++)
        await service.submit(sent(`${queue}-${at}`, { pods: 1, gpus: 1, queue, runs: "forever" }));
      if (queue === "light") await scene.until("the first team uses everything", async () => (await usedBy())[0] === 8);
    }
    const seen: string[] = [];
    await scene.until("the shares are as the weights", async () => {
      const now = (await usedBy()).join(" : ");
      if (seen.at(-1) !== now) seen.push(now);
      return now === "2 : 6";
    });
    t.diagnostic(`GPUs of weight 1 and weight 3: ${seen.join(", ")}`);
  });
}

suite("policies on simulated clusters", () => scenarios(simulated));
suite("policies on real API servers", { skip: !controlPlaneBuilt() }, () => scenarios(real));
