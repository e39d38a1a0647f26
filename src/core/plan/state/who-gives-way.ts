import type { PlannedFrom } from "../plan-gang.ts";
import { type Protected, type ProtectedBy, protectedBy, protectionOf } from "../preempt/protection.ts";
import type { RunningGang, VictimSearch } from "../preempt/running-gang.ts";
import type { Branch } from "./branches.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

type Asking = { readonly lane: Lane; readonly entry: Entry };

/** Judges during one round which gangs may give way, whatever quota and room say. */
export class WhoGivesWay {
  readonly #parts: Parts;
  readonly #runners: Runners;
  readonly #nowMs: number;
  /** Gangs that the round has chosen for others: nobody else takes anything of them. */
  readonly #chosen = new Set<Entry>();
  /** When the first gang that was passed over may be preempted. Infinite: none was. */
  recheckAtMs = Number.POSITIVE_INFINITY;
  /** The gangs whose search has left out others that are protected. */
  readonly #metProtected = new Set<Entry>();
  /** False while somebody asks who would give way if nobody were protected. */
  heedsProtection = true;

  constructor(parts: Parts, runners: Runners, nowMs: number) {
    this.#parts = parts;
    this.#runners = runners;
    this.#nowMs = nowMs;
  }

  choose(entry: Entry): void {
    this.#chosen.add(entry);
  }

  get chosenCount(): number {
    return this.#chosen.size;
  }

  isChosen(entry: Entry): boolean {
    return this.#chosen.has(entry);
  }

  /**
   * A search among gangs that may give way now, in a cluster or in all of them. It notes when those that are protected
   * may.
   */
  search(asking: Asking, cluster: string | null): VictimSearch {
    const runners = this.#runners;
    return {
      quota: this.#parts.quota,
      gangsOf: cluster === null ? runners.staying : (queue) => runners.inCluster(cluster, queue),
      leavesWith: (root, pools) => runners.leavesWith(root, pools, cluster),
      mayTake: this.#judgeOf(asking, (gang, leaf) => this.#mayTake(gang, leaf, asking.entry)),
    };
  }

  /** A search among all gangs that may give way to a gang if nobody is protected. */
  searchAll(asking: Asking): VictimSearch {
    const mayTake = this.#judgeOf(asking, (gang) => !this.#chosen.has(gang.entry));
    return { quota: this.#parts.quota, gangsOf: this.#runners.staying, mayTake };
  }

  #judgeOf({ lane, entry }: Asking, judge: (gang: Runner, takerLeaf: Branch) => boolean) {
    const takerLeaf = entry.gang.neverPreempts === true ? null : this.#parts.quota.branches.leaf(lane.line.name);
    return (gang: RunningGang) => takerLeaf !== null && judge(gang as Runner, takerLeaf);
  }

  #mayTake(gang: Runner, takerLeaf: Branch, taker: Entry): boolean {
    if (this.#chosen.has(gang.entry) || this.#leafOf(gang) === null) return false;
    const found = this.heedsProtection ? this.#protectionOf(gang, takerLeaf) : null;
    if (found === null) return true;
    this.#metProtected.add(taker);
    if (found.by === "minRuntime") this.recheckAtMs = Math.min(this.recheckAtMs, found.untilMs);
    return false;
  }

  #leafOf({ account }: Runner): Branch | null {
    return this.#parts.quota.branches.leaf(account.queue);
  }

  #protectionOf(gang: Runner, taker: Branch): { readonly by: ProtectedBy; readonly untilMs: number } | null {
    if (isFrozen(this.#parts, gang.entry, gang.admission)) return { by: "frozen", untilMs: Number.POSITIVE_INFINITY };
    const victim = this.#leafOf(gang);
    // Only what a gang needs to run is protected.
    if (gang.isGrowth === true || victim === null) return null;
    return protectionOf({ ...gang.entry.gang, admitTimeMs: gang.admitTimeMs }, { victim, taker }, this.#nowMs);
  }

  /**
   * What protects the gangs that would give way for a gang if nobody were protected. `find` asks who that would be.
   * Null: nobody would, or the search has met nobody who is protected.
   */
  protectedFrom({ lane, entry }: Asking, find: () => readonly Runner[]): Protected | null {
    const taker = this.#parts.quota.branches.leaf(lane.line.name);
    if (taker === null || !this.#metProtected.has(entry)) return null;
    this.heedsProtection = false;
    const gangs = find();
    this.heedsProtection = true;
    const found = gangs.flatMap((gang) => {
      const protection = this.#protectionOf(gang, taker);
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
  { quota }: Pick<Parts, "quota">,
  { line }: Pick<Entry, "line">,
  { flavors }: Pick<PlannedFrom, "flavors">,
): boolean {
  return line.stop?.freeze !== undefined || Object.values(flavors).some((pool) => quota.frozen.has(pool));
}
