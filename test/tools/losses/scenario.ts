/**
 * Three real API servers: one is killed for good, one loses all packets for a while, one is slow, and a worker is
 * killed. Prints what users of the gangs there would have seen.
 */

import { LABEL } from "../../../src/core/job/labels.ts";
import { type PodView, podView } from "../../../src/core/pods/read/pod-view.ts";
import { ClusterState } from "../../../src/gen/gangway/v1/cluster_service_pb.ts";
import { type Job, JobPhase } from "../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { RUNS } from "../../kube/stages.ts";
import { waitUntil } from "../../support/bounded.ts";
import { pick, seededRandom } from "../../support/random.ts";
import { plannedIn } from "../simulation/placement-laws.ts";
import { FaultyPlane, GPU } from "./faulty-plane.ts";
import { LostService, NAMESPACE, type ServiceTimes } from "./lost-service.ts";

export type LostScenario = ServiceTimes & {
  readonly postgres: string;
  readonly seed: number;
  /** Gangs that run until they are cancelled, and gangs that end by themselves before and after the death. */
  readonly long: number;
  readonly short: number;
  /** Jobs whose worker is killed. */
  readonly resumed: number;
  readonly nodes: number;
  readonly blackHoleMs: number;
};

export type LostNumbers = {
  readonly inDead: number;
  readonly unreachableMs: number;
  /** From the death to running elsewhere, of each gang that ran in the dead cluster. */
  readonly elsewhereMs: readonly number[];
  readonly createBeforeMs: readonly number[];
  readonly createAfterMs: readonly number[];
  /** Creates in a cluster while another one is slow. */
  readonly createBesideSlowMs: readonly number[];
  readonly placed: number;
  readonly offPlan: number;
  /** Gangs that left the cluster which lost all packets for a while. */
  readonly leftBlackHole: number;
  /** Replicas that were seen running twice in clusters that can be seen. */
  readonly ranTwice: readonly string[];
  readonly tokensAtEnd: number;
  /** From the resume of a job, right after a worker was killed, to its next phase. */
  readonly resumedMs: readonly number[];
  readonly unended: number;
};

const SIZES = [1, 1, 2, 2, 4, 4, 8, 8, 16, 32];
const GPUS_PER_NODE = 8;
const WAIT = { maxMs: 600_000, pollMs: 250 };
const ENDED: readonly JobPhase[] = [JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.CANCELLED];

export async function runLostScenario(of: LostScenario, print: (line: string) => void): Promise<LostNumbers> {
  await using parts = new AsyncDisposableStack();
  const planes: FaultyPlane[] = [];
  for (const name of ["dies", "vanishes", "slows"]) {
    const plane = await FaultyPlane.start(name, { nodes: of.nodes, gpus: GPUS_PER_NODE });
    parts.defer(() => plane.stop());
    planes.push(plane);
  }
  const [dies, vanishes, slows] = planes as [FaultyPlane, FaultyPlane, FaultyPlane];
  const service = await LostService.start(parts, { postgres: of.postgres, planes, times: of });
  const active = async (...names: readonly string[]) => {
    const states = await service.states();
    return names.every((name) => states.get(name) === ClusterState.ACTIVE);
  };
  await waitUntil("every cluster is active", () => active("dies", "vanishes", "slows"), WAIT);
  const gangs = new Gangs(service, of);
  const twice = watchReplicas(planes, parts);

  await gangs.submitLong();
  await gangs.whenRunning();
  print(`${of.long} gangs run`);
  await gangs.shortOnes("before", of.short);
  const createBeforeMs = takeCreates(vanishes, slows);
  const inDead = gangs.in(await service.jobs(), "dies");
  const startMs = performance.now();
  await dies.die();
  print(`a cluster with ${inDead.length} gangs is gone`);
  const isSilent = async () => (await service.states()).get("dies") !== ClusterState.ACTIVE;
  await waitUntil("it is unreachable", isSilent, WAIT);
  const unreachableMs = performance.now() - startMs;
  const shorts = gangs.shortOnes("after", of.short);
  const elsewhereMs = await gangs.whenElsewhere(inDead, "dies", startMs);
  await shorts;
  const createAfterMs = takeCreates(vanishes, slows);
  print("its gangs run elsewhere");
  const { placed, offPlan } = await countPlaced([vanishes, slows]);

  const inHole = gangs.in(await service.jobs(), "vanishes");
  vanishes.blackHole();
  await new Promise((resolve) => setTimeout(resolve, of.blackHoleMs));
  vanishes.answerAgain();
  await waitUntil("it answers again", () => active("vanishes"), WAIT);
  const stillThere = new Set(gangs.in(await service.jobs(), "vanishes"));
  const leftBlackHole = inHole.filter((name) => !stillThere.has(name)).length;
  print(`a cluster with ${inHole.length} gangs was cut off for ${of.blackHoleMs / 1000} s`);

  slows.slowWrites(2_000);
  await gangs.shortOnes("beside", of.short, "vanishes");
  const createBesideSlowMs = takeCreates(vanishes);
  slows.slowWrites(0);
  takeCreates(slows);

  const resumedMs = await gangs.resumeAfterKill(of.resumed);
  print("a worker was killed");
  await gangs.cancelAll();
  const jobs = await service.jobs();
  const unended = [...jobs.values()].filter(({ status }) => !ENDED.includes(status?.phase ?? 0)).length;
  await waitUntil("no token is held", async () => (await service.used()) === 0, WAIT).catch(() => undefined);
  const tokensAtEnd = await service.used();
  const measured = { inDead: inDead.length, unreachableMs, elsewhereMs, createBeforeMs, createAfterMs };
  const seen = { createBesideSlowMs, placed, offPlan, leftBlackHole, ranTwice: [...twice], tokensAtEnd };
  return { ...measured, ...seen, resumedMs, unended };
}

