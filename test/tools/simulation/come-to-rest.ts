/** What every history of the whole service holds: no replica runs twice, and without faults everything ends. */
import assert from "node:assert/strict";
import { isDraining, type Job } from "../../../src/core/job/job.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import type { World } from "./world.ts";

/** Without faults everything has ended after so many ticks. */
const REST_TICKS_MAX = 400;
/** Reasons that only an admin or a larger cluster could remove. Jobs with these wait forever, and rightly so. */
const NEVER = ["AboveQuota", "TooLarge"];

/**
 * In the clusters that count no two running pods have the same job and index. `deleting` false: what is being deleted
 * does not count.
 */
export function checkNoReplicaTwice(
  world: World,
  { counts, deleting }: { readonly counts: (cluster: string) => boolean; readonly deleting: boolean },
): void {
  const running = new Map<string, string>();
  for (const cluster of world.clusters.filter(({ name }) => counts(name))) {
    for (const pod of cluster.pods().map(podView)) {
      if (pod.phase !== "Running" || pod.jobUid === null || (pod.deleting && !deleting)) continue;
      const replica = `${pod.jobUid}/${pod.role}/${pod.index}`;
      const where = `${cluster.name}/${pod.name} of admission ${pod.admission}`;
      assert.equal(running.get(replica), undefined, `${where} runs beside ${running.get(replica)}`);
      running.set(replica, where);
    }
  }
}

/**
 * Without further faults all calls that are under way arrive, and all jobs end. `act` gives every process its turn, and
 * lets so much time pass. The jobs are looked at after every so many ticks; `check` is called before.
 */
export async function comeToRest(
  world: World,
  of: {
    readonly act: (passesMs: number, tick: number) => Promise<void>;
    readonly check: () => Promise<void>;
    readonly every: number;
  },
): Promise<void> {
  for (let tick = 0; tick < REST_TICKS_MAX; tick += 1) {
    world.deliver((late) => late);
    await of.act(tick < 20 ? 500 : 5_000, tick);
    if (tick % of.every !== 0) continue;
    await of.check();
    const jobs = await world.jobs();
    if (tick > 8 && jobs.every(isOver) && world.clusters.every((cluster) => cluster.left().length === 0)) return;
    for (const job of jobs) await endIfStuck(world, job);
  }
  const rest = (await world.jobs()).map((job) => {
    const { name, status, admissions } = job;
    const draining = isDraining(job) ? " draining" : "";
    return `${name} ${status.phase}${draining} ${JSON.stringify(admissions)} ${JSON.stringify(status.waiting)}`;
  });
  const left = world.clusters.flatMap((cluster) => cluster.left().map((what) => `${cluster.name}/${what}`));
  assert.fail(`it does not come to rest:\n${rest.join("\n")}\nleft: ${left.join(", ")}`);
}

function isOver(job: Job): boolean {
  return isTerminal(job.status) && !isDraining(job) && job.deleteTimeMs === null;
}

/**
 * Resumes what is suspended, removes what clean-pod policies keep, and cancels what can never run. The policy None
 * keeps even what never ends by itself.
 */
async function endIfStuck(world: World, { namespace, name, version, status, spec, deleteTimeMs }: Job): Promise<void> {
  const job = { namespace, name, version };
  if (spec.runPolicy.suspend === true) await world.anyIntake().change(job, { version: null, suspend: false });
  const isKept = isTerminal(status) && spec.runPolicy.cleanPodPolicy !== "All" && deleteTimeMs === null;
  if (isKept) await world.anyIntake().remove({ namespace, name });
  if (NEVER.includes(status.waiting?.reason ?? "")) {
    await world.anyIntake().cancel({ namespace, name }, "can never run");
  }
}
