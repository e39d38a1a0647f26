import assert from "node:assert/strict";
import { type Job, liveAdmission } from "../../../src/core/job/job.ts";
import { holdingMembers, keptMembers } from "../../../src/core/job/roles.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { hasEnded, type PodView, podView } from "../../../src/core/pods/read/pod-view.ts";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import { arrayAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { SERVICE_KIND } from "./sim-service.ts";
import { GPU, type World } from "./world.ts";

/** The members of live admissions hold tokens while their pods run or may run, and no longer. */
export class MemberLaws {
  /** How many looks saw members that gave their tokens back. */
  readonly met = { returned: 0 };
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * A live admission holds exactly the tokens of its members that gave none back, however often it grew and shrank. No
   * pod of the others runs. What its job held as a nominee in other pools goes in the next round of the reaper.
   */
  async checkTokens({ uid, name }: Job): Promise<void> {
    const shown = await this.#world.store.reads.getJob({ uid });
    const live = shown === null ? null : liveAdmission(shown.job);
    if (shown === null || live === null) return;
    if (shown.job.spec.kind === SERVICE_KIND)
      return assert.ok(shown.tokens.length <= 1, `${name} holds one slot at most`);
    const pools = Object.values(live.flavors);
    const own = shown.tokens.filter(({ pool }) => pools.includes(pool));
    const held = own.reduce((sum, { amount }) => sum + amount, 0);
    const holding = Object.entries(holdingMembers(live));
    const wanted = holding.reduce((sum, [role, count]) => sum + count * gpusOf(shown.job, role), 0);
    assert.equal(held, wanted, `${name} holds ${held} tokens with ${JSON.stringify(live)}`);
    const running = this.#podsOf(shown.job, live).filter((pod) => !hasEnded(pod) && isReturned(live, pod));
    assert.deepEqual(
      running.map((pod) => pod.name),
      [],
      `pods of ${name} run whose members gave their tokens back`,
    );
    if (live.returned !== undefined) this.met.returned += 1;
  }

  /** Call it after steps with fresh caches: a member whose pod has succeeded holds no tokens any more. */
  checkReturned(job: Job, admission: Admission): void {
    if (Object.keys(admission.flavors).length === 0 || gpusOf(job, "Worker") === 0) return;
    const succeeded = this.#podsOf(job, admission).filter((pod) => {
      const isOld = pod.createTimeMs + OUTSTANDING_MS <= this.#world.clock.atMs;
      const isPresent = pod.attempt === recordedAttempt(job, pod.role, pod.index) && !pod.deleting;
      return pod.phase === "Succeeded" && isOld && isPresent && isMember(job, admission, pod);
    });
    assert.deepEqual(
      succeeded.filter((pod) => !isReturned(admission, pod)).map((pod) => pod.name),
      [],
      `pods of ${job.name} have succeeded, and hold tokens`,
    );
  }

  #podsOf({ uid }: Job, { number, cluster }: Admission): readonly PodView[] {
    const pods = this.#world.clusters.find(({ name }) => name === cluster)?.pods() ?? [];
    return pods.map(podView).filter((pod) => pod.jobUid === uid && pod.admission === number);
  }
}

/** The GPUs of each pod of a replica type. */
function gpusOf({ spec }: Job, role: string): number {
  const container = arrayAt(objectAt(spec.replicaSpecs[role]?.template, "spec"), "containers")[0];
  return Number(stringAt(objectAt(objectAt(container, "resources"), "limits"), GPU) ?? 0);
}

function isReturned({ returned = {} }: Admission, { role, index }: PodView): boolean {
  return Object.entries(returned).some(([name, indexes]) => {
    return name.toLowerCase() === role && indexes.includes(index ?? -1);
  });
}

function isMember(job: Job, admission: Admission, { role, index }: PodView): boolean {
  return Object.entries(keptMembers(job, admission)).some(
    ([name, count]) => name.toLowerCase() === role && (index ?? 0) < count,
  );
}

/** The attempt of a pod's member that the record of its job names. */
export function recordedAttempt({ status, spec }: Job, podRole: string | null, index: number | null): number {
  const role = Object.keys(spec.replicaSpecs).find((name) => name.toLowerCase() === podRole);
  return status.attempts.byReplica[`${role ?? ""}/${index ?? 0}`] ?? 1;
}