/** The jobs of the scenario. */
class Gangs {
  readonly #service: LostService;
  readonly #of: LostScenario;
  readonly #random: () => number;
  readonly #long: string[] = [];

  constructor(service: LostService, of: LostScenario) {
    this.#service = service;
    this.#of = of;
    this.#random = seededRandom(of.seed);
  }

  /** Gangs that fill half of all clusters at most: those of one cluster fit into the two others. */
  async submitLong(): Promise<void> {
    let left = (3 * this.#of.nodes * GPUS_PER_NODE) / 2;
    const jobs = Array.from({ length: this.#of.long }, (_, at) => {
      const size = Math.max(1, Math.min(pick(this.#random, SIZES), left - (this.#of.long - at)));
      left -= size;
      return jobOf(`long-${at}`, size, { runs: true });
    });
    this.#long.push(...jobs.map(({ metadata }) => metadata.name));
    await this.#create(jobs);
  }

  async whenRunning(): Promise<void> {
    await waitUntil("every gang runs", async () => this.#allAre(await this.#service.jobs(), JobPhase.RUNNING), WAIT);
  }

  #allAre(jobs: ReadonlyMap<string, Job>, phase: JobPhase): boolean {
    return this.#long.every((name) => jobs.get(name)?.status?.phase === phase);
  }

  /** Runs gangs that end by themselves, a few at a time. */
  async shortOnes(prefix: string, count: number, cluster = ""): Promise<void> {
    const jobs = Array.from({ length: count }, (_, at) => {
      return jobOf(`${prefix}-${at}`, pick(this.#random, [1, 2, 4]), { runs: false, cluster });
    });
    for (let from = 0; from < count; from += 10) {
      await this.#create(jobs.slice(from, from + 10));
      const names = jobs.slice(0, from + 10).map(({ metadata }) => metadata.name);
      const haveEnded = async () => {
        const all = await this.#service.jobs();
        return names.every((name) => ENDED.includes(all.get(name)?.status?.phase ?? 0));
      };
      await waitUntil(`the gangs ${prefix} end`, haveEnded, WAIT);
    }
  }

  /** The gangs that run in a cluster, by name. */
  in(jobs: ReadonlyMap<string, Job>, cluster: string): readonly string[] {
    return this.#long.filter((name) => jobs.get(name)?.status?.admission?.cluster === cluster);
  }

  /** How long after `startMs` each of these gangs ran elsewhere. */
  async whenElsewhere(names: readonly string[], cluster: string, startMs: number): Promise<readonly number[]> {
    const tookMs = new Map<string, number>();
    const look = async () => {
      const jobs = await this.#service.jobs();
      for (const name of names) {
        const { phase, admission } = jobs.get(name)?.status ?? {};
        const isElsewhere = phase === JobPhase.RUNNING && admission?.cluster !== cluster;
        if (isElsewhere && !tookMs.has(name)) tookMs.set(name, performance.now() - startMs);
      }
      return tookMs.size === names.length;
    };
    await waitUntil("every gang of the dead cluster runs elsewhere", look, WAIT);
    return [...tookMs.values()];
  }

  /** Kills a worker, resumes jobs at once, and returns how long each took to go on. Suspended ones cost no pods. */
  async resumeAfterKill(count: number): Promise<readonly number[]> {
    const names = Array.from({ length: count }, (_, at) => `resumed-${at}`);
    await this.#create(names.map((name) => jobOf(name, 1, { runs: false, suspend: true })));
    const phaseOf = (jobs: ReadonlyMap<string, Job>, name: string) => jobs.get(name)?.status?.phase ?? 0;
    const areSuspended = async () => {
      const jobs = await this.#service.jobs();
      return names.every((name) => phaseOf(jobs, name) === JobPhase.SUSPENDED);
    };
    await waitUntil("the jobs are suspended", areSuspended, WAIT);
    await this.#service.workers[0]?.end("SIGKILL");
    const killedMs = performance.now();
    const updateMask = { paths: ["spec.run_policy.suspend"] };
    await Promise.all(
      names.map((name) => {
        const job = { metadata: { namespace: NAMESPACE, name }, spec: { runPolicy: { suspend: false } } };
        return this.#service.client.call(JobService.method.updateJob, { job, updateMask });
      }),
    );
    const tookMs = new Map<string, number>();
    const look = async () => {
      const jobs = await this.#service.jobs();
      for (const name of names) {
        if (!tookMs.has(name) && phaseOf(jobs, name) !== JobPhase.SUSPENDED)
          tookMs.set(name, performance.now() - killedMs);
      }
      return tookMs.size === names.length;
    };
    await waitUntil("every resumed job goes on", look, { ...WAIT, pollMs: 50 });
    return [...tookMs.values()];
  }

  async cancelAll(): Promise<void> {
    for (const name of this.#long) {
      await this.#service.client.call(JobService.method.cancelJob, { namespace: NAMESPACE, name });
    }
    const haveEnded = async () =>
      [...(await this.#service.jobs()).values()].every(({ status }) => ENDED.includes(status?.phase ?? 0));
    await waitUntil("every gang ends", haveEnded, WAIT).catch(() => undefined);
  }

  async #create(jobs: readonly ReturnType<typeof jobOf>[]): Promise<void> {
    const requests = jobs.map((job) => ({ job }));
    const { results } = await this.#service.client.call(JobService.method.batchCreateJobs, { requests });
    const refused = results.find(({ result }) => result.case === "error");
    if (refused !== undefined) throw new Error(`a job is refused: ${JSON.stringify(refused.result.value)}`);
  }
}

function jobOf(
  name: string,
  pods: number,
  {
    runs,
    cluster = "",
    suspend = false,
  }: { readonly runs: boolean; readonly cluster?: string; readonly suspend?: boolean },
) {
  const container = { name: "main", image: "train:1", resources: { limits: { [GPU]: "1" } } };
  const annotations = runs ? { [RUNS]: "yes" } : {};
  const template = { metadata: { annotations }, spec: { containers: [container] } };
  return {
    metadata: { namespace: NAMESPACE, name },
    spec: {
      kind: "Job",
      replicaSpecs: { Worker: { replicas: pods, template } },
      runPolicy: { suspend },
      ...(cluster === "" ? {} : { placement: { clusters: [cluster] } }),
    },
  };
}

function takeCreates(...planes: readonly FaultyPlane[]): readonly number[] {
  return planes.flatMap((plane) => plane.createMs.splice(0));
}

async function podsIn({ client }: FaultyPlane): Promise<readonly JsonObject[]> {
  const listed = await client.request({ method: "GET", path: `/api/v1/namespaces/${NAMESPACE}/pods` });
  return listed.kind === "ok" ? arrayAt(listed.object, "items").filter(isJsonObject) : [];
}

/** How many pods came to a node that was planned for them or not. */
async function countPlaced(planes: readonly FaultyPlane[]) {
  const pods = (await Promise.all(planes.map(podsIn))).flat();
  const placed = pods.filter((pod) => {
    const { nodeName, labels } = podView(pod);
    return nodeName !== "" && labels[LABEL.placement] !== undefined;
  });
  const off = placed.filter((pod) => plannedIn(objectAt(pod, "spec")) !== podView(pod).nodeName);
  return { placed: placed.length, offPlan: off.length };
}

/** Looks for replicas that run twice in clusters that are there, once a second until the parts end. */
function watchReplicas(planes: readonly FaultyPlane[], parts: AsyncDisposableStack): ReadonlySet<string> {
  const twice = new Set<string>();
  const replicaOf = ({ jobUid, role, index }: PodView) => `${jobUid}/${role}/${index}`;
  const look = async () => {
    const running = new Map<string, string>();
    for (const plane of planes.filter(({ isDead }) => !isDead)) {
      for (const pod of (await podsIn(plane)).map(podView)) {
        if (pod.phase !== "Running" || pod.deleting) continue;
        const where = running.get(replicaOf(pod));
        if (where !== undefined && where !== pod.uid) twice.add(`${replicaOf(pod)} in ${plane.name}`);
        running.set(replicaOf(pod), pod.uid);
      }
    }
  };
  const stop = new AbortController();
  const loop = (async () => {
    while (!stop.signal.aborted) {
      await look().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  parts.defer(async () => {
    stop.abort();
    await loop;
  });
  return twice;
}
