import type { Fleet } from "../fit/fleet.ts";
import type { PlannedFrom } from "../model/plan-gang.ts";
import type { GangClass, GangRecord, RunningAdmission } from "../queues/records.ts";
import type { Branch } from "../usage/branches.ts";
import { type Protected, type ProtectedBy, protectedBy, protectionOf } from "../victims/protection.ts";
import type { RunningGang, VictimSearch } from "../victims/running-gang.ts";
import type { RunningAdmissions } from "./running-admissions.ts";

type Protection = { readonly by: ProtectedBy; readonly untilMs: number };
type Asking = { readonly gangClass: GangClass; readonly gang: GangRecord };

/** Judges during one round which gangs may be preempted, whatever quota and capacity say. */
export class PreemptableGangs {
  readonly #fleet: Fleet;
  readonly #runningAdmissions: RunningAdmissions;
  readonly #nowMs: number;
  /** Gangs that the round has chosen as victims. No other gang may preempt them. */
  readonly #chosen = new Set<GangRecord>();
  /** When the first gang that was skipped may be preempted. Infinite: none was. */
  recheckAtMs = Number.POSITIVE_INFINITY;
  /** The gangs whose search has skipped protected gangs. */
  readonly #metProtected = new Set<GangRecord>();

  constructor(fleet: Fleet, runningAdmissions: RunningAdmissions, nowMs: number) {
    this.#fleet = fleet;
    this.#runningAdmissions = runningAdmissions;
    this.#nowMs = nowMs;
  }

  choose(gang: GangRecord): void {
    this.#chosen.add(gang);
  }

  get chosenCount(): number {
    return this.#chosen.size;
  }

  isChosen(gang: GangRecord): boolean {
    return this.#chosen.has(gang);
  }

  /**
   * A search among gangs that may be preempted now, in a cluster or in all of them: also those that are protected, or
   * not. It records when those that it leaves out may be preempted.
   */
  search(
    asking: Asking,
    { cluster, search }: { readonly cluster: string | null; readonly search: "victims" | "unprotected" },
  ): VictimSearch {
    const runningAdmissions = this.#runningAdmissions;
    return {
      quota: this.#fleet.quota,
      gangsOf: cluster === null ? runningAdmissions.staying : (queue) => runningAdmissions.inCluster(cluster, queue),
      leavesWith: (root, pools) => runningAdmissions.leavesWith(root, pools, cluster),
      mayTake: this.#judgeOf(asking, (gang, leaf) => {
        if (!this.#isPreemptable(gang)) return false;
        const protection = search === "unprotected" ? null : this.#protectionOf(gang, leaf);
        if (protection !== null) this.#noteSkipped(protection, asking.gang);
        return protection === null;
      }),
    };
  }

  /** A search among all gangs that may be preempted for a gang if none is protected. */
  searchAll(asking: Asking): VictimSearch {
    const mayTake = this.#judgeOf(asking, (gang) => !this.#chosen.has(gang.gang));
    return { quota: this.#fleet.quota, gangsOf: this.#runningAdmissions.staying, mayTake };
  }

  #judgeOf({ gangClass, gang: queued }: Asking, judge: (gang: RunningAdmission, preemptorLeaf: Branch) => boolean) {
    const preemptorLeaf =
      queued.facts.neverPreempts === true ? null : this.#fleet.quota.branches.leaf(gangClass.gangQueue.name);
    return (gang: RunningGang) => preemptorLeaf !== null && judge(gang as RunningAdmission, preemptorLeaf);
  }

  /** What is in a cluster that does not answer comes when it does, or never. */
  #isPreemptable(gang: RunningAdmission): boolean {
    if (this.#chosen.has(gang.gang) || this.#leafOf(gang) === null) return false;
    const { cluster } = gang.admission;
    return cluster === null || this.#fleet.clusters.get(cluster)?.facts?.reachable !== false;
  }

  /** Records that the search for a gang has skipped a protected gang, and when that one may be preempted. */
  #noteSkipped({ by, untilMs }: Protection, preemptor: GangRecord): void {
    this.#metProtected.add(preemptor);
    if (by === "minRuntime") this.recheckAtMs = Math.min(this.recheckAtMs, untilMs);
  }

  #leafOf({ account }: RunningAdmission): Branch | null {
    return this.#fleet.quota.branches.leaf(account.queue);
  }

  #protectionOf(gang: RunningAdmission, preemptor: Branch): Protection | null {
    if (isFrozen(this.#fleet, gang.gang, gang.admission)) return { by: "frozen", untilMs: Number.POSITIVE_INFINITY };
    const victim = this.#leafOf(gang);
    // Only what a gang needs to run is protected.
    if (gang.isGrowth === true || victim === null) return null;
    return protectionOf({ ...gang.gang.facts, admitTimeMs: gang.admitTimeMs }, { victim, preemptor }, this.#nowMs);
  }

  /**
   * The protection of the gangs that would be preempted for a gang if none were protected; `find` finds these. Null:
   * there are none, or the search has met no protected gang.
   */
  protectedFrom({ gangClass, gang: queued }: Asking, find: () => readonly RunningAdmission[]): Protected | null {
    const preemptor = this.#fleet.quota.branches.leaf(gangClass.gangQueue.name);
    if (preemptor === null || !this.#metProtected.has(queued)) return null;
    const found = find().flatMap((gang) => {
      const protection = this.#protectionOf(gang, preemptor);
      return protection === null ? [] : [{ ...protection, gang }];
    });
    if (found.length === 0) return null;
    const last = found.filter(({ by }) => by === "minRuntime").sort((a, b) => b.untilMs - a.untilMs)[0]?.gang;
    const by = protectedBy(found.map((one) => one.by));
    return { by, ...(last === undefined ? {} : { last: { jobUid: last.uid, admission: last.admission.number } }) };
  }
}

/** True if nothing may be taken from an admission: its queue or a pool that it uses is frozen. */
export function isFrozen(
  { quota }: Pick<Fleet, "quota">,
  { gangQueue }: Pick<GangRecord, "gangQueue">,
  { flavors }: Pick<PlannedFrom, "flavors">,
): boolean {
  return gangQueue.stop?.freeze !== undefined || Object.values(flavors).some((pool) => quota.frozen.has(pool));
}
