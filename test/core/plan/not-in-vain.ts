/** A law of worlds in which nothing arrives or ends: no gang is preempted in vain. */
import assert from "node:assert/strict";
import type { PlanGang, PlannedFrom } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { PlannedPreemption } from "../../../src/core/plan/model/preemption.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import type { RestFleet } from "./rest-world.ts";

type Running = ReadonlyMap<string, PlannedFrom>;

/** A preemption, and what ran before it. */
type Preempted = { readonly preemption: PlannedPreemption; readonly before: Running };

/**
 * Watches a world from one arrival to its rest. A nominee runs in the cluster and with the flavors that it was
 * nominated for, unless an earlier gang of its queue takes its place. Its victims have given what it uses.
 */
export class NotInVain {
  readonly #fleet: RestFleet;
  readonly #name: string;
  readonly #nominated = new Map<string, PlannedAdmission>();
  readonly #preempted: Preempted[] = [];
  #running: Running;
  readonly met = { nominees: 0, passed: 0 };

  constructor(fleet: RestFleet, name: string) {
    this.#fleet = fleet;
    this.#name = name;
    this.#running = runningIn(fleet);
  }

  /** Sees each plan after its record. */
  readonly see = ({ admissions, preemptions, withdrawn }: FleetPlan): void => {
    for (const planned of admissions) if (planned.kind === "admit") this.#start(planned);
    for (const uid of withdrawn) this.#withdraw(uid);
    for (const preemption of preemptions) this.#nominate(preemption);
    this.#running = runningIn(this.#fleet);
  };

  #start(planned: PlannedAdmission): void {
    const { jobUid, cluster, flavors, members } = planned;
    const named = this.#nominated.get(jobUid);
    if (named === undefined) return;
    const of = (one: PlannedAdmission) => ({ cluster: one.cluster, flavors: one.flavors });
    assert.deepEqual({ cluster, flavors }, of(named), `${this.#name}: ${jobUid} runs elsewhere`);
    const lost = Object.entries(named.members).filter(([role, count]) => (members[role] ?? 0) < count);
    assert.deepEqual(lost, [], `${this.#name}: ${jobUid} runs with fewer members`);
    this.#nominated.delete(jobUid);
    this.met.nominees += 1;
  }

  #withdraw(uid: string): void {
    if (!this.#nominated.delete(uid)) return;
    assert.ok(this.#isBehind(this.#fleet.gangs.get(uid) as PlanGang), `${this.#name}: ${uid} is a nominee no more`);
  }

  /** True for a gang of a strict queue in which an earlier one waits, perhaps since it has backed off. */
  #isBehind(gang: PlanGang): boolean {
    return [...this.#fleet.gangs.values()].some(({ uid, queue, waits, backoff }) => {
      const isReady = queue === gang.queue && waits && (backoff?.notBeforeMs ?? 0) <= this.#fleet.nowMs;
      return isReady && this.#fleet.isStrict(queue) && this.#fleet.isBefore(uid, gang.uid);
    });
  }

  #nominate(preemption: PlannedPreemption): void {
    const { planned, victims, takesOver = [] } = preemption;
    for (const { jobUid, victims: left } of takesOver) {
      if (left === undefined) continue;
      assert.ok(this.#nominated.delete(jobUid), `${this.#name}: ${jobUid} is no nominee`);
      this.met.passed += 1;
    }
    const pools = new Set(planned.allocations.flatMap(({ pool, amount }) => (amount > 0 ? [pool] : [])));
    for (const { jobUid } of victims) {
      const given = Object.values(this.#running.get(jobUid)?.flavors ?? {});
      assert.ok(
        given.some((pool) => pools.has(pool)),
        `${this.#name}: ${jobUid} gives nothing that is needed`,
      );
    }
    this.#nominated.set(planned.jobUid, planned);
    this.#preempted.push({ preemption, before: this.#running });
  }

  /** The world is at rest. */
  end(): void {
    assert.deepEqual([...this.#nominated.keys()], [], `${this.#name}: nominees wait for ever`);
    const [only] = this.#preempted;
    if (only !== undefined && this.#preempted.length === 1) this.#judge(only);
  }

  /** The nominee and all that ran before do not run together: it has needed victims. */
  #judge({ preemption, before }: Preempted): void {
    if (!this.#running.has(preemption.planned.jobUid)) return;
    const runsOn = ([uid, was]: readonly [string, PlannedFrom]) => placeOf(this.#running.get(uid)) === placeOf(was);
    assert.ok(![...before].every(runsOn), `${this.#name}: ${preemption.planned.jobUid} has needed no victims`);
  }
}

function runningIn({ gangs }: RestFleet): Running {
  return new Map([...gangs.values()].flatMap(({ uid, admissions }) => admissions.map((one) => [uid, one] as const)));
}

function placeOf(of: PlannedFrom | undefined): string | undefined {
  return of && JSON.stringify([of.cluster, of.flavors, of.members]);
}
